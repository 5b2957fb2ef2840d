import fcntl
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.errors import StorageUnavailableError, VectorIndexError
from storage.index.vector_sync import EXACT_LIMIT, OUTBOX_BATCH
from storage.index.vectors import PROBE
from storage.library import Library, Shelf
from storage.models import Identity, SearchFilter

pytestmark = pytest.mark.slow

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")


def _rows(library: Library, table: str) -> int:
    with library.database.read() as connection:
        return int(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  # our own names
        )


def _embedded(library: Library) -> int:
    """How many passages its HashEmbedder has been given."""
    remembering: Any = library.models.current()[1]
    return int(remembering.embedder.embedded)


def _drain_despite_failures(library: Library, world: ModuleType, tries: int = 5) -> None:
    """What the background thread does: a step that fails is tried again."""
    for _ in range(tries):
        try:
            world.drain(library)
        except VectorIndexError:
            continue
        return
    pytest.fail("the vector index was not repaired")


@pytest.mark.usefixtures("everyone_indexed")
def test_what_is_added_is_embedded_and_delivered_once(library: Library, world: ModuleType) -> None:
    world.add_many(library, "a", 70)
    assert library.shelf(ANN).index_status().embedded == 0
    world.drain(library)
    status = library.shelf(ANN).index_status()
    assert (status.total, status.embedded, status.complete) == (70, 70, True)
    assert library.vectors.count(1, "ann") == 70
    assert world.lost(library, "a", 70, 1) == []
    assert _rows(library, "embed_queue") == _rows(library, "vector_outbox") == 0
    assert _embedded(library) == 70
    assert not library.indexer.step()


@pytest.mark.usefixtures("everyone_indexed")
def test_the_background_thread_works_until_it_is_stopped(
    library: Library, world: ModuleType
) -> None:
    library.indexer.start()
    library.shelf(ANN).add(world.new_document("one", "a first text"))
    while not _rows(library, "vector_collections") or _rows(library, "vector_outbox"):
        pass
    library.indexer.stop()
    assert library.vectors.count(1, "ann") == 1


def test_upkeep_is_done_by_thorough_steps_and_by_the_background_thread(
    library: Library, world: ModuleType
) -> None:
    world.add_many(library, "a", 2100)
    while library.indexer.step(thorough=False):
        pass
    assert library.shelf(ANN).index_status().complete
    assert _rows(library, "lexical_segments") == _rows(library, "vector_collections") == 0
    library.indexer.start()
    while not _rows(library, "vector_collections") or _rows(library, "vector_outbox"):
        pass
    library.indexer.stop()
    assert _rows(library, "lexical_segments") == 2
    assert library.vectors.count(1, "ann") == 2100


def test_nothing_of_chroma_is_loaded_or_written_before_a_user_has_too_many_to_compare(
    tmp_path: Path, other_process: Callable[[Path], Any]
) -> None:
    process = other_process(tmp_path)
    process.ask("add", "a", EXACT_LIMIT)
    process.ask("drain")
    assert process.ask("find", "ax7 lies beside")["mode"] == "hybrid"
    loaded = Path(f"/proc/{process.process.pid}/maps")
    assert "chromadb_rust" not in loaded.read_text()
    assert not (tmp_path / "chroma").exists()
    process.ask("add", "b", 1)
    process.ask("drain")
    assert "chromadb_rust" in loaded.read_text()
    assert process.ask("count") == EXACT_LIMIT + 1


def test_a_collection_is_filled_in_batches_and_dropped_when_its_user_has_few_left(
    library: Library, world: ModuleType
) -> None:
    def check(prefix: str) -> None:
        content = world.content_of(prefix, 5)
        (hit, *_) = library.shelf(ANN).search(content, SearchFilter(), 5).hits
        assert hit.chunk.content == content
        assert hit.dense == pytest.approx(1)

    world.add_many(library, "keep", 1000)
    world.add_many(library, "c", 2100, BOB)
    for _ in range(2):
        world.add_many(library, "a", 1500)
        waiting = set()
        world.embed(library)
        while library.indexer.step():
            waiting.add(_rows(library, "vector_outbox"))
            check("a")
        assert len(waiting) > 2500 / OUTBOX_BATCH
        assert library.vectors.count(1, "ann") == 2500
        assert world.lost(library, "a", 1500, 100) == world.lost(library, "keep", 1000, 100) == []
        library.shelf(ANN).delete_document("text", "a")
        check("keep")
        world.drain(library)
        check("keep")
        assert (library.vectors.count(1, "ann"), library.vectors.count(1, "bob")) == (0, 2100)
    library.shelf(BOB).delete_document("text", "c")
    world.drain(library)
    assert (_rows(library, "vector_collections"), _rows(library, "vector_outbox")) == (0, 0)
    assert list((library.directory / "chroma").iterdir()) == []


