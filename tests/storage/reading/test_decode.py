import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import UnreadableDocumentError
from storage.reading.decode import byte_order_mark, decode, decode_marking

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))
MARKED = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
GERMAN = (
    "Die Größe der Straße überrascht die Bürger. Übermäßig müde Gäste äßen Käse, "
    "während die Schüler fröhlich hören. "
) * 5
RUSSIAN = "Привет, как дела? Сегодня хорошая погода, и мы идём гулять в парк. " * 5
JAPANESE = "日本語です今日は天気がいいですね。カタカナも書きます。" * 5
CHINESE = "今天天气很好，我们去公园散步。中文编码测试。" * 5  # noqa: RUF001  # Chinese has its own comma
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. " * 5
FRENCH = "L'été dernier, nous avons mangé des crêpes à la crème brûlée. " * 5


@given(TEXTS)
def test_utf8_is_certain_and_comes_back_as_it_was(text: str) -> None:
    decoded = decode(text.encode())
    assert (decoded.text, decoded.encoding, decoded.bom) == (text, "utf-8", b"")
    assert decoded.certain


@given(TEXTS, st.sampled_from(sorted(MARKED)))
def test_a_byte_order_mark_is_believed_and_kept(text: str, encoding: str) -> None:
    data = MARKED[encoding] + text.encode(encoding)
    decoded = decode(data)
    assert (decoded.text, decoded.encoding, decoded.certain) == (text, encoding, True)
    assert decoded.encode(decoded.text) == data


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["a", "hello\r\nworld\n", GERMAN])
def test_utf16_without_a_mark_is_recognized(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert (decoded.text, decoded.encoding, decoded.certain) == (text, encoding, True)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        (GERMAN, "latin-1"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "shift_jis"),
        (CHINESE, "gbk"),
        (CZECH, "cp1250"),
    ],
)
def test_a_legacy_encoding_without_a_rival_is_read_but_not_certain(
    text: str, encoding: str
) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert not decoded.certain


@pytest.mark.parametrize(
    "data",
    ["Größe".encode("cp1252"), b"# caf\xe9\nprint('hi')\n", b"\xff", b"\x80\x81\x82", b"abc\xc3"],
)
def test_an_uncertain_encoding_is_refused_and_the_remedy_named(data: bytes) -> None:
    with pytest.raises(UnreadableDocumentError, match="uncertain") as caught:
        decode(data)
    assert "Name the encoding" in caught.value.suggestions[0]


@pytest.mark.parametrize(
    "text", [GERMAN, RUSSIAN, JAPANESE, CHINESE, CZECH, FRENCH], ids=lambda text: text[:6]
)
@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize(
    "encoding",
    [
        *("cp1250", "cp1251", "cp1252", "latin-1", "iso8859-2", "iso8859-5", "iso8859-15"),
        *("koi8-r", "cp437", "cp850", "cp866", "mac-roman", "shift_jis", "euc-jp", "gbk"),
    ],
)
def test_no_legacy_text_is_ever_read_wrongly(text: str, repeat: int, encoding: str) -> None:
    text = text[: len(text) // 5] * repeat
    data = text.encode(encoding, "ignore")
    if data.isascii():
        assert decode(data).certain
        return
    try:
        decoded = decode(data)
    except UnreadableDocumentError:
        return
    assert decoded.text == data.decode(encoding)


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x7fELF\x02\x01\x01" + bytes(9),
        bytes(range(256)),
        b"text\0text",
        b"\xde\xad\xbe\xef\x01\x02\x03",
        bytes(10_000),
    ],
)
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableDocumentError, match="binary"):
        decode(data)


@pytest.mark.parametrize("encoding", ["cp1252", "gb18030", "cp932", "utf-16", "utf-8-sig", "UTF8"])
def test_a_named_encoding_is_used(encoding: str) -> None:
    decoded = decode("abc\n".encode(encoding), encoding)
    assert decoded.text == "abc\n"
    assert decoded.certain
    assert decoded.encode(decoded.text) == "abc\n".encode(encoding)


