import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.keeping.erasure import erase
from storage.library import Library, Shelf
from storage.locks import locked
from storage.memory.consolidation import Consolidation
from storage.memory.promotion import MUCH_USED, UNUSED_SECONDS
from storage.models import ContextType, Identity, MemoryLayer, NewContext, NewEntry, SearchFilter

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")
LONG_AGO = 1_700_000_000.0


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.memory.consolidation.FIRST_SECONDS", 0.0)


@pytest.fixture
def consolidation(library: Library) -> Consolidation:
    return Consolidation(library.database, library.entries, library.models.current()[1])


def record(library: Library, said: str, owner: Identity = ANN, **given: Any) -> int:
    new: dict[str, Any] = {
        "session_id": "monday",
        "kind": "call",
        "time": LONG_AGO,
        "action": "write_file",
        "target": said,
        "said": said,
        "importance": 7.0,
    }
    return library.entries.record(owner, NewEntry(**(new | given)))


def _count(library: Library, layer: MemoryLayer, owner: Identity = ANN) -> int:
    return library.shelf(owner).memories.stats().layers[layer].count


def _work(consolidation: Consolidation) -> int:
    steps = 0
    while consolidation.step():
        steps += 1
    return steps


def test_everybodys_layers_are_kept_up_by_themselves(
    library: Library, consolidation: Consolidation
) -> None:
    for owner in (ANN, BOB):
        record(library, "The heron came.", owner)
        stored = library.shelf(owner).memories.remember("Herons stand still")
        with library.database.write() as connection:
            connection.execute(
                "UPDATE memories SET uses = ? WHERE context_seq ="
                " (SELECT seq FROM contexts WHERE id = ?)",
                (MUCH_USED, stored.context.id),
            )
    assert consolidation.is_due
    assert _work(consolidation) > 0
    assert not consolidation.is_due
    for owner in (ANN, BOB):
        assert [_count(library, layer, owner) for layer in MemoryLayer] == [1, 1, 1, 1]
        stats = library.shelf(owner).memories.stats()
        assert (stats.promotable, stats.unsummed, stats.persistable) == (0, 0, 0)
    assert _work(consolidation) == 0


def test_what_is_recorded_later_is_taken_up_later(
    library: Library, consolidation: Consolidation
) -> None:
    record(library, "2 hits", is_recall=True)
    assert _work(consolidation) == 0
    record(library, "The heron came.", time=LONG_AGO + 1)
    record(library, "The kestrel came.", session_id="now", time=time.time())
    assert _work(consolidation) > 0
    assert _count(library, MemoryLayer.IMPORTANT) == 2
    assert _count(library, MemoryLayer.SUMMARY) == 1


def test_a_session_that_only_looked_is_not_looked_at_again(
    library: Library, consolidation: Consolidation
) -> None:
    record(library, "2 hits", is_recall=True)
    _work(consolidation)
    with library.database.read() as connection:
        assert [row[0] for row in connection.execute("SELECT told_until FROM sessions")] == [
            LONG_AGO
        ]


def test_what_was_forgotten_while_it_was_away_is_not_made_again(
    library: Library, consolidation: Consolidation
) -> None:
    record(library, "The heron came.")
    _work(consolidation)
    library.shelf(ANN).forget_all(SearchFilter(memory=True))
    assert _work(consolidation) == 0
    assert library.shelf(ANN).count(SearchFilter()) == 0


def test_the_indexer_does_it_in_the_background_unless_it_is_told_not_to(
    library_of: Callable[..., Library], world: ModuleType, tmp_path: Path
) -> None:
    for consolidate in (True, False):
        library = library_of(
            world.HashEmbedder(), tmp_path / str(consolidate), consolidate=consolidate
        )
        record(library, "The heron came.")
        library.indexer.start()
        if not consolidate:
            library.indexer.stop()
        while consolidate and _count(library, MemoryLayer.SUMMARY) == 0:
            pass  # a thread tells no event
        assert _count(library, MemoryLayer.IMPORTANT) == consolidate


def test_only_the_process_that_holds_the_lock_does_it(library: Library) -> None:
    record(library, "The heron came.")
    with locked(library.directory / "indexer.lock", wait=True):
        assert not library.indexer._tend()  # as its loop does
    assert _count(library, MemoryLayer.IMPORTANT) == 0
    assert library.indexer._tend()  # the same
    assert _count(library, MemoryLayer.IMPORTANT) == 1


