import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from storage.keeping.changes.changes import Changes, open_changes
from storage.keeping.changes.models import ABSENT, Caller, Change, ChangeFilter, FileState, Observed
from storage.models import Identity
from tools.sandbox.files.openat import HeldRoot
from tools.sandbox.files.resolve import Found
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.history.history import History, Limits, differences, walk
from tools.sandbox.history.undo import Undo

ANN = Identity(user_id="ann")


def caller(call: str) -> Caller:
    return Caller(call, ANN, "session", "bash")


def history_of(root: Path, changes: Changes) -> History:
    held = HeldRoot(str(root))
    return History(str(root), lambda: changes, frozenset, held, most_bytes=10_000_000)


def found(root: Path, changes: Changes) -> list[Change]:
    return changes.own(ANN).find(ChangeFilter(root=os.path.realpath(root)))


@pytest.fixture
def changes(tmp_path: Path) -> Iterator[Changes]:
    opened = open_changes(tmp_path / "data", keep_bytes=100_000_000, keep_days=1)
    yield opened
    opened.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tools.sandbox.history.test_history import *
root, data, when = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
history = history_of(root, open_changes(data, keep_bytes=100_000_000, keep_days=1))
if when == "in a program":
    history.begin(caller("killed"))
    (root / "a.txt").write_text("by the program")
    os.kill(os.getpid(), signal.SIGKILL)
class Killer:
    most_bytes = 10_000_000
    def keeping(self, path, before, after):
        block = history.of(caller("killed")).keeping(path, before, after)
        block.__enter__()
        os.kill(os.getpid(), signal.SIGKILL)
