import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.agent.todos import Todo, Todos
from storage.database import Database
from storage.memory.entries import Entries
from storage.models import Identity, NewEntry

ANN = Identity("ann")
OTHERS = (
    Identity("bob"),
    Identity("Ann"),
    Identity("ann", "phone"),
    Identity("ann", "", "coder"),
    Identity("ann", "phone", "coder"),
)

statuses = st.sampled_from(["pending", "in_progress", "completed"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
todos = st.builds(Todo, st.just(""), texts, statuses, texts)
lists = st.lists(todos, max_size=8)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with closing(Database(tmp_path_factory.mktemp("todos") / "toolcrib.db")) as database:
        yield database


def _contents(todos: list[Todo]) -> list[str]:
    return [todo.content for todo in todos]


def _ids(todos: list[Todo]) -> list[str]:
    return [todo.id for todo in todos]


def test_a_list_takes_the_place_of_the_earlier_one(database: Database) -> None:
    lists = Todos(ANN, database)
    assert lists.listed("monday") == []
    lists.replace("monday", [Todo("", "Sow"), Todo("", "Reap")])
    stored = lists.replace(
        "monday", [Todo("b", "Mow", "in_progress", "Mowing"), Todo("a", "Rake", "completed")]
    )
    assert stored == lists.listed("monday")
    assert stored == [Todo("b", "Mow", "in_progress", "Mowing"), Todo("a", "Rake", "completed", "")]
    assert lists.replace("monday", []) == []
    assert lists.listed("monday") == []


def test_missing_ids_are_numbers_that_neither_list_has(database: Database) -> None:
    lists = Todos(ANN, database)
    assert _ids(lists.replace("s", [Todo("", "a"), Todo("", "b"), Todo("2", "c")])) == [
        *("1", "3", "2")
    ]
    assert _ids(lists.replace("s", [Todo("", "new"), Todo("3", "b")])) == ["4", "3"]


def test_a_todo_without_an_id_keeps_that_of_the_same_one_before(database: Database) -> None:
    lists = Todos(ANN, database)
    lists.replace("s", [Todo("", "a"), Todo("", "b"), Todo("", "b")])
    again = lists.replace("s", [Todo("", "b", "completed"), Todo("", "b"), Todo("", "b")])
    assert _ids(again) == ["2", "3", "4"]


def test_an_id_that_is_given_is_nobody_elses(database: Database) -> None:
    lists = Todos(ANN, database)
    lists.replace("s", [Todo("", "a")])
    assert _ids(lists.replace("s", [Todo("1", "else"), Todo("", "a")])) == ["1", "2"]


@given(lists, lists)
def test_the_same_list_twice_is_the_same_list(
    lasting: Database, first: list[Todo], second: list[Todo]
) -> None:
    lists = Todos(ANN, lasting)
    lists.replace("twice", first)
    once = lists.replace("twice", second)
    assert lists.replace("twice", second) == once == lists.listed("twice")
    assert len(set(_ids(once))) == len(second)
    assert [(each.content, each.status, each.active_form) for each in once] == [
        (each.content, each.status, each.active_form) for each in second
    ]


def test_each_session_has_its_own_list(database: Database) -> None:
    lists = Todos(ANN, database)
    for session in ("monday", "tuesday", "Monday", ""):
        lists.replace(session, [Todo("", f"of {session}")])
    for session in ("monday", "tuesday", "Monday", ""):
        assert _contents(lists.listed(session)) == [f"of {session}"]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_nobody_reads_or_changes_the_list_of_another(database: Database, other: Identity) -> None:
    Todos(ANN, database).replace("s", [Todo("x", "of Ann")])
    assert Todos(other, database).listed("s") == []
    Todos(other, database).replace("s", [Todo("x", "of another")])
    Todos(other, database).replace("s", [])
    assert _contents(Todos(ANN, database).listed("s")) == ["of Ann"]


def test_a_list_that_cannot_be_stored_leaves_the_earlier_one(database: Database) -> None:
    lists = Todos(ANN, database)
    kept = lists.replace("s", [Todo("", "keep")])
    wrong = Todo("", "no", "sometime")  # type: ignore[arg-type]  # the record refuses it
    with pytest.raises(sqlite3.IntegrityError):
        lists.replace("s", [Todo("", "new"), wrong])
    assert lists.listed("s") == kept


def test_lists_that_are_replaced_at_once_never_mix(database: Database) -> None:
    lists = Todos(ANN, database)
    wanted = {name: [f"{name}{number}" for number in range(20)] for name in "abcd"}
    seen: list[list[str]] = []

    def write(name: str) -> None:
        for _ in range(10):
            lists.replace("s", [Todo("", content) for content in wanted[name]])
            seen.append(_contents(lists.listed("s")))

    threads = [threading.Thread(target=write, args=(name,)) for name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 40
    assert all(each in wanted.values() for each in seen)


def test_a_list_is_forgotten_with_its_session(database: Database) -> None:
    entries = Entries(database)
    entry = NewEntry(session_id="s", kind="call", time=1.7e9, action="todo", target="", said="")
    seq = entries.record(ANN, entry)
    for identity in (ANN, Identity("bob")):
        Todos(identity, database).replace("s", [Todo("", "Sow")])
    Todos(ANN, database).replace("other", [Todo("", "Reap")])
    entries.forget(ANN, [seq])
    assert Todos(ANN, database).listed("s") == []
    assert _contents(Todos(ANN, database).listed("other")) == ["Reap"]
    assert _contents(Todos(Identity("bob"), database).listed("s")) == ["Sow"]
