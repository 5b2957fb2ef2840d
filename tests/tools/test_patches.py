import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp_types import ElicitResult

from server.clients.locations import command_path
from tests.conftest import RawServer
from tests.tools.conftest import Open
from tools.core.context import Grant, RequestContext
from tools.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    ToolError,
    UnavailableError,
)
from tools.patches import apply_patch
from tools.sandbox.files.sandbox import Sandbox


@pytest.fixture
def context(tmp_path: Path) -> RequestContext:
    return RequestContext().granted(Grant(sandbox=Sandbox(tmp_path)))


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


CODEX = """*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+2
 three
*** Update File: b.txt
*** Move to: sub/c.txt
@@
 y
-z
+Z
*** Add File: new/x.py
+print(1)
*** Delete File: gone
*** End Patch
"""

GIT = r"""From 1234 Mon Sep 17 00:00:00 2001
Subject: [PATCH] Count

diff --git a/a.txt b/a.txt
index 5626abf..fc7c5a2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/b.txt b/sub/c.txt
similarity index 80%
rename from b.txt
rename to sub/c.txt
--- a/b.txt
+++ b/sub/c.txt
@@ -1,3 +1,3 @@
 x
 y
-z
\ No newline at end of file
+Z
\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
index 587be6b..0000000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/new/x.py b/new/x.py
new file mode 100644
index 0000000..b376c99
--- /dev/null
+++ b/new/x.py
@@ -0,0 +1 @@
+print(1)
"""


@pytest.mark.parametrize("patch", [CODEX, GIT, CODEX.replace("\n", "\r\n")])
def test_a_patch_changes_moves_adds_and_deletes_files(
    context: RequestContext, tmp_path: Path, patch: str
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "b.txt").write_text("x\ny\nz")
    (tmp_path / "gone").write_text("x\n")
    done = apply_patch(context, patch)
    assert contents(tmp_path) == {
        "a.txt": b"one\n2\nthree\n",
        "new/x.py": b"print(1)\n",
        "sub/c.txt": b"x\ny\nZ",
    }
    head, *lines = done.to_text().split("\n")
    assert head == "Changed 4 files:"
    assert set(lines) == {"M a.txt", "R b.txt -> sub/c.txt", "A new/x.py", "D gone"}


def codex(*lines: str, name: str = "a") -> str:
    return "\n".join(["*** Begin Patch", f"*** Update File: {name}", *lines, "*** End Patch"])


def unified(*lines: str) -> str:
    return "\n".join(["--- a/a", "+++ b/a", *lines, ""])


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ("a\nb\n", codex("@@", "-b", "+c"), "a\nc\n"),
        ("a\r\nb\r\n", codex("@@", " a", "-b", "+c", "+d"), "a\r\nc\r\nd\r\n"),
        ("a\nb", codex("@@", " b", "+c"), "a\nb\nc"),
        ("x  \ny\n", codex("@@", " x", "-y", "+z"), "x  \nz\n"),
        ("f\n 1\ng\n 1\n", codex("@@ g", "- 1", "+ 2"), "f\n 1\ng\n 2\n"),
        ("f\n 1\ng\n 1\n", codex("@@ -3,2 +3,2 @@", "- 1", "+ 2"), "f\n 2\ng\n 1\n"),
        ("1\n2\n1\n", codex("@@", "-1", "+3", "*** End of File"), "1\n2\n3\n"),
        ("1\n", codex("@@", "+2"), "1\n2\n"),
        ("1\n\n2\n", codex("@@", " 1", "", "-2", "+3"), "1\n\n3\n"),
        ("0\n0\na\nb\n", unified("@@ -1,2 +1,2 @@", " a", "-b", "+c"), "0\n0\na\nc\n"),
        ("a\r\nb\r\n", unified("@@ -1,2 +1,2 @@", " a", "-b", "+c"), "a\r\nc\r\n"),
        ("a\n", unified("@@ -1 +1 @@", "-a", "+a", r"\ No newline at end of file"), "a"),
        ("a", unified("@@ -1 +1 @@", "-a", r"\ No newline at end of file", "+a"), "a\n"),
        ("a\n", unified("@@ -1,0 +2 @@", "+b"), "a\nb\n"),
    ],
)
def test_lines_go_where_they_are_meant(
    context: RequestContext, tmp_path: Path, before: str, patch: str, after: str
) -> None:
    (tmp_path / "a").write_bytes(before.encode())
    apply_patch(context, patch)
    assert (tmp_path / "a").read_bytes() == after.encode()


