import codecs
import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
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
from tools.core.spec import Effect, Subject, SubjectKind
from tools.edits import PassageEdit, edit_file, insert_text_file, multi_edit
from tools.sandbox.files.replace import MAX_EDIT_BYTES
from tools.sandbox.files.sandbox import Sandbox

GERMAN = "Die Größe der Straße überrascht die Bürger. Übermäßig müde Gäste äßen Käse.\n" * 8


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def context(root: Path) -> RequestContext:
    return RequestContext().granted(Grant(sandbox=Sandbox(root)))


def test_a_passage_is_replaced_and_the_change_told(context: RequestContext, root: Path) -> None:
    (root / "a.py").write_text("one\ntwo\nthree\nfour\nfive\nsix\n")
    done = edit_file(context, "a.py", "three\n", "3\n3.5\n")
    assert (root / "a.py").read_text() == "one\ntwo\n3\n3.5\nfour\nfive\nsix\n"
    assert (done.file_path, done.size, done.encoding) == ("a.py", 28, "utf-8")
    assert done.sha256 == hashlib.sha256((root / "a.py").read_bytes()).hexdigest()
    assert (done.changes, done.lines) == (1, [(3, 4)])
    assert done.diff.split("\n") == [
        *("@@ -1 +1 @@", " one", " two", "-three", "+3", "+3.5", " four", " five")
    ]
    assert done.to_text().startswith("Changed a.py in 1 place: 28 bytes, sha256 ")


def test_every_occurrence_is_replaced_where_that_is_asked_for(
    context: RequestContext, root: Path
) -> None:
    (root / "a").write_text("x = x\n\n\n\n\n\nend x\n")
    done = edit_file(context, "a", "x", "yy", replace_all=True)
    assert (root / "a").read_text() == "yy = yy\n\n\n\n\n\nend yy\n"
    assert (done.changes, done.lines) == (3, [(1, 1), (7, 7)])
    assert done.diff.count("@@") == 4


@pytest.mark.parametrize(
    ("text", "old", "lines"),
    [
        ("a\nb\na\n", "a", "1, 3"),
        ("a\nb\na\n", "a\n", "1, 3"),
        ("aaa", "aa", "1"),
        ("x\r\ny\r\nx\ny\n", "x\ny\n", "1, 3"),
        ("x\r\ny\r\nx\ny\n", "x\r\ny\r\n", "1, 3"),
        ("a\rb\ra\r", "a\n", "1, 3"),
    ],
)
def test_an_ambiguous_passage_is_refused_with_its_lines(
    context: RequestContext, root: Path, text: str, old: str, lines: str
) -> None:
    (root / "a").write_bytes(text.encode())
    with pytest.raises(InvalidArgumentsError, match=f"2 times .* lines {lines}") as caught:
        edit_file(context, "a", old, "new")
    assert "replace_all" in caught.value.next_actions[0]
    assert (root / "a").read_bytes() == text.encode()


def test_very_many_matches_are_counted_only_so_far(context: RequestContext, root: Path) -> None:
    (root / "a").write_text("a\n" * 5000)
    with pytest.raises(InvalidArgumentsError, match=r"1000 times or more .* 19, 20, …"):
        edit_file(context, "a", "a", "b")
    done = edit_file(context, "a", "a", "b", replace_all=True)
    assert (done.changes, len(done.lines)) == (5000, 20)
    assert len(done.diff) < 5000


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ("    retrun value\n", "line 2: 'return value'"),
        ("def function( argument ):", "line 1: 'def function(argument):'"),
        ("  return value", "differ from it in white space only: '    return value\\n'"),
        ("\n\n\tdef function(argument):   \n\treturn value", "lines 1-2 differ from it in white"),
    ],
)
def test_a_passage_that_is_not_there_is_answered_with_what_is_like_it(
    context: RequestContext, root: Path, old: str, told: str
) -> None:
    (root / "a").write_text("def function(argument):\n    return value\n\nother = 1\n")
    if old == "  return value":
        old = "def function(argument):\n  return value"
        told = "lines 1-2 differ from it in white space only"
    with pytest.raises(InvalidArgumentsError, match="does not occur in 'a'") as caught:
        edit_file(context, "a", old, "x")
    assert told in caught.value.suggestions[0]
    assert caught.value.next_actions


