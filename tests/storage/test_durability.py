"""Nothing that was acknowledged is lost, whatever is killed or full at whatever instant."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.database import Database
from storage.errors import BackupError, StorageUnavailableError
from storage.index.indexer import read_backlog
from storage.keeping.backup import back_up, restore
from storage.keeping.erasure import erase
from storage.keeping.examination import damage, unindexed
from storage.library import Library, Shelf
from storage.models import Identity, SearchFilter

pytestmark = pytest.mark.slow

ANN = Identity(user_id="ann")
LIVES = 2

KILLED = """
import os, sys
from pathlib import Path
from storage.keeping.backup import back_up, restore
from storage.database import Database

what, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])

def kill(_done, _total):
    os.kill(os.getpid(), 9)

if what == "backup":
    back_up(Database(source), target, force=True, on_copied=kill)
else:
    restore(source, target, force=True, on_copied=kill)
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")


def texts(library: Library) -> set[str]:
    """Every word of every chunk."""
    with library.database.read() as connection:
        rows = connection.execute("SELECT content FROM chunks").fetchall()
    return {word for row in rows for word in row[0].split()}


def check_sound(library: Library, world: ModuleType) -> None:
    """Nothing half is there, and both indexes say what the record says once the queues are done."""
    world.drain(library)
    library.indexer.check()
    world.drain(library)
    with library.database.read() as connection:
        assert damage(connection) == ""
        assert not read_backlog(connection)
        assert unindexed(connection) == 0
        stored, vectors, indexed, empty = connection.execute(
            "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM embeddings),"
            " (SELECT count(*) FROM vector_collections),"
            " (SELECT count(*) FROM contexts x WHERE NOT EXISTS"
            " (SELECT 1 FROM chunks c WHERE c.context_seq = x.seq))"
        ).fetchone()
    assert stored == vectors
    assert library.vectors.count(1, ANN.user_id) == indexed * stored
    assert empty == 0


def check_said(library: Library, said: Sequence[Mapping[str, str]]) -> None:
    """What was said to be there is there, unless it was about to go; what was gone is gone."""
    told = {kind: {line[kind] for line in said if kind in line} for kind in ("there", "gone")}
    leaving = {line["leaving"] for line in said if "leaving" in line}
    words = texts(library)
    assert told["there"] - leaving <= words
    assert told["gone"].isdisjoint(words)


def killed(what: str, source: Path, target: Path) -> int:
    """How a process ended that is killed when pages of a backup or a restore have been copied."""
    arguments = [what, str(source), str(target)]
    return subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False).returncode


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 14))]
)
def test_processes_that_do_everything_and_are_killed_lose_nothing_acknowledged(
    seed: int, tmp_path: Path, world: ModuleType, other_process: Callable[[Path], Any]
) -> None:
    chance = random.Random(seed)  # noqa: S311  # an instant, not a secret
    data = tmp_path / "data"
    lives: list[list[dict[str, str]]] = []  # what each process said, in its order
    for life in range(LIVES):
        children = [other_process(data) for _ in "pq"]
        heard: list[list[dict[str, str]]] = [[] for _ in children]
        for name, child in zip("pq", children, strict=True):
            child.tell("churn", f"{name}{life}s", chance.randrange(1000), 10_000)
        for _ in range(chance.randrange(10, 60)):
            which = chance.randrange(len(children))
            heard[which].append(children[which].answer())
        for child, lines in zip(children, heard, strict=True):
            lines.extend(child.kill())
        lives += heard
    said = [line for lines in lives for line in lines]
    leaving = [line for line in said if "leaving" in line]
    with closing(Library(data, world.HashEmbedder())) as library:
        check_said(library, said)
        check_sound(library, world)
        check_said(library, said)
    made = [(lines, at) for lines in lives for at, line in enumerate(lines) if "backup" in line]
    for number, (lines, at) in enumerate(made[-2:]):
        restore(Path(lines[at]["backup"]), tmp_path / f"restored{number}")
        with closing(Library(tmp_path / f"restored{number}", world.HashEmbedder())) as restored:
            check_said(restored, lines[:at] + leaving)
            check_sound(restored, world)
    assert any("there" in line for line in said)


def test_a_backup_while_two_processes_write_holds_all_that_was_said_before(
    tmp_path: Path, world: ModuleType, other_process: Callable[[Path], Any]
) -> None:
    data = tmp_path / "data"
    writers = [other_process(data) for _ in "pq"]
    for name, writer in zip("pq", writers, strict=True):
        writer.tell("ingest", f"{name}doc", 10_000)
    before = [writer.answer() for writer in writers for _ in range(25)]
    with closing(Database(data / "toolcrib.db")) as database:
        back_up(database, tmp_path / "copy")
    after = [writer.answer() for writer in writers for _ in range(5)]
    assert len(after) == 10  # they went on
    for writer in writers:
        writer.kill()
    restore(tmp_path / "copy", tmp_path / "restored")
    with closing(Library(tmp_path / "restored", world.HashEmbedder())) as restored:
        deleted = {line["deleted"] for line in before if "deleted" in line}
        added = {line["added"] for line in before if "added" in line} - deleted
        kept = {each.raw_id for each in restored.shelf(ANN).contexts(SearchFilter(), 10_000)}
        missing = {raw_id for raw_id in added - kept if not raw_id.endswith(("4", "9"))}
        assert missing == set()  # those that end so are deleted next, perhaps just then
        assert deleted.isdisjoint(kept)
        check_sound(restored, world)


