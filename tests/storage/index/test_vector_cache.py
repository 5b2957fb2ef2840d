"""The vector cache: it finds what the record has, whatever was written since, and by whom."""

import random
from collections.abc import Callable
from types import ModuleType

import pytest

from storage.contexts.filters import Selection, compile_filter
from storage.database import View
from storage.index import vector_cache
from storage.index.embedding_models import Embedding, scan
from storage.index.vector_cache import VectorCache
from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter, Stored

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")
LEAST = 0.6


def _know(library: Library, text: str, identity: Identity = ANN) -> Stored:
    new = NewContext(context_type=ContextType.KNOWLEDGE, title="", text=text)
    return library.shelf(identity).add(new)


def _alike(library: Library, text: str, identity: Identity = ANN) -> tuple[set[int], set[int]]:
    """The chunks that the cache finds, and those that the record has."""
    model, embedder = library.models.current()
    (vector,) = Embedding.of_passages(model, embedder, [text])
    with library.database.read() as connection:
        selection = Selection(connection, compile_filter(identity, SearchFilter()))
        found = library.engine.alike(View(connection, identity), vector, selection, LEAST)
        exact = scan(connection, vector, identity.user_id)
    return set(found), {seq for seq, cosine in exact.items() if cosine >= LEAST}


def test_it_finds_what_the_record_has_after_any_changes(
    library_of: Callable[..., Library], world: ModuleType
) -> None:
    libraries = [library_of(world.HashEmbedder()) for _ in range(2)]  # as two processes
    chance = random.Random(7)  # noqa: S311  # any mixture
    words = [f"word{number}" for number in range(6)]
    stored: list[tuple[Identity, str]] = []
    most = 0
    for _ in range(300):
        library, identity = chance.choice(libraries), chance.choice([ANN, ANN, BOB])
        text = " ".join(chance.choices(words, k=4))
        match chance.choices(["know", "document", "forget", "embed", "compact"], [8, 3, 4, 2, 1])[
            0
        ]:
            case "know":
                stored.append((identity, _know(library, text, identity).context.id))
            case "document":
                library.shelf(identity).add(world.new_document(chance.choice(words), text))
            case "forget" if stored:
                owner, gone = stored.pop(chance.choice([0, -1]))
                library.shelf(owner).forget([gone])
            case "embed":
                world.drain(library)
            case "compact":
                library.database.compact()
        found, exact = _alike(chance.choice(libraries), text)
        assert found == exact
        most = max(most, len(exact))
    assert most > 3


def test_what_another_process_told_is_merged_into(
    library_of: Callable[..., Library], world: ModuleType
) -> None:
    one, other = (library_of(world.HashEmbedder()) for _ in range(2))
    _know(one, "Ann keeps bees behind the brewery")
    tea = "Ann likes her tea strong with a little milk and no sugar"
    first = _know(other, tea)
    again = _know(one, f"{tea} honey")
    assert (again.outcome, again.context.id) == ("merged", first.context.id)


def test_few_vectors_are_held_however_many_users_there_are(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "MOST_BYTES", 3 * 2 * 64 * 4)
    cache: VectorCache = library.engine.cache
    for number in range(12):
        for text in ("the rope and the boat", "a heron in the water"):
            _know(library, text, Identity(f"user{number}"))
            _alike(library, text, Identity(f"user{number}"))
    assert {user_id for user_id, _ in cache._held} == {"user9", "user10", "user11"}