@pytest.mark.parametrize("encoding", ["klingon", "", "hex", "zlib", "rot13", "a\0b", "undefined"])
def test_a_name_that_is_no_text_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(LookupError):
        decode(b"abc", encoding)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(b"\xff", "ascii"), (b"\xc3", "utf-8"), (b"\x81", "cp1252"), (b"a", "utf-16")],
)
def test_bytes_that_are_not_in_the_named_encoding_are_refused(data: bytes, encoding: str) -> None:
    with pytest.raises(UnreadableDocumentError, match="not in the encoding"):
        decode(data, encoding)


@given(TEXTS.filter(bool), st.sampled_from(["utf-8", "utf-16-le", "utf-32-be"]), st.data())
def test_a_character_cut_at_the_end_of_a_part_is_left_out(
    text: str, encoding: str, drawn: st.DataObject
) -> None:
    data = MARKED[encoding] + text.encode(encoding)
    cut = drawn.draw(st.integers(len(MARKED[encoding]), len(data)))
    assert text.startswith(decode(data[:cut], encoding, partial=True).text)


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused_and_certain_text_keeps_every_byte(data: bytes) -> None:
    try:
        decoded = decode(data)
    except UnreadableDocumentError:
        return
    if decoded.certain:
        assert decoded.encode(decoded.text) == data


def test_a_mark_is_told_from_its_shorter_sibling() -> None:
    assert byte_order_mark(codecs.BOM_UTF32_LE + b"a\0\0\0") == (codecs.BOM_UTF32_LE, "utf-32-le")
    assert byte_order_mark(codecs.BOM_UTF16_LE + b"a\0") == (codecs.BOM_UTF16_LE, "utf-16-le")
    assert byte_order_mark(b"abc") == (b"", "")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Füße und Köche\n".encode() * 9 + b"caf\xe9\n", "Füße und Köche\n" * 9 + "caf\ufffd\n"),
        (
            "日本語です".encode() * 9 + b"\xff\xfe" + "終".encode(),
            "日本語です" * 9 + "\ufffd\ufffd終",
        ),
        (b"\xff\xfe" + ("word " * 30).encode("utf-16-le") + b"\x00\xd8", "word " * 30 + "\ufffd"),
        (b"a log line\n" * 50 + b"\0\0 cut", "a log line\n" * 50 + "\ufffd\ufffd cut"),
    ],
    ids=["one legacy byte", "in Chinese script", "half a character", "cut by a crash"],
)
def test_a_few_broken_bytes_are_marked_where_they_stand(data: bytes, text: str) -> None:
    decoded = decode_marking(data)
    assert (decoded.text, decoded.certain) == (text, False)


@pytest.mark.parametrize(
    ("text", "is_disputed"),
    [
        ("It\u2019s the harbour\u2019s plan. ", True),
        ("Größe", True),
        ("Umlaute: ä, ö, ü und ß", True),
        ("Price: 40 \u20ac \u2013 \u201cper berth\u201d", True),
        (FRENCH, True),
        ("The caf\xe9 opens. " * 40, False),
    ],
)
def test_western_text_is_read_and_a_dispute_is_noted(text: str, is_disputed: bool) -> None:
    decoded = decode_marking(text.encode("cp1252"))
    assert decoded.text == text
    assert (decoded.certain, decoded.disputed) == (False, is_disputed)


@pytest.mark.parametrize("repeat", [1, 5, 40])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет, как дела? ", "cp1251"),
        ("Καλημέρα, τι κάνεις; ", "cp1253"),
        ("שלום לכולם ", "cp1255"),
        ("今天天气很好", "gbk"),
        ("日本語です", "shift_jis"),
        ("Zażółć gęślą jaźń, ", "cp1250"),
    ],
)
def test_text_in_another_script_is_not_taken_for_western(
    text: str, encoding: str, repeat: int
) -> None:
    data = (text * repeat).encode(encoding)
    try:
        decoded = decode_marking(data)
    except UnreadableDocumentError:
        return
    assert decoded.text == text * repeat


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 20,
        b"\x7fELF" + bytes(60) + b"strings of a program " * 40,
        ("Größenverhältnisse ändern äußerst häufig Gemüsegärten\n" * 3).encode("mac-roman"),
    ],
    ids=["all bytes", "a program", "another encoding"],
)
def test_many_broken_bytes_are_no_damage(data: bytes) -> None:
    with pytest.raises(UnreadableDocumentError, match=r"binary|uncertain"):
        decode_marking(data)
