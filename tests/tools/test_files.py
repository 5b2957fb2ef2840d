import codecs
import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import Grant, RequestContext
from tools.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
    ToolError,
)
from tools.core.spec import Effect
from tools.files import MAX_ENTRIES, MAX_SHOWN_CHARACTERS, list_directory, read_file, write_file
from tools.sandbox.files.sandbox import Sandbox

GERMAN = (
    "Die Größe der Straße überrascht die Bürger. Übermäßig müde Gäste äßen Käse, "
    "während die Schüler fröhlich hören.\n"
) * 5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def context(root: Path) -> RequestContext:
    return RequestContext().granted(Grant(sandbox=Sandbox(root), library=None))


def test_a_file_is_read_with_what_is_known_of_it(context: RequestContext, root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\ntwo\nthree")
    found = read_file(context, "a.txt")
    assert found.content == "one\ntwo\nthree"
    assert (found.first_line, found.last_line, found.total_lines) == (1, 3, 3)
    assert (found.encoding, found.newline, found.size) == ("utf-8", "lf", 13)
    assert found.sha256 == hashlib.sha256(b"one\ntwo\nthree").hexdigest()
    assert not found.truncated
    head, text = found.to_text().split("\n", 1)
    assert head == f"[a.txt: lines 1-3 of 3, utf-8, lf, sha256 {found.sha256[:12]}]"
    assert text == found.content


def test_an_empty_file_is_read(context: RequestContext, root: Path) -> None:
    (root / "empty").write_bytes(b"")
    found = read_file(context, "empty")
    assert (found.content, found.first_line, found.last_line, found.total_lines) == ("", 0, 0, 0)


@pytest.mark.parametrize(
    ("ranges", "content"),
    [
        ([1, 1], "1\n"),
        ([2, 3], "2\n3\n"),
        ([9, 99], "9\n10\n"),
        ([-2, -1], "9\n10\n"),
        ([-100, 1], "1\n"),
        ([9, -1], "9\n10\n"),
    ],
)
def test_some_lines_are_read(
    context: RequestContext, root: Path, ranges: list[int], content: str
) -> None:
    (root / "ten").write_text("".join(f"{number}\n" for number in range(1, 11)))
    found = read_file(context, "ten", ranges)
    assert (found.content, found.total_lines, found.truncated) == (content, 10, False)


@pytest.mark.parametrize("ranges", [[0, 3], [11, 12], [5, 4], [-1, -2], [1, -11]])
def test_lines_that_do_not_exist_are_refused(
    context: RequestContext, root: Path, ranges: list[int]
) -> None:
    (root / "ten").write_text("x\n" * 10)
    with pytest.raises(InvalidArgumentsError, match="there are 10"):
        read_file(context, "ten", ranges)
    with pytest.raises(InvalidArgumentsError, match="there are 10"):
        write_file(context, "ten", "y", ranges)
    assert (root / "ten").read_text() == "x\n" * 10


def test_a_long_file_is_cut_and_the_rest_can_be_had(context: RequestContext, root: Path) -> None:
    whole = "".join(f"line {number}\n" for number in range(1, 300_001))
    (root / "long").write_text(whole)
    parts, first = [], 1
    while True:
        found = read_file(context, "long", [first, -1])
        assert len(found.content) <= MAX_SHOWN_CHARACTERS
        parts.append(found.content)
        if not found.truncated:
            break
        assert f"[{found.last_line + 1}, -1]" in found.note
        first = found.last_line + 1
    assert "".join(parts) == whole


def test_a_line_that_is_too_long_is_shown_in_part(context: RequestContext, root: Path) -> None:
    (root / "line").write_text("x" * 2_300_000)
    found = read_file(context, "line")
    assert found.truncated
    assert "Line 1 is too long" in found.note


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.slow
def test_lines_of_a_long_text_are_read_wherever_they_are(
    context: RequestContext, root: Path, encoding: str, end: str
) -> None:
    lines = [f"{number} Größe ੊\n" + "x" * (number % 50) for number in range(1, 300_000)]
    lines = "".join(lines).split("\n")
    (root / "long").write_bytes(
        (("\r\n" if end == "\r\n" else "\n").join(lines) + end).encode(encoding)
    )
    for first, last in ((1, 2), (2, 2), (150_000, 150_002), (-3, -1), (len(lines), len(lines))):
        found = read_file(context, "long", [first, last])
        start = first - 1 if first > 0 else len(lines) + first
        wanted = lines[start : start + (last - first + 1)]
        assert found.content.replace("\r", "").removesuffix("\n").split("\n") == wanted
        assert (found.first_line, found.total_lines) == (start + 1, len(lines))
        assert (found.sha256, found.truncated) == (None, False)
    whole = read_file(context, "long")
    assert (whole.first_line, whole.truncated) == (1, True)
    assert f"[{whole.last_line + 1}, -1]" in whole.note


def test_lines_that_are_not_in_a_long_text_are_refused(context: RequestContext, root: Path) -> None:
    (root / "long").write_text("x" * 99 + "\n", "ascii")
    with (root / "long").open("ab") as file:
        file.writelines([b"y" * 99 + b"\n"] * 120_000)
    for ranges in ([120_002, 120_003], [0, 1], [2, 1]):
        with pytest.raises(InvalidArgumentsError, match="there are 120001"):
            read_file(context, "long", ranges)


def test_a_long_text_is_read_in_the_encoding_of_the_lines_that_are_asked_for(
    context: RequestContext, root: Path
) -> None:
    (root / "log").write_bytes(b"plain\n" * 2_000_000 + GERMAN.encode("cp1252") + b"plain\n")
    assert read_file(context, "log", [1, 1]).encoding == "utf-8"
    found = read_file(context, "log", [-6, -1])
    assert (found.content, found.encoding) == (f"{GERMAN}plain\n", "cp1252")
    assert "guess" in found.note


@pytest.mark.parametrize("text", ["x" * 12_000_000, "a\n" + "b\rc" * 4_000_000, "d\r" * 6_000_000])
def test_a_long_text_of_long_lines_is_shown_in_part(
    context: RequestContext, root: Path, text: str
) -> None:
    (root / "long").write_bytes(text.encode())
    found = read_file(context, "long", [-1, -1])
    whole = text.removesuffix("\r").rpartition("\n" if "\n" in text else "\r")[2]
    assert found.content in {whole[:MAX_SHOWN_CHARACTERS], f"{whole}\r"}
    assert found.truncated == (len(whole) > MAX_SHOWN_CHARACTERS)


@pytest.mark.slow
def test_two_hundred_megabytes_cost_little_memory(context: RequestContext, root: Path) -> None:
    with (root / "log").open("wb") as file:
        for block in range(200):
            file.writelines(b"%07d %s\n" % (block * 10_000 + at, b"." * 91) for at in range(10_000))
    tracemalloc.start()
    for ranges in ([1, 50], [-50, -1], [1_000_000, 1_000_050]):
        found = read_file(context, "log", ranges)
        assert found.total_lines == 2_000_000
        assert found.content.startswith(f"{found.first_line - 1:07} ")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 30_000_000


def test_a_sparse_file_of_ten_gigabytes_is_refused_with_its_size(
    context: RequestContext, root: Path
) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(InvalidArgumentsError, match=r"10737418240 bytes.*binary"):
        read_file(context, "sparse")


@pytest.mark.parametrize("data", [b"\0\1\2", b"\x89PNG\r\n\x1a\n\0", bytes(range(256))])
def test_a_binary_file_is_refused_with_its_size(
    context: RequestContext, root: Path, data: bytes
) -> None:
    (root / "binary").write_bytes(data)
    for call in (
        lambda: read_file(context, "binary"),
        lambda: write_file(context, "binary", "x", [1, 1]),
    ):
        with pytest.raises(InvalidArgumentsError, match=f"{len(data)} bytes.*binary"):
            call()
    assert (root / "binary").read_bytes() == data


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)
def test_a_byte_order_mark_is_read_past_and_kept(
    context: RequestContext, root: Path, mark: bytes, encoding: str
) -> None:
    path = root / "marked"
    path.write_bytes(mark + "ä\r\nb\r\n".encode(encoding))
    found = read_file(context, "marked")
    assert (found.content, found.encoding) == ("ä\r\nb\r\n", f"{encoding}-bom")
    write_file(context, "marked", "ö\n", [2, 2])
    assert path.read_bytes() == mark + "ä\r\nö\r\n".encode(encoding)
    for content in ("whole", "\ufeffwhole"):
        assert write_file(context, "marked", content).encoding == encoding
        assert path.read_bytes() == mark + "whole".encode(encoding)


