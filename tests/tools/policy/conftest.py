"""Specifications of tools of every kind that rules tell apart."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.core.spec import Confirmation, Effect, Subject, SubjectKind, ToolScope, ToolSpec
from tools.policy.calls import Containment, Decision
from tools.policy.policy import Policy

READ, WRITE = Effect.READ, Effect.WRITE
EXECUTE, EXTERNAL = Effect.EXECUTE, Effect.EXTERNAL
SANDBOXED, SYSTEM, MCP, CONTEXT = (
    ToolScope.SANDBOXED,
    ToolScope.SYSTEM,
    ToolScope.MCP,
    ToolScope.CONTEXT,
)


async def _invoke(_arguments: dict[str, Any], _context: RequestContext) -> ToolResult:
    return ToolResult({}, "")


def spec(name: str, scope: ToolScope, effects: set[Effect], **options: Any) -> ToolSpec:
    """A specification that does nothing."""
    properties = options.pop("properties", {})
    return ToolSpec(
        name=name,
        title=name,
        description=name,
        input_schema={"type": "object", "properties": properties},
        output_schema=None,
        scope=scope,
        effects=frozenset(effects),
        validate=dict,
        invoke=_invoke,
        **options,
    )


FILE = Subject(SubjectKind.PATH, "file_path")
PLACE = Subject(SubjectKind.PATH, "path")
DRY_RUN = {"dry_run": {"type": "boolean", "default": True}}
ALL = (
    spec(
        "bash",
        SYSTEM,
        {EXECUTE},
        subject=Subject(SubjectKind.COMMAND, "command"),
        aliases=("execute_shell_command",),
        destructive=True,
        tags=("system",),
    ),
    spec("bash_output", SYSTEM, {READ}),
    spec("execute_python_code", SYSTEM, {EXECUTE}, destructive=True),
    spec(
        "http_request",
        SYSTEM,
        {READ, WRITE, EXTERNAL},
        subject=Subject(SubjectKind.URL, "url", "secret"),
        properties={"url": {}, "method": {"default": "GET"}, "secret": {"enum": ["api", "b"]}},
        destructive=True,
    ),
    spec("read_web_page", SYSTEM, {READ, EXTERNAL}, subject=Subject(SubjectKind.URL, "url")),
    spec("web_search", SYSTEM, {READ, EXTERNAL}),
    spec(
        "read_file", SANDBOXED, {READ}, subject=FILE, aliases=("view_text_file",), tags=("files",)
    ),
    spec("write_file", SANDBOXED, {WRITE}, subject=FILE, destructive=True, tags=("files",)),
    spec("edit_file", SANDBOXED, {READ, WRITE}, subject=FILE, destructive=True, tags=("files",)),
    spec(
        "grep",
        SANDBOXED,
        {READ},
        subject=PLACE,
        properties={"pattern": {}, "path": {"default": "."}},
        tags=("files",),
    ),
    spec("list_directory", SANDBOXED, {READ}, subject=PLACE, properties={"path": {"default": "."}}),
    spec("todo", SANDBOXED, {WRITE}),
    spec("add_document", CONTEXT, {READ, WRITE}, subject=PLACE, properties={"path": {}}),
    spec("query", CONTEXT, {READ}),
    spec("remember", CONTEXT, {WRITE}),
    spec(
        "delete_entity", CONTEXT, {WRITE}, confirmation=Confirmation.RECOMMENDED, destructive=True
    ),
    spec(
        "forget",
        CONTEXT,
        {WRITE},
        confirmation=Confirmation.REQUIRED,
        confirm_if="dry_run=false",
        properties={"ids": {}, **DRY_RUN},
        destructive=True,
    ),
    spec(
        "manage_memory",
        CONTEXT,
        {READ, WRITE},
        properties={"action": {}, "limit": {"default": 10}, **DRY_RUN},
    ),
    spec("call_tool", CONTEXT, {READ, EXECUTE, EXTERNAL}, is_proxy=True, destructive=True),
    spec("github_search", MCP, {READ}, source="upstream:github"),
    spec("github_push", MCP, {WRITE, EXTERNAL}, source="upstream:github", bare="push"),
    spec("roll_dice", SANDBOXED, {EXECUTE, EXTERNAL}, source="function:dice.py", destructive=True),
    spec("run_code", SYSTEM, {EXECUTE}, destructive=True),
    spec("made_up", SANDBOXED, {EXECUTE}, source="created"),
)


@pytest.fixture(scope="session")
def crib() -> Mapping[str, ToolSpec]:
    """Tools by their names."""
    return {each.name: each for each in ALL}


Judge = Callable[..., Decision]


@pytest.fixture
def judge(crib: Mapping[str, ToolSpec]) -> Judge:
    """Judges a call: judge("bash", {"command": "ls"}, allow=[…], profile="standard")."""

    def run(
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        profile: str = "standard",
        containment: Containment = Containment.NONE,
        grants: tuple[str, ...] = (),
        **rules: Any,
    ) -> Decision:
        policy = Policy(profile, find=crib.get, **rules)
        return policy.judge(crib[name], arguments or {}, containment=containment, grants=grants)

    return run
