"""Values of secrets are taken out however they are written and wherever they are cut."""

import base64
import html
import json
import re
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote, quote_plus

import mcp_types as types
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from server.mcp.wire import call_result
from tests.conftest import told
from tools.core.content import EmbeddedResource
from tools.core.result import ToolResult
from tools.sandbox.secrets.redaction import Redaction, marker

VALUE = 'gh_p/4=x&y"é<Z'
SHOWN = marker("github")
VALUES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=8)


def knowing(*values: str) -> Redaction:
    redaction = Redaction()
    for value in values:
        redaction.learn("github", value)
    return redaction


def in_pieces(redaction: Redaction, pieces: list[bytes]) -> bytes:
    shown = bytearray()
    sink = redaction.sink(shown.extend)
    for piece in pieces:
        sink.feed(piece)
    sink.flush()
    return bytes(shown)


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        f"Bearer {VALUE}",
        quote(VALUE, safe=""),
        re.sub("%..", lambda found: found[0].lower(), quote(VALUE, safe="")),
        quote(VALUE),
        quote_plus(VALUE),
        "".join(f"%{byte:02x}" for byte in VALUE.encode()),
        json.dumps(VALUE),
        json.dumps(VALUE, ensure_ascii=False),
        json.dumps(VALUE).replace("/", r"\/"),
        "".join(f"\\u{ord(character):04x}" for character in VALUE),
        html.escape(VALUE),
        html.escape(VALUE, quote=False),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        repr(VALUE),
        VALUE.replace("_", r"\_"),
    ],
)
def test_a_value_is_taken_out_in_every_usual_spelling(form: str) -> None:
    redaction = knowing(VALUE)
    found = redaction.text(f"before {form} after")
    assert found.startswith("before ")
    assert found.endswith(" after")
    assert SHOWN in found
    assert len(found) <= len("before Bearer  after") + len(SHOWN) + 2
    assert redaction.data(f"{form}".encode()) == redaction.text(form).encode()