def _remains(directory: Path, mark: str) -> list[str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return [path.name for path in files if mark.encode() in path.read_bytes().lower()]


def test_no_byte_of_what_was_made_from_something_forgotten_is_on_the_disk(
    library: Library, shelf: Shelf, consolidation: Consolidation, world: ModuleType
) -> None:
    new = NewContext(context_type=ContextType.KNOWLEDGE, title="", text="zqmark is known")
    known = shelf.add(new).context.id
    entry = record(library, "zqmark was written", context_ids=(known,))
    alone = record(library, "zqother was written")
    record(library, "The kestrel came.")
    _work(consolidation)
    world.drain(library)
    assert {each.opening for each in shelf.memories.listed(MemoryLayer.IMPORTANT, 9)} >= {
        "write_file zqmark was written\nzqmark was written"
    }
    assert library.database.fold_log()
    assert _remains(library.directory, "zqmark") != []
    shelf.forget([known])
    library.entries.forget(ANN, [alone])
    _work(consolidation)
    world.drain(library)
    assert erase(library.database)
    assert _remains(library.directory, "zqmark") == []
    assert _remains(library.directory, "zqother") == []
    assert [each.said for each in shelf.memories.entries([entry])] == [""]
    (summary,) = shelf.memories.listed(MemoryLayer.SUMMARY, 9)
    assert "kestrel" in summary.opening


WORDS = ["heron", "kestrel", "tyre", "kettle", "harbour", "violin"]
_STEP = st.one_of(
    st.tuples(
        st.just("record"), st.sampled_from(WORDS), st.sampled_from(["mon", "tue"]), st.booleans()
    ),
    st.tuples(st.just("remember"), st.sampled_from(WORDS), st.sampled_from([2.0, 6.0, 9.0])),
    st.tuples(st.sampled_from(["promote", "aggregate", "persist", "all", "restart", "age", "use"])),
)


class _World:
    """A library, and what it should keep."""

    def __init__(self, directory: Path, make: Callable[[], Any]) -> None:
        self.directory = directory
        self.make = make
        self.library = Library(directory, make())
        self.entries: dict[int, str] = {}
        self.remembered: dict[str, set[str]] = {}

    def record(self, word: str, session: str, matters: bool) -> None:  # as drawn
        said = f"The {word} came."
        number = record(self.library, said, session_id=session, importance=8.0 if matters else 1.0)
        self.entries[number] = said

    def remember(self, word: str, importance: float) -> None:
        text = f"{word} {word}s {importance:g}"
        stored = self.library.shelf(ANN).memories.remember(text, importance=importance)
        self.remembered.setdefault(stored.context.id, set()).add(text)

    def promote(self) -> None:
        self.library.shelf(ANN).memories.promote()

    def aggregate(self) -> None:
        memories = self.library.shelf(ANN).memories
        for due in memories.due_sessions(9)[0]:
            assert memories.keep(due, memories.extract(due, 1_200), "extractive") is not None

    def persist(self) -> None:
        self.library.shelf(ANN).memories.persist()

    def all(self) -> None:
        _work(Consolidation(self.library.database, self.library.entries, self.make()))

    def age(self) -> None:
        with self.library.database.write() as connection:
            connection.execute(
                "UPDATE contexts SET update_time = update_time - ?", (UNUSED_SECONDS,)
            )

    def use(self) -> None:
        ids = tuple(list(self.remembered)[:1])
        record(self.library, "", is_recall=True, target="", context_ids=ids, read_ids=ids)

    def restart(self) -> None:
        self.library.close()
        self.library = Library(self.directory, self.make())

    def check(self) -> None:
        """Every original is there and can be read, and the counts add up."""
        shelf = self.library.shelf(ANN)
        kept = shelf.memories.entries(list(self.entries))
        assert {each.seq: each.said for each in kept} == self.entries
        for context_id, texts in self.remembered.items():
            context, chunks = shelf.get(context_id)
            assert context.memory_layer in {2, 4}
            assert texts <= {line for chunk in chunks for line in chunk.content.split("\n")}
        layers = shelf.memories.stats().layers
        of_memory = sum(layers[layer].count for layer in list(MemoryLayer)[1:])
        assert of_memory == shelf.count(SearchFilter(memory=True)) == shelf.count(SearchFilter())
        promoted = shelf.count(SearchFilter(raw_types=("entry",)))
        summaries = shelf.count(SearchFilter(raw_types=("session",)))
        assert summaries == layers[MemoryLayer.SUMMARY].count <= 2
        assert promoted <= len(set(self.entries.values()))
        assert of_memory == len(self.remembered) + promoted + summaries


@settings(max_examples=25)
@given(steps=st.lists(_STEP, max_size=25))
def test_consolidation_never_loses_an_original(
    steps: list[tuple[Any, ...]], world: ModuleType
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        tried = _World(Path(directory), world.HashEmbedder)
        for name, *given_to_it in steps:
            getattr(tried, name)(*given_to_it)
            tried.check()
        with closing(tried.library):
            tried.all()
            tried.check()
            stats = tried.library.shelf(ANN).memories.stats()
            assert (stats.promotable, stats.unsummed, stats.persistable) == (0, 0, 0)
