from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.contexts.knowledge import MAX_MERGED_CHARS, MERGE_SIMILARITY, _plain
from storage.errors import StorageUnavailableError
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter, Stored

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")
TEA = "Ann likes her tea strong with a little milk and no sugar at all"
TEA_AGAIN = "Ann likes her tea strong with a little milk and no sugar"
COFFEE = "Bob keeps bees behind the old brewery"


def _know(shelf: Shelf, text: str, **given: Any) -> Stored:
    return shelf.add(NewContext(context_type=ContextType.KNOWLEDGE, title="", text=text, **given))


def _text(shelf: Shelf, stored: Stored) -> str:
    return "\n".join(piece.content for piece in shelf.get(stored.context.id)[1])


def test_what_says_nearly_the_same_is_merged_and_counted(library: Library) -> None:
    shelf = library.shelf(ANN)
    first = _know(shelf, TEA, keywords=("tea",), entities=("Ann",), importance=3.0)
    again = _know(shelf, f"{TEA_AGAIN} honey", keywords=("honey",), importance=7.0)
    assert (first.outcome, again.outcome) == ("added", "merged")
    assert again.context.id == first.context.id
    assert again.similarity is not None
    assert MERGE_SIMILARITY <= again.similarity < 1
    assert again.context.merge_count == 1
    assert again.context.keywords == ("tea", "honey")
    assert again.context.entities == ("Ann",)
    assert again.context.importance == 7.0
    assert _text(shelf, again) == f"{TEA}\n{TEA_AGAIN} honey"
    assert shelf.count(SearchFilter()) == 1


def test_what_says_something_else_stays_apart(library: Library) -> None:
    shelf = library.shelf(ANN)
    assert [_know(shelf, text).outcome for text in (TEA, COFFEE)] == ["added", "added"]
    assert shelf.count(SearchFilter()) == 2


def test_what_is_said_already_is_not_said_twice(library: Library) -> None:
    shelf = library.shelf(ANN)
    _know(shelf, TEA)
    again = _know(shelf, TEA_AGAIN)
    assert again.outcome == "merged"
    assert _text(shelf, again) == TEA
    assert _know(shelf, TEA).context.merge_count == 2


def test_merged_knowledge_is_found_at_once_and_after_it_is_embedded(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    _know(shelf, COFFEE)
    world.drain(library)
    first = _know(shelf, TEA)
    merged = f"{TEA_AGAIN} honey"
    _know(shelf, merged)
    for _ in range(2):
        (hit,) = shelf.search("honey", SearchFilter(), 5).hits
        assert hit.context.id == first.context.id
        assert hit.dense is not None
        world.drain(library)
    third = _know(shelf, f"{merged} please")
    assert third.context.id == first.context.id


def test_nothing_is_merged_across_identities_or_kinds(library: Library) -> None:
    _know(library.shelf(ANN), TEA)
    assert _know(library.shelf(BOB), TEA).outcome == "added"
    assert _know(library.shelf(PHONE), TEA).outcome == "added"
    shelf = library.shelf(ANN)
    event = shelf.add(NewContext(context_type=ContextType.EVENT, title="", text=TEA))
    document = shelf.add(NewContext(title="tea", text=TEA, raw_type="text", raw_id="tea"))
    assert (event.outcome, document.outcome) == ("added", "added")
    assert _know(shelf, TEA).outcome == "merged"


def test_a_long_text_is_merged_into_the_very_same_text_alone(library: Library) -> None:
    shelf = library.shelf(ANN)
    long = "\n\n".join(f"Paragraph {number}. {TEA}. " * 12 for number in range(4))
    assert _know(shelf, long).outcome == "added"
    assert _know(shelf, f"{long} more").outcome == "added"
    assert _know(shelf, long).outcome == "merged"


def test_knowledge_does_not_grow_without_end(library: Library) -> None:
    shelf = library.shelf(ANN)
    words = " ".join(f"common{number}" for number in range(100))
    ids = {_know(shelf, f"{words} rare{number}").context.id for number in range(12)}
    lengths = [len(_text(shelf, Stored(shelf.get(each)[0], "added"))) for each in ids]
    assert len(ids) > 1
    assert max(lengths) <= MAX_MERGED_CHARS + 1


def test_without_an_embedder_only_the_same_text_is_merged(
    library: Library, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = library.shelf(ANN)

    def unavailable(_texts: list[str]) -> Any:
        raise StorageUnavailableError("The endpoint is away.")

    with monkeypatch.context() as away:
        away.setattr(library.models.current()[1], "embed_passages", unavailable)
        outcomes = [_know(shelf, text).outcome for text in (TEA, f"{TEA} now", TEA)]
    assert outcomes == ["added", "added", "merged"]
    world.drain(library)
    assert shelf.index_status().complete


def test_two_that_say_the_same_at_once_end_as_one(
    library_of: Callable[..., Library], world: ModuleType, tmp_path: Path
) -> None:
    libraries = [library_of(world.HashEmbedder()) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(lambda n: _know(libraries[n % 2].shelf(ANN), TEA), range(12)))
    assert len({each.context.id for each in stored}) == 1
    assert sorted(each.outcome for each in stored) == ["added", *["merged"] * 11]
    assert libraries[0].shelf(ANN).get(stored[0].context.id)[0].merge_count == 11


@given(st.text(), st.text())
def test_a_text_is_plainly_in_what_it_was_put_into(before: str, text: str) -> None:
    assert _plain(text) in _plain(f"{before} {text}")