@pytest.mark.parametrize(
    ("before", "patch", "problem"),
    [
        (
            "one\ntwo\n",
            codex("@@", " one", "-2"),
            "Hunk 1 of 'a' does not fit: line 2 should be '2",
        ),
        ("one\n", codex("@@ two", "-one"), "the line 'two' after its '@@' does not occur"),
        ("x\n1\nx\n", unified("@@ -9 +9 @@", "-x", "+y"), "not at line 9, and fits at lines 1, 3"),
        ("x\ny\n", unified("@@ -1,0 +2 @@", "+y"), "it only adds lines, and does not show where"),
        ("one\n", unified("@@ -1,2 +1 @@", " one", "-two"), "but is the end of the file"),
    ],
)
def test_a_hunk_that_does_not_fit_is_named_with_its_lines(
    context: RequestContext, tmp_path: Path, before: str, patch: str, problem: str
) -> None:
    (tmp_path / "a").write_text(before)
    with pytest.raises(InvalidArgumentsError) as caught:
        apply_patch(context, patch)
    assert problem in str(caught.value)
    assert (tmp_path / "a").read_text() == before


@pytest.mark.parametrize(
    ("second", "error"),
    [
        ("*** Update File: b\n@@\n-x\n+y", InvalidArgumentsError),
        ("*** Update File: missing\n@@\n-x\n+y", NotFoundError),
        ("*** Add File: b\n+x", ConflictError),
        ("*** Add File: ../x\n+x", OutsideSandboxError),
        ("*** Add File: c/d\n+d", ToolError),
        ("*** Delete File: folder", InvalidArgumentsError),
        ("*** Update File: b\n*** Move to: c", ConflictError),
        ("*** Delete File: b\n*** Delete File: b", InvalidArgumentsError),
        ("*** Add File: n\n+n\n*** Delete File: n", InvalidArgumentsError),
        ("*** Update File: link\n@@\n-b\n+y", ToolError),
    ],
)
def test_nothing_is_changed_unless_everything_fits(
    context: RequestContext, tmp_path: Path, second: str, error: type[ToolError]
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("b")
    before = contents(tmp_path)
    with pytest.raises(error):
        apply_patch(
            context, f"*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n{second}\n*** End Patch"
        )
    assert contents(tmp_path) == before


def test_a_full_disk_leaves_every_file_as_it_was(
    context: RequestContext,
    tmp_path: Path,
    full_disk: Callable[[int], AbstractContextManager[None]],
) -> None:
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "b").write_text("b\n")
    parts = ["*** Update File: a", "@@", "-a", "+A", "*** Add File: c", "+" + "c" * 10_000]
    patch = "\n".join(["*** Begin Patch", *parts, "*** Delete File: b", "*** End Patch"])
    before = contents(tmp_path)
    with full_disk(4_096), pytest.raises(UnavailableError):
        apply_patch(context, patch)
    assert contents(tmp_path) == before
    apply_patch(context, patch)
    assert contents(tmp_path).keys() == {"a", "c"}


def test_two_files_change_places(context: RequestContext, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "b").write_text("b\n")
    swap = "diff --git a/{0} b/{1}\nrename from {0}\nrename to {1}\n"
    apply_patch(context, swap.format("a", "b") + swap.format("b", "a"))
    assert contents(tmp_path) == {"a": b"b\n", "b": b"a\n"}


def test_git_makes_a_file_executable(context: RequestContext, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "a").chmod(0o640)
    apply_patch(context, "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o750


LINES = st.lists(st.sampled_from(["a", "b", "c", "", " a", "a\r", "-b", "+c"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
NAMES = st.sampled_from(["x", "y", "sub/x", "ä b", 'q"t'])
TREES = st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3)


def git(root: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    base = ("git", "-c", "core.autocrlf=false", "-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        [*base, *arguments], cwd=root, input=stdin.encode(), capture_output=True, check=False
    )


def write_tree(root: Path, tree: dict[str, str]) -> None:
    git(root, "add", "-A")
    git(root, "rm", "-rfq", "--ignore-unmatch", ".")
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    git(root, "add", "-A")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=TREES,
    after=TREES,
    context_lines=st.integers(1, 4),
    lines_above=st.sampled_from([0, 0, 1]),
)
def test_a_diff_of_git_is_applied_as_git_applies_it(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, str],
    after: dict[str, str],
    context_lines: int,
    lines_above: int,
) -> None:
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "-q")
    write_tree(root, before)
    git(root, "commit", "-qm", "before", "--allow-empty")
    write_tree(root, after)
    patch = git(root, "diff", "--cached", "-M", "-C", f"-U{context_lines}").stdout.decode()
    drifted = {name: "new\n" * lines_above + text for name, text in before.items()}
    write_tree(root, drifted)
    unpatched = contents(root)
    try:
        apply_patch(RequestContext().granted(Grant(sandbox=Sandbox(root))), patch)
    except (ToolError, ValueError):
        assert contents(root) == unpatched
        assert lines_above or not patch, patch
        return
    ours = contents(root)
    write_tree(root, drifted)
    applied = git(root, "apply", "-", stdin=patch)
    assert applied.returncode or contents(root) == ours, patch
    assert lines_above or not applied.returncode, applied.stderr


async def test_one_undo_takes_a_patch_back(open_crib: Open) -> None:
    async with open_crib() as crib:
        (crib.root / "a.txt").write_text("one\ntwo\nthree\n")
        (crib.root / "b.txt").write_text("x\ny\nz")
        (crib.root / "gone").write_text("x\n")
        before = contents(crib.root)
        await crib.call("apply_patch", patch=CODEX)
        changes = (await crib.call("list_changes"))["changes"]
        (call,) = {each["call"] for each in changes}
        assert len(changes) == 5
        await crib.call("undo_change", call=call, dry_run=False)
        assert contents(crib.root) == before


@pytest.mark.boundary
@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("write_file(secret/**)", "*** Add File: secret/x\n+x"),
        ("edit_file(b)", "*** Update File: b\n@@\n-b\n+c"),
        ("write_file(b)", "*** Delete File: b"),
        ("write_file(c)", "*** Update File: b\n*** Move to: c"),
        ("write_file(b)", "*** Update File: b\n*** Move to: c"),
        ("apply_patch(b)", "*** Update File: b\n@@\n-b\n+c"),
        ("apply_patch", "*** Add File: c\n+c"),
        ("write_file(zzz)", "*** Add File: .envrc\n+c"),
    ],
)
async def test_a_rule_about_one_file_of_a_patch_holds_back_all_of_it(
    rule: str, part: str, open_crib: Open
) -> None:
    async with open_crib(policy__deny=[rule]) as crib:
        for name in ("a", "b"):
            (crib.root / name).write_text(f"{name}\n")
        before = contents(crib.root)
        patch = f"*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n{part}\n*** End Patch"
        kind, text = await crib.failure("apply_patch", patch=patch)
        assert (kind, contents(crib.root)) == ("permission_denied", before), text


