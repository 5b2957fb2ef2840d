from dataclasses import replace

import pytest

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.spec import ToolSpec, tool
from tools.core.toolset import ToolSet


@tool(tags=("files", "text"), aliases=("view_text",))
def read_file(file_path: str) -> str:
    """Reads."""
    return file_path


OURS = FunctionToMCP.convert(read_file, source="builtin")
THEIRS = replace(
    OURS,
    name="disk__read_file",
    bare="read_file",
    aliases=(),
    tags=("disk",),
    source="upstream:disk",
)


@pytest.mark.parametrize(
    ("pattern", "spec", "fits"),
    [
        ("read_file", OURS, True),
        ("read_*", OURS, True),
        ("view_tex?", OURS, True),
        ("read", OURS, False),
        ("tag:text", OURS, True),
        ("tag:te*", OURS, True),
        ("tag:disk", OURS, False),
        ("server:*", OURS, False),
        ("server:*", THEIRS, True),
        ("server:disk", THEIRS, True),
        ("server:dis", THEIRS, False),
        ("disk__*", THEIRS, True),
        ("tag:disk", THEIRS, False),
    ],
)
def test_a_pattern_allows_and_denies_the_tools_that_it_fits(
    pattern: str, spec: ToolSpec, fits: bool
) -> None:
    assert ToolSet("p", allow=(pattern,)).admits(spec) is fits
    assert ToolSet("p", deny=(pattern,)).admits(spec) is not fits


@pytest.mark.parametrize("name", ["view", "Read_file", "ViewText"])
def test_what_reaches_a_tool_of_ours_denies_it_and_never_allows(name: str) -> None:
    known = replace(OURS, aliases_elsewhere=("view",))
    assert not ToolSet("p", deny=(name,)).admits(known)
    assert not ToolSet("p", allow=(name,)).admits(known)
    assert ToolSet("p", deny=("vie*w", name)).admits(replace(known, source="function:mine.py"))


def test_a_name_at_another_server_denies_and_never_allows() -> None:
    assert not ToolSet("p", allow=("read_file",)).admits(THEIRS)
    assert not ToolSet("p", deny=("read_file",)).admits(THEIRS)


def test_without_patterns_every_tool_is_in_it_and_a_denial_wins() -> None:
    assert ToolSet("p").admits(OURS)
    assert not ToolSet("p", allow=("read_file",), deny=("tag:files",)).admits(OURS)


@pytest.mark.parametrize(
    ("allow", "deny", "admitted"),
    [
        ((), (), True),
        ((), ("server:disk",), False),
        ((), ("server:d*",), False),
        ((), ("disk__*",), True),
        (("server:disk",), (), True),
        (("server:other", "read_file"), (), False),
        (("read_file",), (), False),
        (("server:*",), ("server:disk",), False),
    ],
)
def test_what_a_server_has_besides_tools_goes_by_the_patterns_of_servers(
    allow: tuple[str, ...], deny: tuple[str, ...], admitted: bool
) -> None:
    assert ToolSet("p", allow, deny).admits_server("disk") is admitted