def test_a_legacy_encoding_is_read_if_certain_and_written_only_if_named(
    context: RequestContext, root: Path
) -> None:
    path = root / "legacy"
    path.write_bytes(GERMAN.encode("cp1252"))
    found = read_file(context, "legacy")
    assert found.content == GERMAN
    assert "guess" in found.note
    with pytest.raises(InvalidArgumentsError, match="guess") as caught:
        write_file(context, "legacy", "Öl", [1, 1])
    assert "`encoding`" in caught.value.next_actions[0]
    assert path.read_bytes() == GERMAN.encode("cp1252")
    write_file(context, "legacy", "Öl", [1, 1], encoding="cp1252")
    assert path.read_bytes() == ("Öl\n" + GERMAN.split("\n", 1)[1]).encode("cp1252")


def test_an_uncertain_encoding_has_to_be_named(context: RequestContext, root: Path) -> None:
    (root / "short").write_bytes("Größe".encode("cp1252"))
    with pytest.raises(InvalidArgumentsError, match="uncertain") as caught:
        read_file(context, "short")
    assert "encoding" in caught.value.next_actions[0]
    assert read_file(context, "short", encoding="cp1252").content == "Größe"


@pytest.mark.parametrize("encoding", ["klingon", "hex", "rot13", "a\0b", "undefined", " "])
def test_an_encoding_that_does_not_exist_is_named(
    context: RequestContext, root: Path, encoding: str
) -> None:
    (root / "file").write_bytes(b"x")
    for call in (
        lambda: read_file(context, "file", encoding=encoding),
        lambda: write_file(context, "file", "y", encoding=encoding),
        lambda: write_file(context, "file", "y", [1, 1], encoding=encoding),
    ):
        with pytest.raises(InvalidArgumentsError, match="no text encoding") as caught:
            call()
        assert "utf-8" in caught.value.suggestions
    assert (root / "file").read_bytes() == b"x"