@pytest.mark.parametrize("old", ["zzzzqqqq", "\n\n\n\n\n\n", "   \t"])
def test_nothing_is_suggested_where_nothing_is_alike(
    context: RequestContext, root: Path, old: str
) -> None:
    (root / "a").write_text("def function(argument):\n")
    with pytest.raises(InvalidArgumentsError, match="does not occur in 'a'") as caught:
        edit_file(context, "a", old, "x")
    assert caught.value.suggestions == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("", "x", "old_text is empty"), ("a", "a", "are the same"), ("a\n", "a\r\n", "are the same")],
)
def test_an_edit_that_says_nothing_is_refused(
    context: RequestContext, root: Path, old: str, new: str, told: str
) -> None:
    (root / "a").write_bytes(b"a\n")
    with pytest.raises(InvalidArgumentsError, match=told) as caught:
        edit_file(context, "a", old, new)
    assert caught.value.next_actions
    assert (root / "a").read_bytes() == b"a\n"


@pytest.mark.parametrize(
    ("text", "edit", "after"),
    [
        (b"a\r\nb\r\nc\r\n", ("a\nb\n", "x\ny\nz\n"), b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc", ("b\nc", "x\ny"), b"a\r\nx\r\ny"),
        (b"a\r\nb\nc\r\nd\n", ("b\nc\nd", "1\n2\n3"), b"a\r\n1\n2\r\n3\n"),
        (b"a\r\nb\nc\r\nd\n", ("b", "b\nbb"), b"a\r\nb\nbb\nc\r\nd\n"),
        (b"a\nb\r\nc\r\n", ("b", "b\nbb"), b"a\nb\r\nbb\r\nc\r\n"),
        (b"a\rb\rc", ("a\nb\n", "x\ny\nz\n"), b"x\ry\rz\rc"),
        (b"a\nb", ("b", "b\n"), b"a\nb\n"),
        (b"a\nb\n", ("b\n", "b"), b"a\nb"),
        (b"a\r\nb\r\n", ("\nb", ""), b"a\r\n"),
        (b"a\r\nb", ("a\r\nb", "a b"), b"a b"),
        (b"one line", ("line", "line\nand one"), b"one line\nand one"),
        (b"\r\n\r\nx", ("\n\n", "\n"), b"\r\nx"),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\n", ("b", "B"), b"a\x0bB\x0cc\xe2\x80\xa8d\n"),
        (b"a\r\r\nb", ("a", "c"), b"c\r\r\nb"),
    ],
)
def test_line_ends_are_matched_alike_and_kept_as_they_are(
    context: RequestContext, root: Path, text: bytes, edit: tuple[str, str], after: bytes
) -> None:
    (root / "a").write_bytes(text)
    edit_file(context, "a", *edit)
    assert (root / "a").read_bytes() == after


def test_all_of_a_mixed_file_keeps_its_line_ends(context: RequestContext, root: Path) -> None:
    (root / "a").write_bytes(b"f(\r\n)\nf(\n)\r\nf(\r\n)")
    edit_file(context, "a", "f(\n)", "g(\n  1\n)", replace_all=True)
    assert (root / "a").read_bytes() == b"g(\r\n  1\r\n)\ng(\n  1\n)\r\ng(\r\n  1\r\n)"


WILD_TEXT = st.lists(
    st.sampled_from(
        ["a", "b", "ab", "ä", "語", "😀", "\n", "\r\n", "\r", " ", "\t", "\x0c", "\u2028"]
    )
).map("".join)
ENCODINGS = st.sampled_from(
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ]
)


def loosely(text: str) -> str:
    return re.sub(r"\r*\n|\r", "\n", text)


