import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.discovery import discover, discover_installed
from tools.core.errors import UnknownToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect, ToolScope, ToolSpec, tool

Package = Callable[..., ModuleType]

MARK = """
    from tools.core.spec import Effect, ToolScope, tool
"""
COUNT = (
    MARK
    + '''
    @tool(scope=ToolScope.SANDBOXED, effects={Effect.READ}, aliases=("tally",))
    def count_words(text: str) -> int:
        """Counts words.

        Args:
            text: The text.
        """
        return len(text.split())

    def unmarked(text: str) -> int:
        return len(text)
'''
)


@tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
def read_file(path: str) -> str:
    """Reads a file."""
    return path


@pytest.fixture
def spec() -> ToolSpec:
    return FunctionToMCP.convert(read_file, source="builtin")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Writes a package of tool modules and imports it."""

    def write(**modules: str) -> ModuleType:
        folder = tmp_path / "toolbox"
        folder.mkdir()
        for name, source in {"__init__": "", **modules}.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(tmp_path)
        return importlib.import_module("toolbox")

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolbox"]:
        del sys.modules[name]


def test_marked_functions_of_public_modules_are_discovered(package: Package) -> None:
    registry = ToolRegistry()
    discover(registry, package(words=COUNT, _private=COUNT.replace("count_words", "hidden")))
    assert [spec.name for spec in registry.specs()] == ["count_words"]


def test_an_imported_tool_belongs_to_the_module_that_defines_it(package: Package) -> None:
    registry = ToolRegistry()
    discover(registry, package(more="from toolbox.words import count_words", words=COUNT))
    assert [spec.name for spec in registry.specs()] == ["count_words"]


def test_packages_below_are_not_searched(package: Package) -> None:
    toolbox = package()
    core = Path(toolbox.__path__[0]) / "core"
    core.mkdir()
    (core / "__init__.py").write_text("raise AssertionError('imported')")
    registry = ToolRegistry()
    discover(registry, toolbox)
    assert registry.specs() == ()


def test_a_package_below_that_is_named_as_a_group_is_searched_too(package: Package) -> None:
    toolbox = package()
    toolbox.GROUPS = ("counting",)  # type: ignore[attr-defined]  # of this one package
    counting = Path(toolbox.__path__[0]) / "counting"
    counting.mkdir()
    (counting / "__init__.py").touch()
    (counting / "words.py").write_text(textwrap.dedent(COUNT))
    registry = ToolRegistry()
    discover(registry, toolbox)
    assert [spec.name for spec in registry.specs()] == ["count_words"]


def test_an_alias_reaches_the_tool_and_is_not_a_tool_of_its_own(package: Package) -> None:
    registry = ToolRegistry()
    discover(registry, package(words=COUNT))
    assert registry.get("tally") is registry.find("count_words") is registry.find("tally")
    assert len(registry.specs()) == 1


@pytest.mark.parametrize("name", ["view", "View", "ReadFile", "read-file"])
def test_a_tool_of_ours_is_reached_by_what_it_is_called_elsewhere(
    spec: ToolSpec, name: str
) -> None:
    registry = ToolRegistry()
    registry.add(replace(spec, aliases_elsewhere=("view",)))
    assert registry.find(name).name == "read_file"


@pytest.mark.parametrize(
    ("name", "source", "bare"),
    [("view", "function:mine.py", ""), ("disk__view", "upstream:disk", "view")],
)
def test_a_tool_that_is_really_called_so_goes_first(
    spec: ToolSpec, name: str, source: str, bare: str
) -> None:
    registry = ToolRegistry()
    registry.add(replace(spec, aliases_elsewhere=("view",)))
    registry.add(replace(spec, name=name, source=source, bare=bare))
    assert registry.find("view").name == name
    assert registry.get("View") is None
    registry.remove(name)
    assert registry.find("view").name == registry.find("View").name == "read_file"


def test_tools_of_others_are_reached_by_their_names_alone(spec: ToolSpec) -> None:
    registry = ToolRegistry()
    registry.add(replace(spec, source="function:mine.py", aliases_elsewhere=("view",)))
    assert registry.get("view") is registry.get("ReadFile") is None


def test_specs_are_in_the_order_of_their_names(spec: ToolSpec) -> None:
    registry = ToolRegistry()
    for name in ("write_file", "add_document", "query"):
        registry.add(replace(spec, name=name))
    assert [spec.name for spec in registry.specs()] == ["add_document", "query", "write_file"]


@pytest.mark.parametrize(
    ("name", "aliases"),
    [("read_file", ()), ("view", ()), ("other", ("read_file",)), ("other", ("new", "view"))],
)
def test_a_taken_name_or_alias_is_refused_and_both_owners_are_named(
    spec: ToolSpec, name: str, aliases: tuple[str, ...]
) -> None:
    registry = ToolRegistry()
    registry.add(replace(spec, aliases=("view",), source="builtin"))
    rival = replace(spec, name=name, aliases=aliases, source="function:mine.py")
    with pytest.raises(ValueError, match=rf"{name} \(function:mine.py\).*read_file \(builtin\)"):
        registry.add(rival)
    assert [spec.source for spec in registry.specs()] == ["builtin"]
    assert registry.get("new") is None


def test_an_alias_that_repeats_its_own_tool_is_refused(spec: ToolSpec) -> None:
    with pytest.raises(ValueError, match="'read_file'"):
        ToolRegistry().add(replace(spec, aliases=("read_file",)))


@pytest.mark.parametrize("wrong", ["readfiles", "read_fil", "file_read", "read"])
def test_an_unknown_name_gets_the_name_that_was_meant(spec: ToolSpec, wrong: str) -> None:
    registry = ToolRegistry()
    registry.add(spec)
    registry.add(replace(spec, name="retrieve_document_context"))
    with pytest.raises(UnknownToolError) as caught:
        registry.find(wrong)
    assert wrong in caught.value.message
    assert caught.value.suggestions[0] == "read_file"
    assert caught.value.next_actions


def test_a_name_like_no_other_gets_no_suggestion(spec: ToolSpec) -> None:
    registry = ToolRegistry()
    registry.add(spec)
    with pytest.raises(UnknownToolError) as caught:
        registry.find("zzz")
    assert caught.value.suggestions == ()


@given(st.text(max_size=2000))
def test_any_unknown_name_gets_a_short_answer_with_three_suggestions_at_most(name: str) -> None:
    registry = ToolRegistry()
    for number in range(5):
        registry.add(replace(FunctionToMCP.convert(read_file), name=f"read_file_{number}"))
    with pytest.raises(UnknownToolError) as caught:
        registry.find(name)
    assert len(caught.value.suggestions) <= 3
    assert len(caught.value.message) < 2000


def _announce(site: Path, name: str, announced: str, module: str, source: str) -> None:
    """Installs a distribution, as an installer would leave it on the path."""
    (site / f"{module}.py").write_text(textwrap.dedent(source))
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[toolcrib.tools]\n{name} = {announced}\n")


def test_tools_of_other_distributions_are_found_and_a_broken_one_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _announce(tmp_path, "crib-words", "crib_words", "crib_words", COUNT)
    one = COUNT.replace("count_words", "count_lines").replace("tally", "lines")
    _announce(tmp_path, "crib-one", "crib_one:count_lines", "crib_one", one)
    _announce(tmp_path, "crib-broken", "crib_broken", "crib_broken", "import nothing_like_this")
    monkeypatch.syspath_prepend(tmp_path)
    registry = ToolRegistry()
    discover_installed(registry)
    assert {spec.name: spec.source for spec in registry.specs()} == {
        "count_lines": "function:crib_one:count_lines",
        "count_words": "function:crib_words",
    }
    assert "crib-broken" in caplog.text


def test_the_definitions_of_an_agentic_search_come_by_group() -> None:
    registry = ToolRegistry()
    discover(registry, tools)
    lists = registry.definitions(format="function-calling")
    names = {group: [each["function"]["name"] for each in held] for group, held in lists.items()}
    profile = ["retrieve_profile_context", "profile_entity_tool"]
    assert names["WEB_SEARCH_TOOL_DEFINITION"] == ["web_search"]
    assert names["ALL_PROFILE_TOOL_DEFINITIONS"] == profile
    assert names["ALL_RETRIEVAL_TOOL_DEFINITIONS"] == names["CONTEXT_RETRIEVAL_TOOLS"]
    assert len(names["ALL_TOOL_DEFINITIONS"]) == 6
    for each in lists["ALL_TOOL_DEFINITIONS"]:
        assert each["type"] == "function"
        assert set(each["function"]) == {"name", "description", "parameters"}
    assert ToolRegistry().definitions()["ALL_TOOL_DEFINITIONS"] == []