@pytest.mark.parametrize(("content", "encoding"), [("\ud800", None), ("日本", "cp1252")])
def test_a_character_that_the_encoding_lacks_is_named(
    context: RequestContext, root: Path, content: str, encoding: str | None
) -> None:
    (root / "file").write_bytes(b"old")
    for ranges in (None, [1, 1]):
        with pytest.raises(InvalidArgumentsError, match="cannot represent"):
            write_file(context, "file", content, ranges, encoding)
    assert (root / "file").read_bytes() == b"old"


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    root = tmp_path_factory.mktemp("root")
    context = RequestContext().granted(Grant(sandbox=Sandbox(root), library=None))
    written = write_file(context, "new/file", text)
    assert written.created
    assert (root / "new/file").read_bytes() == text.encode()
    assert read_file(context, "new/file").sha256 == written.sha256


@pytest.mark.parametrize(
    "data", [b"a\r\nb\nc", b"a\r\n\r\nb", b"a\rb\rc", b"\n\na", b"a\nb\r\nc\r\n"]
)
def test_writing_a_line_back_changes_no_byte(
    context: RequestContext, root: Path, data: bytes
) -> None:
    path = root / "file"
    path.write_bytes(data)
    for number in range(1, (read_file(context, "file").total_lines or 0) + 1):
        line = read_file(context, "file", [number, number]).content
        for spelled in (line, line.replace("\r\n", "\n"), line.rstrip("\r\n") + "\n"):
            write_file(context, "file", spelled, [number, number])
    assert path.read_bytes() == data