def lines_alone(text: str) -> str:
    """A text whose only line ends are carriage returns, with line feeds instead."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One root for every instance of a property."""
    return tmp_path_factory.mktemp("root")


@given(st.tuples(WILD_TEXT, WILD_TEXT, WILD_TEXT), WILD_TEXT, ENCODINGS)
@example(("", "", "\r"), "\r\r\n", (b"", "utf-8"))
def test_an_edit_leaves_every_other_byte(
    anywhere: Path, texts: tuple[str, str, str], new: str, encoding: tuple[bytes, str]
) -> None:
    (before, old, after), (bom, name) = texts, encoding
    root = anywhere
    context = RequestContext().granted(Grant(sandbox=Sandbox(root)))
    (root / "file").write_bytes(bom + f"{before}<{old}>{after}".encode(name))
    for spelled in (old, new):  # the passage as it is, and whatever it became
        with suppress(InvalidArgumentsError):  # the same but for line ends
            edit_file(context, "file", f"<{spelled}>", f"<{new}>")
        data = (root / "file").read_bytes()
        start, end = bom + f"{before}<".encode(name), f">{after}".encode(name)
        assert data.startswith(start)
        assert data.endswith(end)
        made = data[len(start) : -len(end)].decode(name)
        assert loosely(made) == loosely(new) or lines_alone(made) == lines_alone(new)


@given(WILD_TEXT, WILD_TEXT.filter(bool), st.integers(-6, 6), ENCODINGS)
def test_an_insertion_leaves_every_other_byte(
    anywhere: Path, text: str, content: str, number: int, encoding: tuple[bytes, str]
) -> None:
    bom, name = encoding
    root = anywhere
    context = RequestContext().granted(Grant(sandbox=Sandbox(root)))
    old = bom + text.encode(name)
    (root / "file").write_bytes(old)
    try:
        insert_text_file(context, "file", content, number)
    except InvalidArgumentsError:
        assert (root / "file").read_bytes() == old
        return
    data = (root / "file").read_bytes()
    width = len(data) - len(old)
    assert width > 0
    # What is left when the new bytes are taken out again, wherever they are, is the old file.
    unit = {"8": 1, "1": 2, "3": 4}[name.split("-")[1][0]]
    assert any(
        data[:place] + data[place + width :] == old for place in range(0, len(old) + 1, unit)
    )


