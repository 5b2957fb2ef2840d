import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import UpstreamError
from tools.sandbox.web.response import PIECE_BYTES, Inflater, charset_of, decoded, media_type_of


@pytest.mark.parametrize(
    ("content_type", "codec"),
    [
        ("text/html; charset=utf-8", "utf-8"),
        ('text/html;charset="UTF-8"', "utf-8"),
        ("text/html; charset='utf8'", "utf-8"),
        ("text/html; a=b; Charset = ISO-8859-1", "cp1252"),
        ("text/html; charset=latin1", "cp1252"),
        ("text/html; charset=us-ascii", "cp1252"),
        ("text/html; charset=gb2312", "gb18030"),
        ("text/html; charset=Shift_JIS", "cp932"),
        ("text/html; charset=euc-kr", "cp949"),
        ("text/html; charset=windows-1251", "cp1251"),
        ("text/html; charset=KOI8-R", "koi8-r"),
        ("text/html; charset=utf-16", "utf-16"),
        ("text/html", None),
        ("text/html; charset=", None),
        ("text/html; charset=nonsense", None),
        ("charset=utf-8", None),
        *((f"text/html; charset={codec}", None) for codec in (
            "utf-7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "rot13", "hex",
            "zlib", "base64", "bz2", "undefined", "mbcs", "uu", "quopri", "../../x", "cp037",
        )),
    ],
)  # fmt: skip
def test_a_charset_is_one_that_the_web_knows(content_type: str, codec: str | None) -> None:
    assert charset_of(content_type) == codec


@pytest.mark.parametrize(
    ("content_type", "media_type"),
    [("Text/HTML; charset=x", "text/html"), ("", ""), (" a/b , c/d", "a/b"), (";", "")],
)
def test_a_media_type_has_no_parameters(content_type: str, media_type: str) -> None:
    assert media_type_of(content_type) == media_type


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("grün".encode(), None, "grün"),
        ("grün".encode(), "utf-8", "grün"),
        ("grün".encode("cp1252"), "cp1252", "grün"),
        ("中文".encode("gb18030"), "gb18030", "中文"),
        ("\ufeffgrün".encode(), "cp1252", "grün"),
        ("\ufeffgrün".encode("utf-16-le"), "utf-8", "grün"),
        (b"gr\xfcn und blau", "utf-8", "gr\ufffdn und blau"),
        (b"\x81 a", "cp1252", "\ufffd a"),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, charset: str | None, text: str) -> None:
    found = decoded(data, charset, partial=False)
    assert found == text


def test_binary_data_are_no_text() -> None:
    assert decoded(b"\x89PNG\r\n\x1a\n\0\0\0", None, partial=False) is None
    assert decoded(b"\0\1\2", "utf-8", partial=False) is not None  # as it is named


def test_a_cut_character_at_the_end_is_left_out() -> None:
    assert decoded("grü".encode()[:-1], None, partial=True) == "gr"


@given(st.binary(max_size=100), st.sampled_from([None, "utf-8", "cp1252", "utf-16", "gb18030"]))
def test_any_bytes_are_text_or_none(data: bytes, charset: str | None) -> None:
    found = decoded(data, charset, partial=False)
    assert found is None or isinstance(found, str)


def _raw(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(data) + packing.flush()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw": _raw,
    "": bytes,
}


@pytest.mark.parametrize("packing", PACKINGS)
@given(
    data=st.binary(max_size=300), repeats=st.integers(1, 2_000), cuts=st.lists(st.integers(1, 50))
)
def test_whatever_was_packed_is_unpacked_in_small_pieces(
    packing: str, data: bytes, repeats: int, cuts: list[int]
) -> None:
    whole = data * repeats
    packed = PACKINGS[packing](whole)
    inflater = Inflater("deflate" if packing == "raw" else packing)
    unpacked = b""
    for cut in [*cuts, len(packed)]:
        part, packed = packed[:cut], packed[cut:]
        for piece in inflater.feed(part):
            assert len(piece) <= PIECE_BYTES or not packing
            unpacked += piece
    assert unpacked == whole
    assert not inflater.is_cut


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_are_unpacked_or_refused(data: bytes, encoding: str) -> None:
    inflater = Inflater(encoding)
    try:
        size = sum(len(piece) for piece in inflater.feed(data))
    except UpstreamError as error:
        assert error.next_actions  # noqa: PT017  # either is right
    else:
        assert size <= 300_000


def test_nothing_at_all_is_not_cut() -> None:
    assert not Inflater("gzip").is_cut
    assert list(Inflater("gzip").feed(b"")) in ([], [b""])