def test_a_backup_that_is_killed_leaves_the_earlier_one(tmp_path: Path, world: ModuleType) -> None:
    with closing(Library(tmp_path / "data", world.HashEmbedder())) as library:
        world.add_many(library, "a", 6000)
        (tmp_path / "copies").mkdir()
        target = tmp_path / "copies" / "copy"
        back_up(library.database, target)
        earlier = target.read_bytes()
        assert killed("backup", library.directory / "toolcrib.db", target) == -9
        assert target.read_bytes() == earlier
        back_up(library.database, target, force=True)


def test_a_forced_restore_that_is_killed_leaves_the_directory_as_it_was(
    tmp_path: Path, world: ModuleType
) -> None:
    with closing(Library(tmp_path / "data", world.HashEmbedder())) as library:
        world.add_many(library, "a", 6000)
        back_up(library.database, tmp_path / "copy")
        library.shelf(ANN).add(world.new_document("later", "later than the backup"))
    assert killed("restore", tmp_path / "copy", tmp_path / "data") == -9
    with closing(Library(tmp_path / "data", world.HashEmbedder())) as library:
        assert library.shelf(ANN).count(SearchFilter(raw_id="later")) == 1
        check_sound(library, world)
    assert restore(tmp_path / "copy", tmp_path / "data", force=True) is not None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["/bin/umount", "-l", str(disk)], check=True)


@as_root
def test_a_disk_that_fills_up_keeps_what_was_acknowledged_and_goes_on_when_there_is_room(
    small_disk: Path, tmp_path: Path, world: ModuleType
) -> None:
    (small_disk / "filler").write_bytes(b"x" * 2_000_000)
    acknowledged = []
    with closing(Library(small_disk / "data", world.HashEmbedder())) as library:
        shelf = library.shelf(ANN)

        def fill() -> None:
            for number in range(10_000):
                shelf.add(world.new_document(f"d{number}", f"d{number} lies here " * 300))
                acknowledged.append(f"d{number}")

        with pytest.raises(StorageUnavailableError) as caught:
            fill()
        assert "full" in caught.value.message
        assert "Free some disk space" in caught.value.suggestions[0]
        with pytest.raises(BackupError, match=r"full|No space"):
            back_up(library.database, small_disk / "copy")
        with pytest.raises(StorageUnavailableError, match="full"):
            erase(library.database)
        assert {path.name for path in small_disk.iterdir()} == {"data", "filler"}
        found = {each.raw_id for each in shelf.contexts(SearchFilter(), 10_000)}
        assert found == set(acknowledged)
        (small_disk / "filler").unlink()
        shelf.add(world.new_document("last", "there is room again"))
        back_up(library.database, tmp_path / "copy")
    with closing(Library(small_disk / "data", world.HashEmbedder())) as library:
        assert set(acknowledged) | {"last"} == {
            each.raw_id for each in library.shelf(ANN).contexts(SearchFilter(), 10_000)
        }
        shutil.copytree(library.directory, tmp_path / "roomy")
    with closing(Library(tmp_path / "roomy", world.HashEmbedder())) as library:
        check_sound(library, world)


def test_two_processes_write_on_while_the_file_is_written_anew(
    tmp_path: Path, world: ModuleType, other_process: Callable[[Path], Any]
) -> None:
    data = tmp_path / "data"
    writers = [other_process(data) for _ in "pq"]
    for name, writer in zip("pq", writers, strict=True):
        writer.tell("churn", name, 7, 10_000)
    said = []
    with closing(Database(data / "toolcrib.db")) as database:
        for _ in range(4):
            said += [writer.answer() for writer in writers for _ in range(8)]
            erase(database)
    for writer in writers:
        said += writer.kill()
    with closing(Library(data, world.HashEmbedder())) as library:
        check_said(library, said)
        check_sound(library, world)


def test_a_search_during_a_rebuild_of_the_vectors_finds_the_same(
    library: Library, world: ModuleType
) -> None:
    world.add_many(library, "a", 2100)
    world.drain(library)
    query = world.content_of("a", 77)
    before = library.shelf(ANN).search(query, SearchFilter(), 3).hits[0]
    library.indexer.rebuild_vectors()
    assert library.shelf(ANN).search(query, SearchFilter(), 3).hits[0].dense == before.dense
    check_sound(library, world)
    assert library.shelf(ANN).search(query, SearchFilter(), 3).hits[0].chunk == before.chunk


def test_a_rebuild_of_the_words_indexes_what_is_added_meanwhile(
    library: Library, world: ModuleType
) -> None:
    world.add_many(library, "a", 500)
    library.indexer.rebuild_words()
    library.shelf(ANN).add(world.new_document("late", "a latecomer"))
    assert library.shelf(ANN).search("latecomer", SearchFilter(), 3).hits
    library.indexer.step()
    check_sound(library, world)
    for number in (0, 250, 499):
        hits = library.shelf(ANN).search(f"ax{number}", SearchFilter(), 3, alpha=0).hits
        assert hits[0].chunk.content == world.content_of("a", number)


def test_a_deletion_that_fails_half_way_says_how_much_had_gone(
    library: Library, shelf: Shelf, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(250):
        shelf.add(world.new_document(f"d{number}", f"text {number}"))
    delete_some = library.contexts.delete_some
    done: list[Any] = []

    def fail_later(*given: Any) -> Any:
        if done:
            raise StorageUnavailableError("the disk is full.", suggestions=("Free some.",))
        done.append(given)
        return delete_some(*given)

    monkeypatch.setattr(library.contexts, "delete_some", fail_later)
    with pytest.raises(StorageUnavailableError, match="200 contexts were already deleted"):
        shelf.forget_all(SearchFilter(raw_types=("text",)))
    assert shelf.count(SearchFilter()) == 50