@pytest.mark.parametrize(
    ("text", "insertion", "after"),
    [
        (b"a\nb\n", ("x", 1), b"x\na\nb\n"),
        (b"a\nb\n", ("x\n", 2), b"a\nx\nb\n"),
        (b"a\nb\n", ("x", 3), b"a\nb\nx\n"),
        (b"a\nb", ("x", 3), b"a\nb\nx"),
        (b"a\nb", ("x\n", 3), b"a\nb\nx"),
        (b"a\nb\n", ("x", -1), b"a\nx\nb\n"),
        (b"a\nb\n", ("x", -2), b"x\na\nb\n"),
        (b"a\r\nb\r\n", ("x\ny", 2), b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\nb\r\n", ("x", 2), b"a\nx\r\nb\r\n"),
        (b"a\r\nb", ("x\ny", 3), b"a\r\nb\r\nx\r\ny"),
        (b"a\rb\r", ("x\ny", 2), b"a\rx\ry\rb\r"),
        (b"a\n", ("\n", 2), b"a\n\n"),
        (b"", ("x\ny", 1), b"x\ny"),
        (b"a", ("x", 2), b"a\nx"),
        (b"a", ("x", 1), b"x\na"),
    ],
)
def test_lines_are_put_in_as_the_file_ends_its_lines(
    context: RequestContext, root: Path, text: bytes, insertion: tuple[str, int], after: bytes
) -> None:
    (root / "a").write_bytes(text)
    insert_text_file(context, "a", *insertion)
    assert (root / "a").read_bytes() == after


@pytest.mark.parametrize("number", [0, 4, -3, 1000, -1000])
def test_a_line_that_does_not_exist_is_named(
    context: RequestContext, root: Path, number: int
) -> None:
    (root / "a").write_bytes(b"a\nb\n")
    with pytest.raises(InvalidArgumentsError, match=f"no line {number}: the file has 2") as caught:
        insert_text_file(context, "a", "x", number)
    assert "1 begins the file, 3 ends it" in caught.value.next_actions[0]
    with pytest.raises(InvalidArgumentsError, match="content is empty"):
        insert_text_file(context, "a", "", 1)
    assert (root / "a").read_bytes() == b"a\nb\n"


def test_an_insertion_tells_where_the_lines_are_now(context: RequestContext, root: Path) -> None:
    (root / "a").write_text("1\n2\n3\n4\n")
    done = insert_text_file(context, "a", "x\ny", 3)
    assert (done.changes, done.lines) == (1, [(3, 4)])
    assert done.diff == "@@ -1 +1 @@\n 1\n 2\n+x\n+y\n 3\n 4"
    done = insert_text_file(context, "a", "end", 7)
    assert done.lines == [(7, 7)]


CALLS: list[Callable[[RequestContext, str], object]] = [
    lambda context, path: edit_file(context, path, "old", "new"),
    lambda context, path: insert_text_file(context, path, "new", 1),
]


@pytest.mark.parametrize("call", CALLS, ids=["edit", "insert"])
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("../x", OutsideSandboxError),
        ("/etc/passwd", OutsideSandboxError),
        ("link", OutsideSandboxError),
        ("", InvalidArgumentsError),
        ("x\0y", InvalidArgumentsError),
        (".", InvalidArgumentsError),
        (".mcp.json", PermissionDeniedError),
        (".git/config", PermissionDeniedError),
        ("missing", NotFoundError),
        ("missing/x", NotFoundError),
    ],
)
def test_no_edit_goes_where_the_sandbox_does_not(
    context: RequestContext,
    root: Path,
    call: Callable[[RequestContext, str], object],
    path: str,
    error: type[ToolError],
) -> None:
    (root / ".mcp.json").write_text("old")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("old")
    (root / "link").symlink_to("/etc/passwd")
    before = {str(each): each.read_bytes() for each in root.rglob("*") if each.is_file()}
    with pytest.raises(error):
        call(context, path)
    assert {str(each): each.read_bytes() for each in root.rglob("*") if each.is_file()} == before


@pytest.mark.parametrize("call", CALLS, ids=["edit", "insert"])
@pytest.mark.parametrize(
    "data",
    [
        b"\0\1old\2",
        b"\x89PNG\r\n\x1a\n\0old",
        "Größe old".encode("cp1252"),
        GERMAN.encode("cp1252"),
    ],
)
def test_what_is_no_certain_text_is_not_written_back(
    context: RequestContext, root: Path, call: Callable[[RequestContext, str], object], data: bytes
) -> None:
    (root / "a").write_bytes(data)
    with pytest.raises(InvalidArgumentsError):
        call(context, "a")
    assert (root / "a").read_bytes() == data


def test_a_legacy_encoding_that_is_named_is_edited(context: RequestContext, root: Path) -> None:
    (root / "a").write_bytes(GERMAN.encode("cp1252"))
    done = edit_file(context, "a", "Größe", "Länge", replace_all=True, encoding="cp1252")
    assert done.encoding == "cp1252"
    assert (root / "a").read_bytes() == GERMAN.replace("Größe", "Länge").encode("cp1252")
    with pytest.raises(InvalidArgumentsError, match="cannot represent"):
        insert_text_file(context, "a", "日本", 1, encoding="cp1252")


@pytest.mark.parametrize("call", CALLS, ids=["edit", "insert"])
def test_a_file_that_is_too_large_is_refused(
    context: RequestContext, root: Path, call: Callable[[RequestContext, str], object]
) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(InvalidArgumentsError, match="too large to be edited"):
        call(context, "sparse")


