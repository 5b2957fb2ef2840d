"""What holds for every built-in tool; each failure says what to write."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

import tools
from server.app import App, build
from server.mcp.surface import EVERYDAY
from server.settings import Settings
from tools.conversion.schema_reading import resolve
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

ROOT = Path(__file__).parents[2]
LISTED_CHARACTERS = 10_000
"""2,500 tokens at four characters each."""

SHOWN_INSTRUCTIONS = 512
"""Characters that every client shows to its model."""


def _specs() -> tuple[ToolSpec, ...]:
    registry = ToolRegistry()
    discover(registry, tools)
    return registry.specs()


def _homes() -> Iterator[tuple[str, str]]:
    """Every built-in tool, and the path that its module and its test have beneath `tools`."""
    for group in ("", *(f"{each}/" for each in tools.GROUPS)):
        for module in pkgutil.iter_modules([str(ROOT / "tools" / group)]):
            name = f"tools.{group.replace('/', '.')}{module.name}"
            if not module.ispkg:
                for tool, value in vars(importlib.import_module(name)).items():
                    if hasattr(value, "__tool_options__") and value.__module__ == name:
                        yield tool, f"{group}{module.name}"


SPECS = _specs()
HOMES = dict(_homes())
BY_TOOL = pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = build(Settings(data_dir=tmp_path / "data", root=tmp_path))
    yield app
    app.library.close()


def test_every_tool_is_found_where_it_lives() -> None:
    assert sorted(HOMES) == [spec.name for spec in SPECS]


@BY_TOOL
def test_a_tool_has_a_test(spec: ToolSpec) -> None:
    group, _, module = HOMES[spec.name].rpartition("/")
    files = (ROOT / "tests" / "tools" / group).glob(f"test_{module}*.py")
    written = "".join(file.read_text(encoding="utf-8") for file in files)
    assert re.search(rf"\b{spec.name}\b", written), (
        f"{spec.name} has no test: call it in {Path('tests/tools', group, f'test_{module}.py')}."
    )


@BY_TOOL
def test_a_tool_has_a_line_in_the_docs(spec: ToolSpec) -> None:
    lines = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8").splitlines()
    for name in (spec.name, *spec.aliases):
        assert any(line.startswith(f"| `{spec.name}`") and f"`{name}`" in line for line in lines), (
            f"docs/tools.md has no line for {name}: add the row '| `{spec.name}` | what it does |',"
            " with its aliases beside the name as '(also `alias`)'."
        )
    begins = (f"| `{spec.name}` |", f"| `{spec.name}` (also")  # else it is a prompt
    rows = [line for line in lines if line.startswith(begins)]
    assert len(rows) == 1, f"docs/tools.md has {len(rows)} rows for {spec.name}: keep one."


def test_the_index_of_the_docs_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text(encoding="utf-8")
    pages = {each.name for each in docs.glob("*.md")} - {"README.md"}
    missing = sorted(each for each in pages if f"({each})" not in index)
    assert not missing, f"docs/README.md has no link to {', '.join(missing)}."


def test_a_name_that_agents_know_reaches_one_tool() -> None:
    registry = ToolRegistry()
    discover(registry, tools)
    for spec in registry.specs():
        for name in spec.aliases_elsewhere:
            assert registry.get(name) is spec, f"{name} of {spec.name} means another tool as well."


@BY_TOOL
def test_a_tool_says_what_it_is(spec: ToolSpec) -> None:
    assert spec.description, f"{spec.name} has no description: give the function a docstring."
    assert spec.effects, f"{spec.name} has no effects: say what it does in @tool(effects={{…}})."
    assert spec.tags, f"{spec.name} has no tags: name its groups in @tool(tags=(…,))."
    assert spec.capabilities, (
        f"{spec.name} has no capabilities: say what it can do in @tool(capabilities=(…,)), so that "
        "tool retrieval finds it."
    )


@BY_TOOL
def test_a_tool_has_an_output_schema(spec: ToolSpec) -> None:
    if spec.name == "call_tool":  # which answers what the called tool answers
        return
    assert spec.output_schema, (
        f"{spec.name} has no output schema: annotate what it returns with a model."
    )
    assert spec.output_schema["type"] == "object"


@BY_TOOL
def test_a_tool_describes_its_parameters(spec: ToolSpec) -> None:
    silent = [
        name
        for name, schema in spec.input_schema["properties"].items()
        if not {**resolve(schema, spec.input_schema), **schema}.get("description")
    ]
    assert not silent, (
        f"{spec.name}: no description of {', '.join(silent)}: annotate with "
        'Annotated[…, Field(description="…")] or name them in the docstring.'
    )


async def test_the_listed_surface_is_small(app: App, mode: str) -> None:
    async with Client(app.server, mode=mode) as client:
        listed = await client.list_tools()
    wire = listed.model_dump(mode="json", by_alias=True, exclude_none=True)
    sizes = {tool["name"]: len(_compact(tool)) for tool in wire["tools"]}
    assert sizes.keys() >= {"query", "add_document", "read_file"}
    assert len(_compact(wire)) < LISTED_CHARACTERS, (
        f"tools/list has {len(_compact(wire))} characters, {LISTED_CHARACTERS} are allowed: every "
        f"model pays for them in every session. Shorten descriptions or list fewer tools: {sizes}."
    )


def test_every_everyday_tool_is_there() -> None:
    assert not EVERYDAY - {spec.name for spec in SPECS}


def test_the_first_that_a_model_reads_is_short(app: App) -> None:
    assert len(app.server.instructions or "") <= SHOWN_INSTRUCTIONS


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
