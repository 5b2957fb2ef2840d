import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.keeping.changes.changes import Changes, open_changes
from storage.keeping.changes.models import (
    ABSENT,
    Caller,
    Change,
    ChangeFilter,
    Difference,
    FileState,
    Observed,
    OwnChanges,
    pack,
)
from storage.models import Identity

ANN, EVE = Identity(user_id="ann"), Identity(user_id="eve")
ROOT = "/project"
ALL = ChangeFilter(root=ROOT)


@pytest.fixture
def changes(tmp_path: Path) -> Iterator[Changes]:
    opened = open_changes(tmp_path / "data", keep_bytes=1_000_000, keep_days=1)
    yield opened
    opened.close()


def kept(changes: Changes, path: str, content: bytes, whose: Identity = ANN) -> int:
    """Keeps that a file was emptied."""
    digest = hashlib.sha256(content).hexdigest()
    difference = Difference(path, FileState(digest, 0o100644), FileState("e" * 64, 0o100644))
    by = Caller(os.urandom(8).hex(), whose, "session", "write_file")
    return changes.keep(ROOT, by, difference, {digest: pack(content)})


def contents_of(own: OwnChanges, found: list[Change]) -> list[bytes | None]:
    return [own.content(change) for change in found]


def test_beyond_the_bound_the_oldest_changes_go_and_the_newest_stays(changes: Changes) -> None:
    own = changes.own(ANN)
    for number in range(8):
        kept(changes, f"{number}.bin", os.urandom(300_000))
    paths = [change.path for change in own.find(ALL)]
    assert paths == ["7.bin", "6.bin", "5.bin"]
    assert all(contents_of(own, own.find(ALL)))
    kept(changes, "huge.bin", os.urandom(5_000_000))
    assert [change.path for change in own.find(ALL)] == ["huge.bin"]


def test_what_is_too_old_goes_at_the_next_change(tmp_path: Path) -> None:
    changes = open_changes(tmp_path / "data", keep_bytes=1_000_000, keep_days=0)
    kept(changes, "a.txt", b"one")
    kept(changes, "b.txt", b"two")
    assert [change.path for change in changes.own(ANN).find(ALL)] == ["b.txt"]
    changes.close()


def test_a_content_stays_as_long_as_one_change_needs_it(changes: Changes) -> None:
    own = changes.own(ANN)
    kept(changes, "a.txt", b"same")
    number = kept(changes, "b.txt", b"same")
    (second, first) = own.find(ALL)
    changes.withdraw(ROOT, number, Difference("b.txt", second.before, second.after))
    assert contents_of(own, [first]) == [b"same"]
    assert own.find(ALL) == [first]


def test_nobody_reads_or_forgets_what_is_anothers(changes: Changes) -> None:
    kept(changes, "a.txt", b"of ann", ANN)
    kept(changes, "a.txt", b"of eve", EVE)
    own = changes.own(EVE)
    assert contents_of(own, own.find(ALL)) == [b"of eve"]
    assert own.forget(ALL) == 1
    assert contents_of(changes.own(ANN), changes.own(ANN).find(ALL)) == [b"of ann"]
    assert own.find(ALL) == []


def test_changes_are_found_by_call_session_time_and_folder(changes: Changes) -> None:
    for path in ("src/a.py", "src2/b.py", "src"):
        kept(changes, path, path.encode())
    own = changes.own(ANN)
    newest, *_, oldest = own.find(ALL)
    found = own.find(ChangeFilter(root=ROOT, path="src"))
    assert [change.path for change in found] == ["src", "src/a.py"]
    assert own.find(ChangeFilter(root=ROOT, call=oldest.by.call[:12])) == [oldest]
    assert own.find(ChangeFilter(root=ROOT, since=newest.time)) == [newest]
    assert own.find(ChangeFilter(root=ROOT, ids=[oldest.id])) == [oldest]
    assert own.find(ChangeFilter(root=ROOT, session_id="another")) == []
    assert own.find(ChangeFilter(root="/other")) == []


def test_of_two_servers_only_one_takes_its_look_at_a_root(tmp_path: Path, changes: Changes) -> None:
    other = open_changes(tmp_path / "data", keep_bytes=1_000_000, keep_days=1)
    known = changes.root_state(ROOT, None)
    seen = Observed({"a.txt": FileState("a" * 64, 0o100644)})
    assert changes.advance(ROOT, known, seen) is not None
    assert other.advance(ROOT, known, seen) is None
    assert other.root_state(ROOT, known).files == seen.files
    other.close()


def test_what_a_file_tool_changed_is_no_difference_at_the_next_look(changes: Changes) -> None:
    before = FileState(hashlib.sha256(b"one").hexdigest(), 0o100644, "", "signature")
    known = changes.advance(ROOT, changes.root_state(ROOT, None), Observed({"a.txt": before}))
    kept(changes, "a.txt", b"one")
    now = changes.root_state(ROOT, known).files["a.txt"]
    assert (now.state, now.signature) == ("e" * 64, "")
    difference = Difference("b.txt", ABSENT, before)
    number = changes.keep(ROOT, Caller("c", ANN, "s", "t"), difference, {})
    changes.withdraw(ROOT, number, difference)
    assert "b.txt" not in changes.root_state(ROOT, None).files
