"""The library that the server opens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.composition.library import open_library
from server.hooks.payloads import read_call
from server.hooks.unstored import is_waiting, keep
from server.settings import Settings
from storage.errors import StorageUnavailableError
from storage.library import Library, Shelf
from storage.memory.captured import CONVERSATION
from storage.models import ContextType, Identity, SearchFilter

ME = Identity("local")
CONVERSATIONS = SearchFilter(raw_types=(CONVERSATION,))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = open_library(Settings(data_dir=tmp_path / "data"), {})
    yield library
    library.close()


@pytest.fixture
def shelf(library: Library, tmp_path: Path) -> Shelf:
    """A library whose record was too slow for a turn."""
    for event, payload in {
        "UserPromptSubmit": {"prompt": "We decided to use tabs."},
        "Stop": {"last_assistant_message": "All right."},
    }.items():
        call = read_call("codex", event, {"session_id": "1", **payload}, tmp_path)
        keep(library.directory, call, ME)
    return library.shelf(ME)


def test_a_turn_that_waits_is_shown_and_forgotten(library: Library, shelf: Shelf) -> None:
    kinds, [(_, opening)] = shelf.forgettable(CONVERSATIONS, 5)
    assert kinds == {ContextType.DOCUMENT: 1}
    assert "We decided to use tabs." in opening
    assert shelf.forget_all(CONVERSATIONS) == kinds
    assert shelf.contexts(CONVERSATIONS, 5) == []
    assert not is_waiting(library.directory)


def test_a_turn_that_waits_is_forgotten_at_once(library: Library, shelf: Shelf) -> None:
    assert shelf.forget_all(CONVERSATIONS) == {ContextType.DOCUMENT: 1}
    assert not is_waiting(library.directory)


def test_a_session_that_waits_is_forgotten(library: Library, shelf: Shelf) -> None:
    doomed = shelf.memories.doomed(session_id="1")
    assert not is_waiting(library.directory)
    shelf.memories.forget(doomed)
    assert shelf.contexts(CONVERSATIONS, 5) == []


def test_nothing_is_forgotten_while_what_waits_cannot_be_stored(
    library: Library, shelf: Shelf
) -> None:
    (library.directory / "unstored" / "turn.lock").mkdir()
    with pytest.raises(StorageUnavailableError, match="wait there to be stored"):
        shelf.forget_all(CONVERSATIONS)
    assert is_waiting(library.directory)
