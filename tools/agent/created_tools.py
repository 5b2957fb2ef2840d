"""Created tools: stores an agent's own tools, from Python source that the user approved."""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping
from difflib import unified_diff
from typing import Annotated, Any

from pydantic import Field

from tools.answers.tool_cards import parameters as parameters_of
from tools.conversion.naming import SEPARATOR
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.result import ToolModel
from tools.core.spec import Alias, Confirmation, Effect, Prepared, ToolScope, tool
from tools.functions.programs.created import created_of

MOST_TEXT = 2_000  # limit on the characters of a description and of a reason
MOST_SCHEMA = 20_000  # limit on the characters of parameters, since a user reads them
WHOLE = 1_000_000  # lines of context shown around a change: all of them
MOST_COMPARED = 1_000  # limit on the lines of sources to compare: longer diffs could take minutes

ToolName = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="What it is called"), Alias("name")
]


class KeptTool(ToolModel):
    """A tool that was created.

    Attributes:
        name: Its name.
        version: Its version, from 1.
        description: What it does, as search results show it.
        signature: Its parameters.
    """

    name: str
    version: int
    description: str
    signature: str

    def to_text(self) -> str:
        """Returns how to call it."""
        return (
            f"Created version {self.version} of {self.signature}. Call it with call_tool, or as"
            f" `await tools.{self.name}(…)` in a program."
        )


class RemovedTool(ToolModel):
    """A removed tool.

    Attributes:
        name: Its former name.
        version: Its last version, which stays on record.
    """

    name: str
    version: int

    def to_text(self) -> str:
        """Confirms the removal."""
        return f"{self.name} is gone. Its source stays in the record."


async def _prepare(arguments: Mapping[str, Any], context: RequestContext) -> Prepared:
    """Checks the complete tool, and prepares it for the user's approval."""
    from tools.functions.programs.source_analysis import check_text, read_draft

    created = created_of(context.machine)
    given = {name: value for name, value in arguments.items() if value is not None}
    name = given["tool_name"]
    _check_spelling(name)
    created.check_name(name)
    draft = read_draft(_source(given, context))
    for text in ("description", "reasoning"):
        check_text(text, given.get(text, ""))
    if len(json.dumps(given.get("parameters"))) > MOST_SCHEMA:
        raise InvalidArgumentsError(
            f"parameters: more than {MOST_SCHEMA:,} characters.",
            next_actions=["Leave out what the signature already covers."],
        )
    if not (given.get("description") or draft.said.description):
        raise InvalidArgumentsError(
            f"description: {draft.function} has no docstring.",
            next_actions=["Add one, or pass a description of what it does."],
        )
    earlier = await created.current(context.identity, name)
    lines = [f"tool_name: {name}" + (f", version {earlier.version + 1}" if earlier else "")]
    lines += [f"{each}: {_indent(given[each])}" for each in SHOWN if each in given]
    lines.append(_format_source(draft.source, None if earlier is None else earlier.source))
    kept = {**given, "implementation": draft.source, "from_run": False}
    return Prepared(kept, "\n".join(lines))


def _source(given: Mapping[str, Any], context: RequestContext) -> str:
    """Returns the given source, or the last program rewritten as a function."""
    from tools.functions.programs.source_analysis import function_of

    source: str | None = given.get("implementation")
    if bool(source) is given["from_run"]:
        raise InvalidArgumentsError(
            "implementation: give either the source, or from_run for the last program.",
            next_actions=["Send Python source, or run a program with run_code first."],
        )
    if source:
        return source
    program = context.machine.last_programs.get(context.identity, context.session_id)
    if program is None:
        raise NotFoundError(
            "from_run: no program of this session has ended well.",
            next_actions=["Run it with run_code first, or send the source as implementation."],
        )
    return function_of(program, given["tool_name"], given.get("parameters"))


def _format_source(source: str, earlier: str | None) -> str:
    """Formats a source, as a diff if there is an earlier version."""
    lines, before = source.split("\n"), (earlier or "").split("\n")  # as Python reads lines
    if earlier is None or max(len(lines), len(before)) > MOST_COMPARED:
        return _indent("\n".join(["implementation:", *lines]))
    changes = unified_diff(before, lines, n=WHOLE, lineterm="")
    marked = [*changes][3:] or [f" {each}" for each in lines]
    return _indent("\n".join(["implementation, with what changes:", *marked]))


def _check_spelling(name: str) -> None:
    if SEPARATOR in name or keyword.iskeyword(name):
        is_word = keyword.iskeyword(name)
        why = (
            "is a word of Python" if is_word else f"has {SEPARATOR!r}, as other servers' tools have"
        )
        raise InvalidArgumentsError(
            f"tool_name: {name!r} {why}.", next_actions=["Choose another name."]
        )


SHOWN = ("description", "parameters", "reasoning")  # arguments a user reads next to the source


def _indent(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("\n", "\n    ").rstrip()  # so that no line looks like another argument


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    confirmation=Confirmation.REQUIRED,
    tags=("agent",),
    capabilities=("make a new tool from Python source", "save a program as a tool"),
    prepare=_prepare,
)
async def create_tool(
    context: RequestContext,
    tool_name: ToolName,
    implementation: Annotated[
        str | None,
        Field(
            max_length=50_000,
            description="Python: one public function with types and a docstring, helpers with an"
            " underscore, imports of the standard library; in an async one `await tools.NAME(…)`"
            " calls other tools",
        ),
        Alias("code", "source"),
    ] = None,
    from_run: Annotated[
        bool,
        Field(
            description="Instead of implementation: the last program of run_code that ended well;"
            " the properties of parameters name those of its variables that callers give"
        ),
    ] = False,
    description: Annotated[
        str | None, Field(max_length=MOST_TEXT, description="What it does; default: its docstring")
    ] = None,
    parameters: Annotated[
        dict[str, Any] | None,
        Field(description="JSON Schema of its arguments, as its signature has them, with texts"),
    ] = None,
    reasoning: Annotated[
        str | None, Field(max_length=MOST_TEXT, description="Why; the user reads it")
    ] = None,
) -> KeptTool:
    """Makes a tool of Python source, for this user, from now on; the user approves the source.

    It runs confined: no files, no network, and other tools only as its caller may call them. The
    same name again makes a new version.
    """
    from tools.functions.programs.source_analysis import read_draft

    del from_run, reasoning  # resolved to source by now; reasoning was for the user
    created = created_of(context.machine)
    created.check_name(tool_name)
    draft = read_draft(implementation or "")
    kept, spec = await created.create(
        tool_name, draft, context, told=description or "", parameters=parameters
    )
    return KeptTool(
        name=kept.name,
        version=kept.version,
        description=spec.description,
        signature=parameters_of(spec),
    )


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE},
    destructive=True,
    tags=("agent",),
    capabilities=("remove a tool that was created",),
)
async def remove_tool(context: RequestContext, tool_name: ToolName) -> RemovedTool:
    """Removes a tool that was made with create_tool."""
    removed = await created_of(context.machine).remove(context.identity, tool_name)
    if removed is None:
        raise NotFoundError(
            f"tool_name: no created tool is called {tool_name!r}.",
            next_actions=["See search_tools, with the tag created."],
        )
    return RemovedTool(name=removed.name, version=removed.version)