@pytest.mark.parametrize("shrinks", [False, True])
def test_a_kill_while_a_collection_is_filled_or_emptied_loses_nothing(
    library: Library, world: ModuleType, other_process: Callable[[Path], Any], *, shrinks: bool
) -> None:
    world.add_many(library, "keep", 900)
    world.add_many(library, "a", 2100)
    world.embed(library)
    if shrinks:
        world.drain(library)
        library.shelf(ANN).delete_document("text", "a")
    child = other_process(library.directory)
    child.tell("drain")
    most = 1900 if shrinks else 2500
    while not 0 < _rows(library, "vector_outbox") < most:
        pass
    child.kill()
    assert _rows(library, "vector_outbox")
    assert world.lost_in_search(library, "keep", 900, 100) == []
    world.drain(library)
    library.indexer.check()
    world.drain(library)
    assert library.vectors.count(1, "ann") == (0 if shrinks else 3000)
    assert world.lost_in_search(library, "keep", 900, 100) == []


@pytest.mark.usefixtures("everyone_indexed")
def test_users_have_indexes_of_their_own(library: Library, world: ModuleType) -> None:
    world.add_many(library, "a", 5)
    world.add_many(library, "b", 3, BOB)
    world.drain(library)
    assert (library.vectors.count(1, "ann"), library.vectors.count(1, "bob")) == (5, 3)
    assert library.shelf(BOB).index_status().total == 3


@pytest.mark.usefixtures("everyone_indexed")
def test_a_deletion_leaves_every_index(library: Library, shelf: Shelf, world: ModuleType) -> None:
    shelf.add(world.new_document("one", "unicorns", entities=("Una",)))
    shelf.add(world.new_document("two", "dragons"))
    world.drain(library)
    assert shelf.delete_document("text", "one") == 1
    world.drain(library)
    for table in ("contexts", "embeddings", "chunks"):
        assert _rows(library, table) == 1, table
    assert _rows(library, "mentions") == 0
    assert library.vectors.count(1, "ann") == 1