@given(value=VALUES, before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_base64_of_any_text_around_a_value_gives_it_away_nowhere(
    value: str, before: bytes, after: bytes
) -> None:
    redaction = knowing(value)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = redaction.text(encode(before + value.encode() + after).decode())
        assert SHOWN in shown


def reference(character: str) -> str:
    return f"&#{ord(character)};"


ESCAPES: tuple[Callable[[str], str], ...] = (
    str,
    reference,
    lambda each: f"&#x{ord(each):X};",
    lambda each: f"&#{ord(each):07d};",
    html.escape,
    lambda each: quote(each, safe=""),
    lambda each: "".join(f"%{byte:02x}" for byte in each.encode()),
    lambda each: "".join(f"\\x{byte:02x}" for byte in each.encode()),
    lambda each: json.dumps(each)[1:-1],
    lambda each: f"\\u{{{ord(each):x}}}",
)
ENCODERS: tuple[Callable[[bytes], str], ...] = (
    lambda data: base64.b64encode(data).decode(),
    lambda data: base64.urlsafe_b64encode(data).decode(),
    bytes.hex,
)
SEPARATED = ("\n", "\r\n", "\n    ", "\\n", "\\\n", '"\n  "', "&#10;", "%0A", ",\n", " ")


@given(value=VALUES, data=st.data())
def test_a_value_is_taken_out_in_any_mixture_of_escapes(value: str, data: st.DataObject) -> None:
    assume(not set(value) & {"&", "%", "\\"})  # they may look like the beginning of an escape
    mixed = "".join(data.draw(st.sampled_from(ESCAPES))(each) for each in value)
    shown = knowing(value).text(f"<a> {mixed} </a>")
    assert shown == f"<a> {SHOWN} </a>"


@given(value=VALUES, before=st.binary(max_size=99), width=st.integers(1, 80), data=st.data())
def test_an_encoded_value_is_taken_out_across_lines(
    value: str, before: bytes, width: int, data: st.DataObject
) -> None:
    text = data.draw(st.sampled_from(ENCODERS))(before + value.encode() + b"!")
    between = data.draw(st.sampled_from(SEPARATED))
    folded = between.join(text[at : at + width] for at in range(0, len(text), width))
    shown = knowing(value).text(folded)
    assert SHOWN in shown
    assert not any(form in re.sub(r"[^\w+/=-]", "", shown) for form in (value.encode().hex(), text))
    cut = data.draw(st.integers(0, len(folded.encode())))
    pieces = [folded.encode()[:cut], folded.encode()[cut:]]
    assert SHOWN.encode() in in_pieces(knowing(value), pieces)


def lines(value: str, width: int = 12) -> list[str]:
    text = base64.b64encode(b"x:" + value.encode() + b":yyyy").decode()
    return [text[at : at + width] for at in range(0, len(text), width)]


def prefixed(prefix: str) -> Callable[[str], str]:
    return lambda value: "\n".join(f"{prefix}{line}" for line in lines(value))


def numbered(value: str) -> str:
    return "\n".join(f"{at:6}\t{line}" for at, line in enumerate(lines(value), 1))


def dumped(line: str, separator: str, size: int = 1) -> Callable[[str], str]:
    """Writes an address, bytes and characters in each line."""

    def dump(value: str) -> str:
        data = b"a: " + value.encode()
        rows = (data[at : at + 16] for at in range(0, len(data), 16))
        return "\n".join(
            line.format(at * 16, row.hex(separator, -size), row.decode("latin-1"))
            for at, row in enumerate(rows)
        )

    return dump


@pytest.mark.parametrize(
    "write",
    [
        *map(prefixed, ("> ", ">> ", "| ", "# ", "// ", "* ", "+", "- ", "  + ")),
        numbered,
        *(
            lambda value, between=each: between.join(lines(value))
            for each in ("<br>", "<br />\n", "&shy;", "\xa0", "\u200b", "\0", "=\n", '" +\n  "')
        ),
        lambda value: "\n".join(f"b'{line}'" for line in lines(value)),
        lambda value: "\n".join(f"> b'{line}'" for line in lines(value)),
        dumped("{:08x}  {}  |{}|", " "),
        dumped("{:08x}: {}  {}", " ", 2),
        dumped("{:07o} {}", " "),
        lambda value: ", ".join(f"0x{byte:02x}" for byte in value.encode()),
        lambda value: value.encode().hex("-").upper(),
        lambda value: str(list(value.encode())),
        lambda value: " ".join(map(str, value.encode())),
        lambda value: "".join(f"\\x{{{ord(each):x}}}" for each in value),
        lambda value: "".join(f"%u{ord(each):04x}" for each in value),
        lambda value: "".join(f"={byte:02X}" for byte in value.encode()),
        lambda value: f"{value[:4]}={ord(value[4]):02X}=\n{value[5:]}",
    ],
)
@pytest.mark.parametrize("value", ["ghp_0123456789abcdefXYZ", "a+b/c9?KeyOfMine-77"])
def test_a_value_is_taken_out_of_quotations_dumps_and_lists(
    value: str, write: Callable[[str], str]
) -> None:
    shown = knowing(value).text(f"begin\n{write(value)}\nend")
    assert SHOWN in shown
    assert shown.startswith("begin\n")
    assert shown.endswith("\nend")
    assert value[-4:] not in shown


@pytest.mark.parametrize("line_end", ["\\\n", "\\\r\n", "=\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_a_value_that_is_continued_on_lines_is_taken_out_across_pieces(
    line_end: str, size: int
) -> None:
    value = "ghp_0123456789abcdefXYZ"
    cut = line_end.join(value[at : at + 5] for at in range(0, len(value), 5))
    data = f"token {cut} end\n".encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert in_pieces(knowing(value), pieces) == f"token {SHOWN} end\n".encode()


def test_an_escaped_value_is_taken_out_across_pieces() -> None:
    escaped = "".join(map(reference, VALUE)).encode()
    for cut in range(len(escaped)):
        shown = in_pieces(knowing(VALUE), [b"token: " + escaped[:cut], escaped[cut:] + b"\n"])
        assert shown.replace(b";", b"") == f"token: {SHOWN}\n".encode()


def test_what_only_looks_escaped_or_folded_stays_as_it_is() -> None:
    text = "100 %41 &amp; \\x41 \\\\u0041 &#65; &nosuch; QUJD\nREVG \\u{110000} &#x110000;"
    assert knowing("ABCDEFGHIJ").text(text) == text
    data = b"\xff\xfe %ff \\xff \x00"
    assert knowing(VALUE).data(data) == data


@given(value=VALUES, cuts=st.lists(st.integers(0, 400), max_size=8), data=st.data())
def test_a_value_is_taken_out_across_pieces(
    value: str, cuts: list[int], data: st.DataObject
) -> None:
    redaction = knowing(value)
    forms = [form for form, _ in redaction._forms]
    parts = data.draw(st.lists(st.sampled_from([*forms, b"x", value[:3].encode()]), max_size=6))
    whole = b"\n".join(parts)
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    pieces = [whole[a:b] for a, b in pairwise(places)]
    shown = in_pieces(redaction, pieces)
    assert value.encode() not in shown
    assert shown.count(SHOWN.encode()) >= sum(part == value.encode() for part in parts)


def test_output_is_not_held_back_where_no_value_begins() -> None:
    shown = bytearray()
    sink = knowing("npm_0123456789").sink(shown.extend)
    sink.feed(b"listening on 3000\n")
    assert bytes(shown) == b"listening on 3000\n"
    sink.feed(b"token npm_01")
    assert bytes(shown).endswith(b"token ")
    sink.feed(b"x\n")
    assert bytes(shown).endswith(b"token npm_01x\n")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("value", ["ghp_0123456789", VALUE])
def test_a_wide_text_is_taken_out_of_bytes(value: str, codec: str) -> None:
    shown = knowing(value).data(f"a {value} b".encode(codec))
    assert shown.decode(codec) == f"a {SHOWN} b"


def test_a_result_has_no_value_in_its_text_its_keys_or_its_values() -> None:
    result = ToolResult({VALUE: [{"a": f"x{VALUE}"}, 1, None]}, f"[{VALUE}]", verbatim=object())
    found = knowing(VALUE).result(result)
    assert found.structured == {SHOWN: [{"a": f"x{SHOWN}"}, 1, None]}
    assert found.text == f"[{SHOWN}]"
    assert found.verbatim is None


def test_a_text_of_another_server_stays_a_text_without_structure() -> None:
    answer = types.CallToolResult(content=[types.TextContent(text=f"a {VALUE}")])
    result = ToolResult({}, f"a {VALUE}", verbatim=answer)
    for form in ("both", "structured"):
        shown = call_result(knowing(VALUE).result(result), form)
        assert shown.structured_content is None
        assert told(shown) == f"a {SHOWN}"


def test_a_result_has_no_value_in_its_content() -> None:
    found = EmbeddedResource("a://b", f"x {VALUE}")
    binary = EmbeddedResource("a://c", VALUE.encode())
    result = ToolResult({}, "", media=(found, binary), blocks=(VALUE, found, binary))
    shown = knowing(VALUE).result(result)
    redacted = EmbeddedResource("a://b", f"x {SHOWN}"), EmbeddedResource("a://c", SHOWN.encode())
    assert shown.media == redacted
    assert shown.blocks == (SHOWN, *redacted)


def test_a_result_without_a_value_stays_the_same() -> None:
    result = ToolResult({"a": [1, "b"]}, "b", verbatim=object())
    assert knowing(VALUE).result(result) is result


def test_a_value_that_was_changed_is_taken_out_still() -> None:
    redaction = knowing("old-value-1", "new-value-2")
    assert redaction.text("old-value-1 new-value-2") == f"{SHOWN} {SHOWN}"