def test_a_write_says_what_it_did(context: RequestContext) -> None:
    written = write_file(context, "a/b.txt", "ä")
    assert (written.file_path, written.size, written.created) == ("a/b.txt", 2, True)
    assert written.sha256 == hashlib.sha256("ä".encode()).hexdigest()
    assert written.to_text().startswith("Created a/b.txt: 2 bytes")
    assert write_file(context, "a/b.txt", "b").to_text().startswith("Wrote a/b.txt: 1 bytes")


@pytest.mark.parametrize("ranges", [None, [1, 1]])
def test_a_write_based_on_an_older_version_is_a_conflict(
    context: RequestContext, root: Path, ranges: list[int] | None
) -> None:
    old = write_file(context, "file", "1").sha256
    new = write_file(context, "file", "2", expected_sha256=old[:12]).sha256
    with pytest.raises(ConflictError, match=new[:12]):
        write_file(context, "file", "3", ranges, expected_sha256=old)
    assert (root / "file").read_text() == "2"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("../x", OutsideSandboxError),
        ("/etc/passwd", OutsideSandboxError),
        ("", InvalidArgumentsError),
        ("x\0y", InvalidArgumentsError),
        (".git/hooks/pre-commit", PermissionDeniedError),
        (".mcp.json", PermissionDeniedError),
        (".", InvalidArgumentsError),
    ],
)
def test_no_tool_writes_where_the_sandbox_does_not(
    context: RequestContext, root: Path, path: str, error: type[ToolError]
) -> None:
    with pytest.raises(error):
        write_file(context, path, "x")
    assert list(root.iterdir()) == []


def test_lines_of_a_missing_file_are_not_replaced(context: RequestContext, root: Path) -> None:
    with pytest.raises(NotFoundError):
        write_file(context, "new/file", "x", [1, 1])
    assert list(root.iterdir()) == []


def test_a_directory_is_listed(context: RequestContext, root: Path) -> None:
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a.md").write_bytes(b"12345")
    (root / "link").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    listing = list_directory(context, depth=2)
    assert [(entry.name, entry.type, entry.size) for entry in listing.entries] == [
        ("docs", "directory", 0),
        ("link", "symlink", 0),
        ("pipe", "other", 0),
        ("docs/a.md", "file", 5),
        ("docs/deep", "directory", 0),
    ]
    assert listing.entries[0].modified.tzinfo is not None
    lines = listing.to_text().split("\n")
    assert lines[0] == "[.: 5 entries]"
    assert [line.split()[-1] for line in lines[1:]] == [
        *("docs/", "link@", "pipe?", "docs/a.md", "docs/deep/")
    ]
    with pytest.raises(OutsideSandboxError):
        list_directory(context, "link")


def test_a_long_listing_says_that_it_was_cut(context: RequestContext, root: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        (root / f"{number:04}").touch()
    listing = list_directory(context)
    assert (len(listing.entries), listing.truncated) == (MAX_ENTRIES, True)
    assert "There are more" in listing.to_text()


def test_a_name_cannot_pass_for_another_line(context: RequestContext, root: Path) -> None:
    (root / "a\nb\x1b[31m").touch()
    (root / os.fsdecode(b"\xff\xfe")).touch()
    listing = list_directory(context)
    assert len(listing.to_text().split("\n")) == 3
    assert "\x1b" not in listing.to_text()
    assert listing.model_dump_json()


@pytest.mark.parametrize(
    ("function", "alias", "effects"),
    [
        (read_file, ("view_text_file",), {Effect.READ}),
        (write_file, ("write_text_file",), {Effect.WRITE}),
        (list_directory, (), {Effect.READ}),
    ],
)
def test_the_tools_are_described_in_few_words(
    function: object, alias: tuple[str, ...], effects: set[Effect]
) -> None:
    spec = FunctionToMCP().convert(function)  # type: ignore[arg-type]  # any of the three
    assert spec.aliases == alias
    assert spec.effects == effects
    assert spec.tags == ("files",)
    assert "context" not in spec.input_schema["properties"]
    assert len(str(spec.input_schema)) + len(spec.description) < 800
