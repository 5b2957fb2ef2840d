from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.function_to_mcp import FunctionToMCP
from tools.core.index import ToolIndex
from tools.core.registry import ToolRegistry
from tools.core.spec import tool


@tool(aliases=("view_text",), tags=("files",), capabilities=("look into a file",))
def read_file(file_path: str, encoding: str = "") -> str:
    """Reads a text.

    Args:
        file_path: Where.
        encoding: How.
    """
    return file_path + encoding


@tool(tags=("web",), capabilities=("fetch a page",))
def HTTPRequest(url: str) -> str:  # noqa: N802  # a name that is split on case
    """Asks a server.

    Args:
        url: Where.
    """
    return url


@tool(tags=("context",), capabilities=("forget a reader",))
def drop(name: str) -> str:
    """Deletes for good; see read_file.

    Args:
        name: What.
    """
    return name


def registry_of(*functions: object) -> ToolRegistry:
    registry = ToolRegistry()
    for function in functions:
        registry.add(FunctionToMCP.convert(function))  # type: ignore[arg-type]  # all are functions
    return registry


@pytest.fixture
def index() -> ToolIndex:
    return ToolIndex(registry_of(read_file, HTTPRequest, drop))


def found(index: ToolIndex, query: str, top_k: int = 5) -> list[str]:
    return [match.spec.name for match in index.search(query, top_k)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("reading files", "read_file"),  # name parts, stemmed
        ("view text", "read_file"),  # an alias
        ("look into", "read_file"),  # a capability
        ("which encoding", "read_file"),  # a parameter
        ("http", "httprequest"),  # a part of a name
        ("web", "httprequest"),  # a tag
        ("ask servers", "httprequest"),  # the description
        ("delete", "drop"),
    ],
)
def test_a_tool_is_found_by_whatever_is_said_of_it(
    index: ToolIndex, query: str, expected: str
) -> None:
    assert found(index, query)[0].replace("_", "") == expected.replace("_", "")


def test_a_name_weighs_more_than_a_mention(index: ToolIndex) -> None:
    assert found(index, "read a file") == ["read_file", "drop"]


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "?!", "\0"])
def test_what_fits_nothing_finds_nothing(index: ToolIndex, query: str) -> None:
    assert found(index, query) == []


@pytest.mark.parametrize("query", ["drop", "DROP", "call drop now to read a file", "use `drop`!"])
def test_an_exact_name_always_comes_first(index: ToolIndex, query: str) -> None:
    assert found(index, query, top_k=1) == ["drop"]


def test_a_name_of_stop_words_alone_is_found() -> None:
    @tool()
    def about() -> None:
        """Tells."""

    assert found(ToolIndex(registry_of(about, drop)), "about") == ["about"]


def test_a_term_of_every_tool_still_counts() -> None:
    index = ToolIndex(registry_of(read_file))
    assert [match.score > 0 for match in index.search("read file", 5)] == [True]


def test_without_tools_nothing_is_found() -> None:
    assert ToolIndex(ToolRegistry()).search("anything", 5) == []


def test_tools_that_came_and_went_are_known_at_once(index: ToolIndex) -> None:
    assert found(index, "saw") == []
    later = ToolRegistry()
    later.add(FunctionToMCP.convert(drop, name="saw", source="function:saws.py"))
    index.registry.add(later.find("saw"))
    assert found(index, "saw") == ["saw"]
    index.registry.remove_source("function:saws.py")
    assert found(index, "saw") == []


@given(query=st.text(), top_k=st.integers(1, 5))
def test_any_query_is_answered_with_hits_in_order(query: str, top_k: int) -> None:
    index = ToolIndex(registry_of(read_file, HTTPRequest, drop))
    matches = index.search(query, top_k)
    assert len(matches) <= top_k
    named = [match for match in matches if match.spec.name in query.lower()]
    rest = [match.score for match in matches if match not in named]
    assert rest == sorted(rest, reverse=True)
    assert all(score > 0 for score in rest)