@pytest.mark.boundary
async def test_a_rule_that_asks_about_one_file_asks_about_the_patch(open_crib: Open) -> None:
    asked = list[str]()

    async def refuse(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="decline")

    async with (
        open_crib(policy__ask=["edit_file(b)"]) as crib,
        Client(crib.app.server, elicitation_callback=refuse) as client,
    ):
        (crib.root / "b").write_text("b\n")
        for patch, question in (
            ("*** Begin Patch\n*** Add File: a\n+a\n*** End Patch", False),
            (codex("@@", "-b", "+c", name="b"), True),
        ):
            asked.clear()
            result = await client.call_tool("apply_patch", {"patch": patch})
            assert (result.is_error, bool(asked)) == (question, question)
        assert "The rule 'edit_file(b)' asks about 'b'." in asked[0]
        assert "*** Update File: b" in asked[0]


@pytest.mark.boundary
async def test_a_patch_that_was_approved_for_a_while_is_not_asked_about_again(
    open_crib: Open,
) -> None:
    asked = list[str]()

    async def accept(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "for_a_while"})

    async with (
        open_crib(policy__ask=["edit_file(b*)"], policy__deny=["edit_file(bad)"]) as crib,
        Client(crib.app.server, elicitation_callback=accept) as client,
    ):
        for name in ("b", "b2", "bad"):
            (crib.root / name).write_text("1\n2\n3\n")
        for name, line, questions in (("b", "1", 1), ("b", "2", 1), ("b2", "1", 2)):
            patch = codex("@@", f"-{line}", "+x", name=name)
            assert not (await client.call_tool("apply_patch", {"patch": patch})).is_error
            assert len(asked) == questions
        denied = codex("@@", "-1", "+x", name="bad")
        assert (await client.call_tool("apply_patch", {"patch": denied})).is_error
        assert len(asked) == 2


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ("hello", "It has no changes"),
        ("*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch", "Line 4 of the patch is 'x'"),
        ("*** Begin Patch\n*** Update File: a\n@@\n-x", "'*** End Patch' is missing"),
        ("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-x\n+y\n", "1 old and 1 new lines of the hunk are"),
        ("diff --git a/a b/a\nGIT binary patch\n", "binary changes cannot be applied"),
    ],
)
async def test_a_malformed_patch_is_refused_before_anything_is_asked(
    patch: str, problem: str, open_shared: Open
) -> None:
    async with open_shared(policy__ask=["apply_patch"]) as crib:
        kind, text = await crib.failure("apply_patch", patch=patch)
        assert kind == "invalid_arguments"
        assert problem in text


@pytest.mark.slow
def test_one_undo_takes_back_what_a_killed_server_wrote_of_a_patch(
    tmp_path: Path, raw_server: type[RawServer]
) -> None:
    server = raw_server(tmp_path)
    root, names = tmp_path / "root", [f"f{number:03}" for number in range(180)]
    for name in names:
        (root / name).write_text("one\n")
    before = contents(root)
    parts = [f"*** Update File: {name}\n@@\n-one\n+1\n" for name in names]
    patch = f"*** Begin Patch\n{''.join(parts)}*** End Patch"
    server.begin("apply_patch", patch=patch)
    while (root / names[5]).read_text() == "one\n":  # no event tells it
        assert server.process.poll() is None
    server.kill()
    assert before != contents(root) != dict.fromkeys(names, b"1\n")
    places = ("--root", str(root), "--data-dir", str(tmp_path / "data"))
    subprocess.run([command_path(), "undo", "--yes", *places], check=True, capture_output=True)
    assert contents(root) == before
