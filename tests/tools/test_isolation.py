"""Nobody reads, counts or deletes what is somebody else's, through whichever tool there is."""

import json
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tools
from server.app import App, build
from server.settings import Settings
from storage.database import Database
from storage.directory.models import RESEARCHERS, Item, Record
from storage.models import Identity
from tools.core.collections import Collections
from tools.core.context import Origin, RequestContext
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolScope

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")
SECRET = "ultramarine"  # noqa: S105  # stands in everything of Ann's, and in no argument of Bob's
DAY = "2026-03-02"
NAME = "Zelda Quist"
SESSION = "monday"

SEEDS: list[tuple[str, dict[str, Any]]] = [
    ("add_document", {"text": f"The {SECRET} kite", "title": "Kites", "entities": [NAME]}),
    ("add_document", {"text": f"# {SECRET}", "raw_type": "text", "raw_id": "n"}),
    ("add_knowledge", {"content": f"Zelda likes {SECRET} kites", "entities": [NAME]}),
    ("add_event", {"content": f"Flew the {SECRET} kite", "event_time": f"{DAY}T10:00:00Z"}),
    ("build_event_summaries", {}),
    ("remember", {"content": f"Kites are {SECRET}", "title": "Kites"}),
    ("remember", {"content": f"Zelda once flew {SECRET} kites in Ely", "importance": 3}),
    ("manage_memory", {"action": "promote", "indices": [1, 2, 3, 4]}),
    ("manage_memory", {"action": "aggregate", "session": SESSION}),
    ("save_profile", {"summary": f"Flies {SECRET} kites", "facts": {"colour": SECRET}}),
    ("save_entity", {"entity_name": NAME, "entity_type": "person", "summary": SECRET}),
    ("save_entity", {"entity_name": f"{SECRET} club", "entity_type": "team"}),
    ("relate_entities", {"source": NAME, "relation": "belongs to", "target": f"{SECRET} club"}),
]

PEOPLE = {
    ANN: Record(
        key="quist",
        name=NAME,
        groups={"department": (f"{SECRET} club",), "program": (f"{SECRET} kites",)},
        texts={"overview": f"Flies {SECRET} kites"},
        items={"publications": (Item(text=f"On {SECRET} kites", year=2021),)},
    ),
    BOB: Record(
        key="quinn",
        name="Zelda Quinn",
        groups={"department": ("Chess club",), "program": ("Kites",)},
        texts={"overview": "Flies kites"},
        items={"publications": (Item(text="On kites", year=2021),)},
    ),
}
"""What is in each one's directory of researchers."""

SOME_ID = "id:"
GUESSES = ["kite", "Kites", "n", "text", NAME, "Zelda", "zelda qvist", "club", DAY, "2026-03", "*"]
GUESSES += [SESSION, "list", "Quist, Zelda"]
GUESSES += [f"{SOME_ID}{number}" for number in range(6)]


def _registry() -> ToolRegistry:
    registry = ToolRegistry()
    discover(registry, tools)
    registry.customize(Collections())  # whose names are then values to choose from
    return registry


CONTEXT_TOOLS = [spec for spec in _registry().specs() if spec.scope is ToolScope.CONTEXT]


def _values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Arguments that somebody could guess who knows what the other keeps."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return st.sampled_from([1, 5, 10, 2021])
        case "array":
            numbered = schema["items"].get("type") == "integer"
            each = st.integers(1, 40) if numbered else st.sampled_from(GUESSES)
            return st.lists(each, min_size=1, max_size=20 if numbered else 3)
        case "object":
            return st.just({})
        case _:
            return st.sampled_from(GUESSES)


@st.composite
def _calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    spec = draw(st.sampled_from(CONTEXT_TOOLS))
    arguments = {}
    for name, schema in spec.input_schema["properties"].items():
        if name in spec.input_schema.get("required", ()) or draw(st.booleans()):
            arguments[name] = draw(_values(schema))
    if "user_id" in arguments:
        arguments["user_id"] = draw(st.sampled_from(["ann", "bob"]))
    for narrower in ("device_id", "agent_id"):
        arguments.pop(narrower, None)
    return spec.name, arguments


def _kept(database: Database, user_id: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that belongs to a user, in every table that says whose its rows are."""
    with database.read() as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND c.name = 'user_id'"
            )
        ]
        kept = {
            table: connection.execute(
                f"SELECT * FROM {table} WHERE user_id = ?",  # noqa: S608  # our own names
                (user_id,),
            ).fetchall()
            for table in tables
            if "queue" not in table and "outbox" not in table
        }
    return {table: sorted(map(tuple, rows)) for table, rows in kept.items()}


async def _seeded(app: App) -> list[str]:
    """Ann's context of every kind; the ids of what is hers."""
    context = RequestContext(Origin(ANN, session_id=SESSION))
    for name, arguments in SEEDS:
        result = await app.manager.execute(name, arguments, context)
        assert not result.is_error, (name, result.text)
    for identity, record in PEOPLE.items():
        app.library.shelf(identity).directories.add(RESEARCHERS, [record])
    await anyio.to_thread.run_sync(_drain, app)
    with app.library.database.read() as connection:
        return [
            row[0] for row in connection.execute("SELECT id FROM contexts WHERE user_id = 'ann'")
        ]


def _drain(app: App) -> None:
    while app.library.indexer.step():
        pass


@pytest.mark.slow
@settings(max_examples=5)
@given(drawn=st.lists(_calls(), min_size=40, max_size=80))
async def test_no_tool_reads_or_changes_what_is_another_users(
    drawn: list[tuple[str, dict[str, Any]]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        app = build(Settings(data_dir=Path(directory, "data"), root=Path(directory)))
        with closing(app.library):
            await _try(app, drawn)


async def _try(app: App, drawn: list[tuple[str, dict[str, Any]]]) -> None:
    ids = await _seeded(app)
    before = _kept(app.library.database, "ann")
    assert sum(map(len, before.values())) > len(SEEDS)
    context = RequestContext(Origin(BOB, bound=True))
    for name, arguments in drawn:
        aimed = _aimed(arguments, ids)
        result = await app.manager.execute(name, aimed, context)
        told = f"{result.text} {json.dumps(result.structured, default=str)}"
        assert SECRET not in told, (name, aimed)
        if aimed.get("user_id") == "ann":
            assert result.is_error, (name, aimed)
    assert _kept(app.library.database, "ann") == before


def _aimed(value: Any, ids: list[str]) -> Any:
    """The arguments with real ids of Ann's where one is meant."""
    match value:
        case dict():
            return {key: _aimed(inner, ids) for key, inner in value.items()}
        case list():
            return [_aimed(inner, ids) for inner in value]
        case str() if value.startswith(SOME_ID):
            return ids[int(value.removeprefix(SOME_ID)) % len(ids)]
    return value
