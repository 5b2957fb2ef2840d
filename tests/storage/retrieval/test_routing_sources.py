from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter
from storage.retrieval.routing import Source

ANN = Identity("ann")
METADATA: tuple[dict[str, object], ...] = (
    {},
    {"team": "Support"},
    {"team": ["field", "SALES"], "year": 2024.0},
    {"team": {"name": "support"}, "year": True},
)

kinds = st.lists(st.sampled_from(ContextType), max_size=2, unique=True).map(tuple)
raw_types = st.lists(st.sampled_from(["file", "text", "mail"]), max_size=2, unique=True).map(tuple)
prefixes = st.sampled_from(["", "docs/", "docs/a/", "Docs/", "docs2/", "/mnt/", "%"])
label_values = st.lists(
    st.sampled_from(["support", "FIELD", "sales", "2024", "true", "1", "x"]), max_size=2
).map(tuple)
labels = st.dictionaries(st.sampled_from(["team", "year", "none"]), label_values, max_size=2)
sources = st.builds(
    Source,
    name=st.just("s"),
    context_types=kinds,
    raw_types=raw_types,
    under=prefixes,
    labels=labels,
)
all_criteria = st.builds(
    SearchFilter,
    context_types=kinds,
    raw_types=raw_types,
    raw_id=st.none() | st.just("docs/a/b.md"),
    under=prefixes,
    labels=labels.map(lambda given: tuple(given.items())),
    memory=st.sampled_from([None, True, False]),
    memory_layers=st.sampled_from([(), (2,), (4,)]),
)


@pytest.fixture(scope="module")
def filled(world: ModuleType) -> Iterator[Library]:
    """Contexts of every kind, kind of source, folder and metadata; some are memories."""
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory) / "data", world.HashEmbedder())
        shelf = library.shelf(ANN)
        names = ("docs/a.md", "docs/a/b.md", "docs2/a.md", "/mnt/docs/a.md", "%")
        several = enumerate(product(names, ("file", "text"), METADATA))
        for number, (raw_id, raw_type, metadata) in several:
            new = world.new_document(
                raw_id, f"heron {number}", raw_type=raw_type, metadata=metadata
            )
            kind = tuple(ContextType)[number % 3]
            shelf.add(replace(new, context_type=kind, raw_id=f"{raw_id}{number}"[:-1] or raw_id))
        for layer in (2, 3, 4):
            text = f"A kestrel of layer {layer}"
            shelf.add(
                NewContext(
                    context_type=ContextType.KNOWLEDGE,
                    title=text,
                    text=text,
                    memory_layer=layer,
                    metadata={"team": "support"},
                )
            )
        yield library
        library.close()


@given(source=sources)
def test_a_source_holds_what_its_filter_lets_through(filled: Library, source: Source) -> None:
    shelf = filled.shelf(ANN)
    every = shelf.contexts(SearchFilter(), 1_000)
    let_through = {context.id for context in shelf.contexts(source.criteria, 1_000)}
    assert {context.id for context in every if source.holds(context)} == let_through


@given(source=sources, criteria=all_criteria)
def test_a_narrowed_source_lets_through_what_both_do(
    filled: Library, source: Source, criteria: SearchFilter
) -> None:
    shelf = filled.shelf(ANN)
    fitting = {context.id for context in shelf.contexts(criteria, 1_000) if source.holds(context)}
    narrowed = source.narrowed(criteria)
    found = [] if narrowed is None else shelf.contexts(narrowed, 1_000)
    assert {context.id for context in found} == fitting


def test_a_source_that_narrows_nothing_holds_all_but_memories(filled: Library) -> None:
    shelf = filled.shelf(ANN)
    every = shelf.contexts(SearchFilter(), 1_000)
    held = [context for context in every if Source(name="all").holds(context)]
    assert len(every) - len(held) == 3
    assert not any(context.memory_layer for context in held)