@pytest.mark.usefixtures("everyone_indexed")
def test_what_is_deleted_while_it_is_embedded_does_not_come_back(
    library: Library, shelf: Shelf, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.add(world.new_document("one", "unicorns"))
    embed = library.models.current()[1].embed_passages

    def delete_meanwhile(texts: list[str]) -> Any:
        shelf.delete_document("text", "one")
        return embed(texts)

    monkeypatch.setattr(library.models.current()[1], "embed_passages", delete_meanwhile)
    world.drain(library)
    assert _rows(library, "embeddings") == 0
    assert library.vectors.count(1, "ann") == 0


def test_an_embedder_that_fails_is_reported_and_the_queue_stays(
    library: Library, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(texts: list[str]) -> Any:
        raise StorageUnavailableError("no model today")

    library.shelf(ANN).add(world.new_document("one", "unicorns"))
    with monkeypatch.context() as broken:
        broken.setattr(library.models.current()[1], "embed_passages", fail)
        library.indexer.start()
        while not library.shelf(ANN).index_status().problem:
            pass
        assert library.shelf(ANN).index_status().problem == "no model today"
        found = library.shelf(ANN).search("unicorns", SearchFilter(), 5)
        assert (found.mode, len(found.hits)) == ("lexical", 1)
        library.indexer.stop()
    world.drain(library)
    assert library.shelf(ANN).index_status().complete


def _garbage(directory: Path) -> None:
    (directory / "chroma.sqlite3").write_bytes(random.Random(1).randbytes(100_000))  # noqa: S311  # any bytes


def _garbage_inside(directory: Path) -> None:
    with (directory / "chroma.sqlite3").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(random.Random(1).randbytes(40_000))  # noqa: S311  # any bytes


def _no_graph(directory: Path) -> None:
    folders = [path for path in directory.iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        shutil.rmtree(folder)


def _garbage_graph(directory: Path) -> None:
    files = list(directory.rglob("*.bin"))
    assert files
    for path in files:
        path.write_bytes(random.Random(1).randbytes(5_000))  # noqa: S311  # any bytes


def _empty(directory: Path) -> None:
    (directory / "chroma.sqlite3").write_bytes(b"")


DAMAGES = [shutil.rmtree, _garbage, _garbage_inside, _no_graph, _garbage_graph, _empty]
BY_DAMAGE = pytest.mark.parametrize(
    "damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_")
)


@pytest.fixture(scope="module")
def full_directory(world: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with more vectors than are compared one by one."""
    directory = tmp_path_factory.mktemp("full") / "data"
    library = Library(directory, world.HashEmbedder())
    world.add_many(library, "a", 2100)
    world.drain(library)
    library.close()
    return directory


@BY_DAMAGE
def test_a_damaged_index_is_rebuilt_after_a_search_without_embedding_again(
    full_directory: Path,
    tmp_path: Path,
    world: ModuleType,
    library_of: Callable[..., Library],
    damage: Callable[[Path], None],
) -> None:
    shutil.copytree(full_directory, tmp_path / "data")
    damage(tmp_path / "data" / "chroma")
    library = library_of(world.HashEmbedder())
    found = library.shelf(ANN).search(world.content_of("a", 5), SearchFilter(), 5)
    assert found.hits[0].chunk.content == world.content_of("a", 5)
    assert found.hits[0].dense == pytest.approx(1)
    _drain_despite_failures(library, world)
    assert library.vectors.count(1, "ann") == 2100
    assert world.lost(library, "a", 2100, 40) == []
    assert _embedded(library) == 0


@BY_DAMAGE
def test_a_damaged_index_is_rebuilt_when_something_is_added(
    full_directory: Path,
    tmp_path: Path,
    world: ModuleType,
    library_of: Callable[..., Library],
    damage: Callable[[Path], None],
) -> None:
    shutil.copytree(full_directory, tmp_path / "data")
    damage(tmp_path / "data" / "chroma")
    library = library_of(world.HashEmbedder())
    world.add_many(library, "b", 150)
    _drain_despite_failures(library, world)
    assert library.vectors.count(1, "ann") == 2250
    assert world.lost(library, "a", 2100, 40) == world.lost(library, "b", 150, 10) == []
    assert _embedded(library) == 150


def test_a_lost_graph_is_noticed_before_so_much_is_added_that_it_looks_whole(
    full_directory: Path, tmp_path: Path, world: ModuleType, library_of: Callable[..., Library]
) -> None:
    shutil.copytree(full_directory, tmp_path / "data")
    _no_graph(tmp_path / "data" / "chroma")
    library = library_of(world.HashEmbedder())
    world.add_many(library, "b", PROBE + 100)
    world.drain(library)
    assert world.lost(library, "a", 2100, 40) == []
    assert _embedded(library) == PROBE + 100


@BY_DAMAGE
def test_an_index_that_is_damaged_while_it_is_open_keeps_searches_right(
    full_directory: Path,
    tmp_path: Path,
    world: ModuleType,
    library_of: Callable[..., Library],
    damage: Callable[[Path], None],
) -> None:
    shutil.copytree(full_directory, tmp_path / "data")
    library = library_of(world.HashEmbedder())
    assert library.vectors.count(1, "ann") == 2100
    damage(tmp_path / "data" / "chroma")
    world.add_many(library, "b", 150)
    _drain_despite_failures(library, world)
    for prefix in ("a", "b"):
        found = library.shelf(ANN).search(world.content_of(prefix, 5), SearchFilter(), 5)
        assert found.hits[0].chunk.content == world.content_of(prefix, 5)
        assert found.hits[0].dense == pytest.approx(1)


@pytest.mark.slow
def test_a_process_that_idled_while_another_wrote_loses_nothing_of_it(
    tmp_path: Path, other_process: Callable[[Path], Any]
) -> None:
    idle = other_process(tmp_path)
    idle.ask("add", "first", 2001)
    idle.ask("drain")
    assert idle.ask("count") == 2001  # its index is open from here on
    busy = other_process(tmp_path)
    busy.ask("add", "busy", 2500)
    busy.ask("drain")
    busy.end()
    idle.ask("add", "late", 1300)
    idle.ask("drain")
    idle.end()
    fresh = other_process(tmp_path)
    assert fresh.ask("count") == 5801
    assert fresh.ask("lost", "busy", 2500, 25) == fresh.ask("lost", "late", 1300, 25) == []


def test_a_process_finds_at_once_what_another_has_just_written(
    tmp_path: Path, other_process: Callable[[Path], Any]
) -> None:
    one, two = other_process(tmp_path), other_process(tmp_path)
    one.ask("add", "one", 2100)
    one.ask("drain")
    assert two.ask("find", "onex7 lies beside")["mode"] == "hybrid"
    two.ask("add", "two", 40)
    assert one.ask("find", "twox7")["hits"][0][:2] == ["two", "twox7 lies beside twoy1 and twoz0"]
    two.ask("drain")
    found = one.ask("find", "twox7 lies beside twoy1 and twoz0")
    assert found["hits"][0][0] == "two"
    assert found["hits"][0][2] == pytest.approx(1)


def test_only_the_holder_of_the_lock_works(library: Library, world: ModuleType) -> None:
    world.add_many(library, "a", 3)
    with (library.directory / "indexer.lock").open("ab") as lock:  # as another process holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not library.indexer.step()
        assert library.shelf(ANN).index_status().embedded == 0
    world.drain(library)
    assert library.shelf(ANN).index_status().embedded == 3


@pytest.mark.slow
def test_two_processes_that_write_at_once_lose_nothing(
    tmp_path: Path, other_process: Callable[[Path], Any]
) -> None:
    writers = {name: other_process(tmp_path) for name in ("p", "q")}
    for part in range(3):
        for name, writer in writers.items():
            writer.tell("add", f"{name}{part}", 400)
            writer.tell("drain")
    for writer in writers.values():
        assert [writer.answer() for _ in range(6)] == ["added", "drained"] * 3
    for writer in writers.values():
        writer.ask("drain")  # the other may have held the lease when this one looked
        writer.end()
    fresh = other_process(tmp_path)
    assert fresh.ask("count") == 2400
    for name in writers:
        for part in range(3):
            assert fresh.ask("lost", f"{name}{part}", 400, 20) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 22))]
)
def test_a_kill_at_any_instant_of_an_ingest_loses_nothing_acknowledged(
    seed: int, tmp_path: Path, world: ModuleType, other_process: Callable[[Path], Any]
) -> None:
    chance = random.Random(seed)  # noqa: S311  # a place in time, not a secret
    said: list[dict[str, str]] = []
    for life in range(3):
        child = other_process(tmp_path)
        child.tell("ingest", f"life{life}doc", 1000)
        said += [child.answer() for _ in range(chance.randrange(1, 60))]
        said += child.kill()
    state: dict[str, str] = {}
    for line in said:
        ((what, raw_id),) = line.items()
        state[raw_id] = what
    fresh = other_process(tmp_path)
    assert fresh.ask("drain") == "drained"
    for raw_id in chance.sample(sorted(state), min(25, len(state))):
        hits = [hit for hit in fresh.ask("find", raw_id)["hits"] if hit[0] == raw_id]
        contents = " ".join(hit[1] for hit in hits)
        if not hits:  # said to be deleted, or died in the deletion before it could say so
            assert state[raw_id] != "added" or raw_id.endswith(("4", "9")), raw_id
            continue
        whole = f"{raw_id} second" in contents or (
            f"{raw_id} first" in contents and f"{raw_id}w399" in contents
        )
        assert whole, raw_id
        assert all(hit[2] is not None for hit in hits)
        assert state[raw_id] != "deleted"
        assert state[raw_id] != "replaced" or f"{raw_id} second" in contents
    fresh.end()
    library = Library(tmp_path, world.HashEmbedder())
    assert _rows(library, "embeddings") == _rows(library, "chunks")
    assert library.shelf(ANN).index_status().total == _rows(
        library, "chunks"
    )  # by the lexical index
    library.close()
