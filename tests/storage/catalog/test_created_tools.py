from contextlib import closing
from pathlib import Path

import pytest

from storage.catalog.created_tools import MOST_TOOLS, CreatedTool, CreatedToolStore
from storage.database import Database
from storage.errors import StorageError
from storage.models import Identity

ANN, BOB = Identity("ann", "desk", "coder"), Identity("bob")
SOURCE = "def double(x: int) -> int:\n    return 2 * x\n"
SAID = {"description": "Doubles.", "input_schema": {"type": "object"}}


@pytest.fixture
def store(database: Database) -> CreatedToolStore:
    return CreatedToolStore(database)


def keep(
    store: CreatedToolStore, whose: Identity = ANN, name: str = "double", source: str = SOURCE
) -> CreatedTool:
    return store.add(whose, name, source, SAID, session_id="monday", client="inspector")


def test_a_tool_is_kept_as_it_was_given(store: CreatedToolStore, database: Database) -> None:
    kept = keep(store)
    assert (kept.version, kept.source, kept.definition, kept.client) == (
        1,
        SOURCE,
        SAID,
        "inspector",
    )
    assert (kept.identity, kept.session_id, kept.is_whole) == (ANN, "monday", True)
    assert store.get("ann", "double") == kept
    with closing(Database(database.path)) as other:  # acknowledged is written
        assert CreatedToolStore(other).get("ann", "double") == kept


def test_the_same_name_again_is_a_new_version_and_the_old_one_stays(
    store: CreatedToolStore,
) -> None:
    keep(store)
    second = keep(store, source=SOURCE.replace("2 * x", "x + x"))
    assert second.version == 2
    assert store.everybodys() == [second]
    assert [each.version for each in store.versions("ann", "double")] == [1, 2]


def test_nobody_has_or_removes_a_tool_of_somebody_else(store: CreatedToolStore) -> None:
    anns, bobs = keep(store), keep(store, BOB)
    assert store.remove("carol", "double") is None
    assert store.remove("ann", "double") == anns
    assert store.everybodys() == [bobs]
    assert bobs.version == 1


def test_a_removed_tool_is_gone_and_its_number_is_not_used_again(store: CreatedToolStore) -> None:
    keep(store)
    store.remove("ann", "double")
    assert store.get("ann", "double") is None
    assert store.everybodys() == []
    assert store.remove("ann", "double") is None
    assert keep(store).version == 2
    assert len(store.versions("ann", "double")) == 2


def test_whoever_changes_a_tool_is_noticed_by_others(
    store: CreatedToolStore, database: Database
) -> None:
    with closing(Database(database.path)) as opened:
        other = CreatedToolStore(opened)
        seen = [other.changes()]
        keep(store)
        seen.append(other.changes())
        store.remove("ann", "double")
        seen.append(other.changes())
        assert seen == sorted(set(seen))
        store.remove("ann", "double")
        assert other.changes() == seen[-1]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE created_tools SET source = 'import os'",
        "UPDATE created_tools SET definition = '{'",
        "UPDATE created_tools SET definition = x'ff'",
    ],
)
def test_a_tool_that_was_changed_in_the_record_is_not_whole(
    store: CreatedToolStore, database: Database, change: str
) -> None:
    keep(store)
    with database.write() as connection:
        connection.execute(change)
    (found,) = store.everybodys()
    assert not found.is_whole


def test_one_user_cannot_fill_the_record(store: CreatedToolStore, tmp_path: Path) -> None:
    for number in range(MOST_TOOLS):
        keep(store, name=f"double_{number}")
    with pytest.raises(StorageError, match="at most 200"):
        keep(store)
    assert keep(store, name="double_0").version == 2
    assert keep(store, BOB).version == 1