def test_an_edit_does_not_make_a_file_that_is_too_large(
    context: RequestContext, root: Path
) -> None:
    (root / "a").write_text("a" * 1000)
    new = "b" * (MAX_EDIT_BYTES // 900)
    with pytest.raises(InvalidArgumentsError, match="would have more than"):
        edit_file(context, "a", "a", new, replace_all=True)
    assert (root / "a").read_text() == "a" * 1000


def test_a_passage_of_many_equal_lines_is_looked_for_in_time(
    context: RequestContext, root: Path
) -> None:
    (root / "a").write_bytes(b"\r\n" * 1_000_000)
    with pytest.raises(InvalidArgumentsError, match="does not occur in 'a'"):
        edit_file(context, "a", "\n" * 100_000 + "x", "y")


@pytest.mark.parametrize("new", ["b", "b\nb"])
@pytest.mark.slow
def test_very_many_changes_of_one_line_are_made_in_time(
    context: RequestContext, root: Path, new: str
) -> None:
    (root / "a").write_bytes(b"a" * 400_000)
    edited = edit_file(context, "a", "a", new, replace_all=True)
    assert (root / "a").read_bytes() == new.encode() * 400_000
    assert edited.changes == 400_000
    assert edited.lines == [(1, new.count("\n") * 400_000 + 1)]


def test_an_edit_based_on_an_older_version_is_a_conflict(
    context: RequestContext, root: Path
) -> None:
    (root / "a").write_text("old")
    first = edit_file(context, "a", "old", "new").sha256
    second = insert_text_file(context, "a", "line", 1, expected_sha256=first).sha256
    with pytest.raises(ConflictError, match=second[:12]):
        edit_file(context, "a", "new", "newer", expected_sha256=first)
    with pytest.raises(ConflictError, match=second[:12]):
        insert_text_file(context, "a", "x", 1, expected_sha256=first)
    assert (root / "a").read_text() == "line\nnew"


@pytest.mark.parametrize("function", [edit_file, insert_text_file])
def test_the_edit_tools_are_described_in_few_words(function: Callable[..., object]) -> None:
    spec = FunctionToMCP().convert(function)
    assert spec.effects == {Effect.READ, Effect.WRITE}
    assert spec.subject == Subject(SubjectKind.PATH, "file_path")
    assert spec.tags == ("files",)
    assert spec.aliases == (("insert_file",) if function is insert_text_file else ())
    assert len(str(spec.input_schema)) + len(spec.description) < 1000


def test_several_edits_are_made_one_after_another_or_not_at_all(
    context: RequestContext, root: Path
) -> None:
    (root / "a").write_bytes(b"one\r\ntwo\r\none\r\n")
    edits = [
        PassageEdit(old_text="one", new_text="1", replace_all=True),
        PassageEdit(old_text="1\ntwo", new_text="1\n2"),
    ]
    shown = multi_edit(context, "a", edits, dry_run=True)
    assert (root / "a").read_bytes() == b"one\r\ntwo\r\none\r\n"
    done = multi_edit(context, "a", edits)
    assert (root / "a").read_bytes() == b"1\r\n2\r\n1\r\n"
    assert (shown.sha256, shown.diff) == (done.sha256, done.diff)
    assert done.sha256 == hashlib.sha256((root / "a").read_bytes()).hexdigest()
    assert shown.to_text().startswith("Would make 2 edits in a, sha256 ")
    with pytest.raises(InvalidArgumentsError, match=r"Edit 2 of 2: .* Nothing was changed\."):
        multi_edit(context, "a", [PassageEdit(old_text="2", new_text="3"), edits[0]])
    assert (root / "a").read_bytes() == b"1\r\n2\r\n1\r\n"
    (root / "a").write_bytes(b"one\n" + b"1\n" * 5_000_000)
    for dry_run in (True, False):
        with pytest.raises(InvalidArgumentsError, match="too large to be edited"):
            multi_edit(context, "a", edits[:1], dry_run=dry_run)