Sandbox(root).recorded(Killer()).write("a.txt", b"never written")
"""


def kill(root: Path, data: Path, when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, root, data, when], check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_killed_between_keeping_and_writing_there_is_nothing_to_undo(
    tmp_path: Path, root: Path, changes: Changes
) -> None:
    (root / "a.txt").write_text("one")
    kill(root, tmp_path / "data", "in a write")
    (change,) = found(root, changes)
    assert changes.own(ANN).content(change) == b"one"
    (step,) = Undo(changes.own(ANN), Sandbox(root)).plan([change])
    assert (step.action, step.why) == ("none", "it is as it was")


def test_what_a_program_did_whose_server_was_killed_is_found_at_the_next_look(
    tmp_path: Path, root: Path, changes: Changes
) -> None:
    (root / "a.txt").write_text("one")
    kill(root, tmp_path / "data", "in a program")
    history = history_of(root, changes)
    history.begin(caller("next"))
    (change,) = found(root, changes)
    assert change.by.call == "killed"
    history.end(caller("next"))
    (root / "a.txt").write_text("by a person")
    history.begin(caller("later"))
    assert found(root, changes) == [change]


def test_two_servers_share_a_root_and_lose_no_change(
    tmp_path: Path, root: Path, changes: Changes
) -> None:
    other = open_changes(tmp_path / "data", keep_bytes=100_000_000, keep_days=1)
    one, two = history_of(root, changes), history_of(root, other)
    one.begin(caller("one"))
    two.begin(caller("two"))
    (root / "a.txt").write_text("a")
    two.end(caller("two"))
    (root / "b.txt").write_text("b")
    one.end(caller("one"))
    assert [(each.by.call, each.path) for each in found(root, changes)] == [
        ("one", "b.txt"),
        ("two", "a.txt"),
    ]
    other.close()


def test_a_file_tool_that_writes_while_a_program_runs_keeps_its_own_change(
    root: Path, changes: Changes
) -> None:
    (root / "a.txt").write_text("one")
    history = history_of(root, changes)
    history.begin(caller("program"))
    Sandbox(root).recorded(history.of(caller("tool"))).write("a.txt", b"two")
    history.end(caller("program"))
    assert [each.by.call for each in found(root, changes)] == ["tool"]


def test_a_write_that_fails_leaves_no_change(root: Path, changes: Changes) -> None:
    history = history_of(root, changes)
    after = FileState("a" * 64, 0)
    with (
        pytest.raises(OSError, match="no space"),
        history.of(caller("tool")).keeping("a.txt", Found(ABSENT), after),
    ):
        raise OSError("no space")
    assert found(root, changes) == []


def test_several_changes_of_a_file_are_taken_back_as_one(root: Path, changes: Changes) -> None:
    history = history_of(root, changes)
    sandbox = Sandbox(root).recorded(history.of(caller("tool")))
    (root / "a.txt").write_text("zero")
    for text in (b"one", b"two", b"three"):
        sandbox.write("a.txt", text)
    sandbox.write("new.txt", b"one")
    sandbox.write("new.txt", b"two")
    own = changes.own(ANN)
    undo = Undo(own, sandbox)
    undo.take_back(undo.plan(found(root, changes)))
    assert (root / "a.txt").read_text() == "zero"
    assert not (root / "new.txt").exists()


def test_what_somebody_changed_since_is_overwritten_only_by_force(
    root: Path, changes: Changes
) -> None:
    history = history_of(root, changes)
    sandbox = Sandbox(root).recorded(history.of(caller("tool")))
    (root / "a.txt").write_text("one")
    sandbox.write("a.txt", b"two")
    (root / "a.txt").write_text("mine")
    undo, all_of_them = Undo(changes.own(ANN), sandbox), found(root, changes)
    (step,) = undo.take_back(undo.plan(all_of_them))
    assert step.why == "it was changed since"
    undo.take_back(undo.plan(all_of_them, force=True))
    assert (root / "a.txt").read_text() == "one"


@pytest.mark.boundary
def test_a_file_that_changes_after_the_question_is_left_alone(root: Path, changes: Changes) -> None:
    history = history_of(root, changes)
    sandbox = Sandbox(root).recorded(history.of(caller("tool")))
    (root / "a.txt").write_text("one")
    sandbox.write("a.txt", b"two")
    undo = Undo(changes.own(ANN), sandbox)
    steps = undo.plan(found(root, changes))
    (root / "a.txt").write_text("mine")
    (step,) = undo.take_back(steps)
    assert "changed meanwhile" in step.why
    assert (root / "a.txt").read_text() == "mine"


@pytest.mark.boundary
@pytest.mark.parametrize("target", ["inside", "../outside"])
def test_nothing_is_put_back_through_a_directory_that_became_a_link(
    root: Path, changes: Changes, target: str
) -> None:
    history = history_of(root, changes)
    sandbox = Sandbox(root).recorded(history.of(caller("tool")))
    (root / "d").mkdir()
    (root / "d/a.txt").write_text("one")
    history.begin(caller("program"))
    (root / "d/a.txt").unlink()
    history.end(caller("program"))
    undo = Undo(changes.own(ANN), sandbox)
    steps = undo.plan(found(root, changes))
    assert steps[0].action == "put back"
    (root / target).mkdir()
    (root / "d").rmdir()
    (root / "d").symlink_to(target)
    (step,) = undo.take_back(steps)
    assert step.action == "none"
    assert list((root / target).iterdir()) == []


@pytest.mark.boundary
def test_nothing_is_put_back_where_it_is_closed_to_writes(root: Path, changes: Changes) -> None:
    history = history_of(root, changes)
    history.begin(caller("program"))
    history.end(caller("program"))
    history.begin(caller("program"))
    (root / ".envrc").write_text("evil")
    history.end(caller("program"))
    undo = Undo(changes.own(ANN), Sandbox(root))
    steps = undo.plan(found(root, changes))
    assert [(step.action, "protected" in step.why) for step in steps] == [("none", True)]


def look(
    root: Path,
    known: Mapping[str, FileState] | None = None,
    *,
    is_after: bool = False,
    limits: Limits = Limits(),  # noqa: B008  # it cannot be changed
) -> Observed:
    fd = os.open(root, os.O_RDONLY)
    try:
        return walk(fd, known or {}, is_after=is_after, limits=limits)
    finally:
        os.close(fd)


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    known = {name: state._replace(signature=_signed(path)) for name, state in files(tmp_path)}
    assert look(tmp_path, known).contents == {}
    path.write_text("two")
    assert len(look(tmp_path, known).contents) == 1


def files(root: Path) -> list[tuple[str, FileState]]:
    return list(look(root).files.items())


def _signed(path: Path) -> str:
    """The signature of a file that is settled."""
    status = path.stat()
    numbers = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return ":".join(map(str, (*numbers, status.st_ctime_ns)))


def test_a_file_that_was_written_just_now_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    known = look(tmp_path).files
    assert known["a.txt"].signature == ""
    assert len(look(tmp_path, known).contents) == 1


def test_what_is_passed_over_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").write_text("log")
    (tmp_path / "node_modules/x").mkdir(parents=True)
    (tmp_path / "env").mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10_000_000_000)
    found = look(tmp_path)
    assert {path: state.why for path, state in found.files.items()} == {
        ".gitignore": "",
        "a.log": "ignored by git",
        "node_modules": "made by tools",
        "env": "made by tools",
        "link": "a link",
        "pipe": "no regular file",
        "sparse": "too large",
    }
    assert len(found.contents) == 1


def test_a_file_that_is_ignored_by_now_is_still_seen_after_a_program(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    path = tmp_path / "d/a.txt"
    path.write_text("one")
    known = look(tmp_path).files
    path.write_text("two")
    (tmp_path / ".gitignore").write_text("d/\n")
    assert look(tmp_path, known, is_after=True).files["d/a.txt"].state != known["d/a.txt"].state
    assert "d/a.txt" not in look(tmp_path, known).files


def test_a_flood_of_files_or_levels_crowds_out_nothing_above_it(tmp_path: Path) -> None:
    (tmp_path / "a_flood").mkdir()
    for number in range(2_001):
        (tmp_path / f"a_flood/{number}").touch()
    deep = tmp_path / "deep"
    for _ in range(70):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "x").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.py").write_text("main")
    found = look(tmp_path).files
    assert found["a_flood"].why == "too many files"
    assert found["src/main.py"].is_file
    assert [state.why for path, state in found.items() if path.startswith("deep")] == [
        "too many files"
    ]


def test_no_more_is_kept_than_the_bounds_allow(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(os.urandom(500_000))
    found = look(tmp_path, limits=Limits(content_bytes=1_000_000))
    assert [found.files[name].why for name in ("a", "b", "c")] == ["", "", "too many files"]
    assert [state.why for state in look(tmp_path, limits=Limits(entries=2)).files.values()] == [
        "too many files"
    ]


def test_a_flood_hides_no_change_of_what_was_known(tmp_path: Path) -> None:
    (tmp_path / "z.txt").write_text("one")
    known = look(tmp_path).files
    (tmp_path / "a.bin").write_bytes(os.urandom(500_000))
    (tmp_path / "z.txt").write_text("two")
    limits = Limits(content_bytes=500_001)
    changed = differences(known, look(tmp_path, known, is_after=True, limits=limits).files)
    assert [each.path for each in changed] == ["a.bin", "z.txt"]
    limits = Limits(entries=1)
    changed = differences(known, look(tmp_path, known, is_after=True, limits=limits).files)
    assert [each.path for each in changed] == ["z.txt"]


def test_nothing_in_a_root_that_was_too_large_is_taken_for_new(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    before = look(tmp_path, limits=Limits(entries=1)).files
    assert differences(before, look(tmp_path, before, is_after=True).files) == []


@pytest.mark.boundary
def test_a_directory_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("outside")
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d/a.txt").write_text("inside")
    known = look(root).files
    (root / "d/a.txt").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to(outside)
    found = look(root, known, is_after=True)
    assert set(found.files) == {"d"}
    assert found.contents == {}
