import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.errors import StorageUnavailableError
from storage.index import maintenance, vector_sync
from storage.index.embed_queue import WORDS_ONLY
from storage.index.embedders.base import DEFAULT_FLOOR, Embedder, scaled_cosine
from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter, SearchResult

pytestmark = pytest.mark.slow

ANN = Identity(user_id="ann")


@pytest.fixture(autouse=True)
def indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives 150 vectors a collection of the vector index."""
    monkeypatch.setattr(vector_sync, "EXACT_LIMIT", 50)
    monkeypatch.setattr(maintenance, "FOLD_CHUNKS", 100)


@pytest.fixture
def one(world: ModuleType) -> Any:
    return world.HashEmbedder("one", 64)


@pytest.fixture
def two(world: ModuleType) -> Any:
    return world.HashEmbedder("two", 32)


@pytest.fixture
def opened(tmp_path: Path, library_of: Callable[..., Library]) -> Callable[..., Library]:
    """Opens the library with a wanted embedder, and others that can be made."""

    def make(wanted: Embedder, *others: Embedder) -> Library:
        known = {embedder.model_id: embedder for embedder in others}
        return library_of(wanted, make=known.get)

    return make


@pytest.fixture
def filled(opened: Callable[..., Library], one: Any, world: ModuleType) -> None:
    """A data directory that began with the first embedder."""
    library = opened(one)
    world.add_many(library, "a", 150)
    world.drain(library)
    library.close()
    one.embedded = 0


def _models(library: Library) -> list[tuple[str, str, int]]:
    """Scheme, state and number of vectors of each model."""
    with library.database.read() as connection:
        return [
            tuple(row)
            for row in connection.execute(
                "SELECT scheme, state, (SELECT count(*) FROM embeddings WHERE model_seq = m.seq)"
                " FROM models m ORDER BY state"
            )
        ]


def _collections(library: Library) -> int:
    with library.vectors._open() as client:
        return len(client.list_collections())


def _search(library: Library, query: str) -> SearchResult:
    return library.shelf(ANN).search(query, SearchFilter(), 5)


def _knowledge(text: str) -> NewContext:
    return NewContext(context_type=ContextType.KNOWLEDGE, title="", text=text)


def _check_finds(library: Library, world: ModuleType, prefix: str, number: int) -> None:
    content = world.content_of(prefix, number)
    found = _search(library, content)
    assert (found.mode, found.hits[0].chunk.content) == ("hybrid", content)
    assert found.hits[0].dense == pytest.approx(1)


@pytest.mark.usefixtures("filled")
def test_another_embedder_takes_over_while_the_old_one_answers(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    library = opened(two, one)
    shelf = library.shelf(ANN)
    assert shelf.index_status().next_embedded == 0
    assert _models(library) == [("one", "current", 150), ("two", "next", 0)]
    seen = set()
    while library.indexer.step():
        status = shelf.index_status()
        seen.add(status.next_embedded)
        assert (status.total, status.embedded) == (150, 150)
        _check_finds(library, world, "a", 7)
    assert {150, None} <= seen
    assert len(seen) > 4  # run by run
    assert shelf.index_status().next_embedded is None
    assert _models(library) == [("two", "current", 150)]
    assert (one.embedded, two.embedded) == (0, 150)
    assert library.vectors.count(2, "ann") == 150
    assert _collections(library) == 1


def test_another_embedder_leaves_out_what_is_found_by_words_only(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    log = NewContext(title="Log", text="mooring 4711", metadata={WORDS_ONLY: True})
    opened(one).shelf(ANN).add(replace(log, raw_type="file", raw_id="a.log"))
    library = opened(two, one)
    world.drain(library)
    assert _models(library) == [("two", "current", 0)]
    assert (one.embedded, two.embedded) == (0, 0)


@pytest.mark.usefixtures("filled")
def test_what_is_added_and_deleted_meanwhile_reaches_both(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    library = opened(two, one)
    world.add_many(library, "b", 3)
    library.shelf(ANN).add(world.new_document("gone", "a text to be deleted"))
    while library.vectors.count(2, "ann") < 154:
        assert library.indexer.step()
        _check_finds(library, world, "a", 7)
    _check_finds(library, world, "b", 1)
    assert _models(library)[1] == ("two", "next", 154)
    library.shelf(ANN).delete_document("text", "gone")
    world.drain(library)
    _check_finds(library, world, "b", 1)
    _check_finds(library, world, "a", 140)
    assert _models(library) == [("two", "current", 153)]
    assert library.vectors.count(2, "ann") == 153


@pytest.mark.usefixtures("filled")
def test_where_the_old_embedder_cannot_be_made_words_find_until_the_new_one_has_all(
    opened: Callable[..., Library], two: Any, world: ModuleType
) -> None:
    library = opened(two)
    found = _search(library, "ax7")
    assert (found.mode, found.hits[0].chunk.content) == ("lexical", world.content_of("a", 7))
    assert "those of one" in found.status.problem
    assert "two replaces them" in found.status.problem
    world.drain(library)
    _check_finds(library, world, "a", 7)


@pytest.mark.usefixtures("filled")
def test_a_process_with_the_old_settings_follows_at_its_next_search(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    able, unable = opened(one, two), opened(one)
    changed = opened(two, one)
    _check_finds(able, world, "a", 7)
    world.drain(changed)
    _check_finds(able, world, "a", 7)
    found = _search(unable, "ax7")
    assert (found.mode, len(found.hits)) == ("lexical", 1)
    assert "those of two" in found.status.problem


@pytest.mark.usefixtures("filled")
def test_a_process_with_the_old_settings_leaves_the_new_model_to_the_others(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    unable = opened(one)
    changed = opened(two, one)
    with pytest.raises(StorageUnavailableError, match="those of two"):
        world.drain(unable)
    assert _models(unable) == [("one", "current", 150), ("two", "next", 0)]
    world.drain(changed)
    assert _models(changed) == [("two", "current", 150)]


@pytest.mark.usefixtures("filled")
def test_who_changes_his_mind_keeps_the_old_vectors(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    hasty = opened(two, one)
    for _ in range(3):
        hasty.indexer.step()
    hasty.close()
    library = opened(one)
    assert library.shelf(ANN).index_status().next_embedded is None
    world.drain(library)
    assert _models(library) == [("one", "current", 150)]
    assert one.embedded == 0
    _check_finds(library, world, "a", 7)


@pytest.mark.usefixtures("filled")
def test_a_third_embedder_takes_the_place_of_one_that_had_not_yet_all(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    hasty = opened(two, one)
    for _ in range(3):
        hasty.indexer.step()
    three = world.HashEmbedder("three", 16)
    library = opened(three, one)
    assert _models(library)[1] == ("three", "next", 0)
    world.drain(library)
    assert _models(library) == [("three", "current", 150)]
    assert _collections(library) == 1


@pytest.mark.usefixtures("filled")
def test_who_stops_after_any_step_goes_on_from_there(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    worked = True
    while worked:
        library = opened(two, one)
        worked = library.indexer.step()
        _check_finds(library, world, "a", 7)
        library.close()
    assert two.embedded == 150
    library = opened(two)
    assert _models(library) == [("two", "current", 150)]
    assert library.vectors.count(2, "ann") == 150
    assert world.lost(library, "a", 150, 10) == []


@pytest.mark.usefixtures("filled")
def test_an_old_embedder_that_fails_does_not_hold_the_new_one_up(
    opened: Callable[..., Library],
    one: Any,
    two: Any,
    world: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(texts: Sequence[str]) -> Any:
        raise StorageUnavailableError("its endpoint is gone")

    monkeypatch.setattr(one, "embed_passages", fail)
    library = opened(two, one)
    world.add_many(library, "b", 3)
    assert library.indexer.step()
    assert library.shelf(ANN).index_status().problem == "its endpoint is gone"
    world.drain(library)
    assert _models(library) == [("two", "current", 153)]
    _check_finds(library, world, "b", 1)


def test_knowledge_is_compared_by_the_model_that_searches_compare_by(
    opened: Callable[..., Library], one: Any, two: Any, world: ModuleType
) -> None:
    first = opened(one)
    first.shelf(ANN).add(_knowledge("herons wade at the river bank at dawn"))
    library = opened(two, one)
    stored = library.shelf(ANN).add(_knowledge("at dawn herons wade at the river bank"))
    assert stored.outcome == "merged"
    world.drain(library)
    stored = library.shelf(ANN).add(_knowledge("herons wade at the river bank at dawn"))
    assert stored.outcome == "merged"
    assert [model[:2] for model in _models(library)] == [("two", "current")]


def test_a_model_that_is_no_longer_what_it_was_is_told(
    opened: Callable[..., Library], world: ModuleType
) -> None:
    library = opened(world.HashEmbedder("m", 64))
    library.shelf(ANN).add(world.new_document("one", "about herons"))
    world.drain(library)
    library.close()
    library = opened(world.HashEmbedder("m", 48))
    found = _search(library, "herons")
    assert (found.mode, len(found.hits)) == ("lexical", 1)
    assert "vectors of 48 numbers, but the stored ones have 64" in found.status.problem
    library.shelf(ANN).add(world.new_document("two", "about egrets"))
    with pytest.raises(StorageUnavailableError, match="no longer the same model"):
        world.drain(library)


def test_thresholds_scale_with_the_room_that_a_model_leaves() -> None:
    assert scaled_cosine(0.85, DEFAULT_FLOOR) == pytest.approx(0.85)
    assert scaled_cosine(0.85, 0.8) == pytest.approx(0.96)
    assert scaled_cosine(1, 0.8) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))]
)
def test_a_kill_at_any_instant_of_a_change_of_embedders_loses_nothing(
    seed: int, tmp_path: Path, world: ModuleType, other_process: Callable[..., Any]
) -> None:
    chance = random.Random(seed)  # noqa: S311  # a place in time, not a secret
    directory = tmp_path / "data"
    library = Library(directory, world.HashEmbedder())
    world.add_many(library, "a", 2100)
    world.drain(library)
    for share in sorted(chance.sample(range(1, 4200), 3)):
        child = other_process(directory, "other", 32)
        child.tell("drain")
        # Each vector that is made and each that is removed is a step of 4,200.
        while sum(n if scheme == "other" else 2100 - n for scheme, _, n in _models(library)) < (
            share if len(_models(library)) > 1 else 0
        ):
            pass
        child.kill()
    last = other_process(directory, "other", 32)
    last.ask("drain")
    assert last.ask("count") == 2100
    assert last.ask("lost", "a", 2100, 50) == []
    last.end()
    assert _models(library) == [("other", "current", 2100)]
    library.close()
