"""Every tool through four: find one, see how it is called, call it, call several."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from tools.answers.call_results import Answers, advised
from tools.answers.params import TopK
from tools.answers.stubs import stub
from tools.answers.tool_cards import CARDS_CHARACTERS, FoundTools, clipped_line, groups
from tools.core.calling.nested import ToolCall
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import OmitNone, ToolModel, ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec, tool
from tools.core.toolset import ToolOffer
from tools.retrieval.models import Match, SearchQuery, ToolRecord

DESCRIBED_CHARACTERS = 250  # limit on the overview of all tools in the description of the search
INCOMPLETE_CHARACTERS = 300  # limit on the note about what was not searched
MOST_CALLS = 20  # calls in one

ToolName = Annotated[str, Field(min_length=1, max_length=128, description="Its name or an alias")]
Arguments = Annotated[dict[str, Any] | None, Field(description="As its schema says")]


class ToolDescription(ToolModel):
    """All that is known of a tool; for several tools, how a program calls them.

    Attributes:
        name: Its name.
        aliases: Its other names.
        description: What it does.
        scope: What it works on: files, stored context, neither; empty for a tool that only a file
            describes and that cannot be called here.
        effects: What a call does: read, write, execute, external.
        destructive: Whether a call may remove or overwrite what exists.
        idempotent: Whether repeating a call changes nothing more.
        confirmation: Whether a person should agree first.
        tags: Its groups.
        source: Where it comes from.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured result, if declared.
        code: Its source, if an agent wrote it.
        python: How a program calls it, one line of Python per tool, instead of all else.
    """

    name: str
    aliases: OmitNone[list[str]] = None
    description: OmitNone[str] = None
    scope: OmitNone[str] = None
    effects: OmitNone[list[str]] = None
    destructive: OmitNone[bool] = None
    idempotent: OmitNone[bool] = None
    confirmation: OmitNone[str] = None
    tags: OmitNone[list[str]] = None
    source: OmitNone[str] = None
    input_schema: OmitNone[dict[str, Any]] = None
    output_schema: OmitNone[dict[str, Any]] = None
    code: OmitNone[str] = None
    python: OmitNone[str] = None

    @classmethod
    def of(cls, spec: ToolSpec, description: str) -> ToolDescription:
        """Converts a specification, with the current description."""
        return cls.from_attributes(
            spec,
            description=description,
            effects=sorted(spec.effects),
            idempotent=spec.idempotent or spec.read_only,
            code=spec.code or None,
            python=None,
        )

    @classmethod
    def of_record(cls, record: ToolRecord) -> ToolDescription:
        """Converts the record of a tool that is only described in a file."""
        return cls(
            name=record.name,
            aliases=list(record.aliases),
            description=record.description,
            scope="",
            effects=[],
            destructive=False,
            idempotent=False,
            confirmation="none",
            tags=list(record.tags),
            source="file",
            input_schema=record.parameters or {},
            output_schema=None,
        )

    def to_text(self) -> str:
        """Formats the description, then both schemas as JSON."""
        if self.python is not None:
            return self.python
        also = f" (also {', '.join(self.aliases)})" if self.aliases else ""
        lines = [f"{self.name}{also}: {self.description}"]
        if self.scope:
            traits = [*(self.effects or ()), *["destructive"] * bool(self.destructive)]
            lines.append(f"Effects: {', '.join(traits)}")
        else:
            lines.append("It can be found only: a file describes it, no server here has it.")
        lines.append(f"Arguments: {_compact(self.input_schema or {})}")
        if self.output_schema is not None:
            lines.append(f"Result: {_compact(self.output_schema)}")
        if self.code is not None:
            lines.append(f"Source:\n{self.code}")
        return "\n".join(lines)


class OneCall(ToolModel):
    """One call."""

    name: ToolName
    arguments: Arguments = None


def _tell_of_all(specs: Sequence[ToolOffer]) -> str:
    return (
        f"Finds tools by what they do, among all {len(specs)}: "
        f"{groups(specs, DESCRIBED_CHARACTERS)}. Most are not in your list: search before you say "
        "that something cannot be done, then call_tool."
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("toolsearch",),
    capabilities=("find a tool for a task", "list what can be done"),
    describe=_tell_of_all,
)
def search_tools(
    context: RequestContext,
    query: Annotated[
        str, Field(min_length=1, max_length=20_000, description="What you want to do")
    ],
    top_k: TopK = 5,
    tags: Annotated[list[str] | None, Field(max_length=20, description="Groups")] = None,
    match: Annotated[Match, Field(description="Any or all of the tags")] = "any",
    min_score: Annotated[float | None, Field(ge=0, le=1, description="Least score")] = None,
) -> FoundTools:
    """Finds tools by what they do, among all there are."""
    asked = SearchQuery(
        query_text=query,
        tags_filter=tuple(tags or ()),
        match=match,
        top_k=top_k,
        min_score=min_score,
    )
    unlisted = context.catalogue.unlisted(context.tool_set)
    found = context.catalogue.search(
        asked, context.identity, session_id=context.session_id, admitted=context.tool_set
    )
    incomplete = _tell_of_missing(unlisted, context.catalogue.share_indexed())
    if not found:
        offers = context.registry.offers(context.tool_set)
        available = groups(offers, CARDS_CHARACTERS)
        return FoundTools(tools=[], available=available, incomplete=incomplete)
    return FoundTools.of(found, incomplete)


def _tell_of_missing(unlisted: Mapping[str, str], share: float) -> str | None:
    """Tells of what could not be searched: servers without a list, and tools without a vector."""
    lines = list[str]()
    if unlisted:
        told = "; ".join(f"{server} {why}" for server, why in unlisted.items())
        line = f"Servers whose tools are still unknown: {told}"
        lines.append(clipped_line(line, INCOMPLETE_CHARACTERS))
    if share < 1:
        lines.append(
            f"Still indexing: {math.floor(share * 100)} % of the tools can be found by meaning, "
            "the rest by words. Search again in a few seconds if the right one is missing."
        )
    return "\n".join(lines) or None


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("toolsearch",),
    capabilities=(
        "show the parameters and the result of a tool",
        "show how a program calls a tool",
    ),
    rename={"form": "as"},
)
def describe_tool(
    context: RequestContext,
    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1_000,
            description="Its name or an alias; for python several, with commas",
        ),
    ],
    form: Annotated[
        Literal["schema", "python"], Field(description="python: a line a tool, for run_code")
    ] = "schema",
) -> ToolDescription:
    """Shows all parameters of a tool, including those that the list leaves out, and its result."""
    if form == "python":
        names = [each.strip() for each in name.split(",")]
        specs = [_find(context, each) for each in names if each]
        python = "\n".join(stub(spec, _description(context, spec)) for spec in specs)
        return ToolDescription(name=name, python=python)
    if context.registry.get(name) is None:
        record = context.catalogue.record(name, context.tool_set)
        if record is not None:
            return ToolDescription.of_record(record)
    spec = _find(context, name)
    return ToolDescription.of(spec, spec.details or _description(context, spec))


def _find(context: RequestContext, name: str) -> ToolSpec:
    return context.catalogue.find(name, context.tool_set, context.identity.user_id)


def _description(context: RequestContext, spec: ToolSpec) -> str:
    return context.registry.description_of(spec, context.tool_set)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.EXECUTE, Effect.EXTERNAL},  # depends on the called tool
    destructive=True,
    tags=("toolsearch",),
    capabilities=("call a tool that is not listed",),
    timeout=math.inf,  # the called tool has its own
    is_proxy=True,
)
async def call_tool(
    context: RequestContext, name: ToolName, arguments: Arguments = None
) -> ToolResult:
    """Calls any tool, listed or not, and answers what it answers."""
    spec = context.registry.get(name)
    if spec is not None and spec.is_proxy:
        raise _nested_too_deep(name, call_tool.__name__)
    call = ToolCall(name, arguments or {})
    result = await context.result_of(call.name, call.arguments)
    return advised(result, context.registry, call)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.EXECUTE, Effect.EXTERNAL},  # depends on the called tools
    destructive=True,
    tags=("toolsearch",),
    capabilities=("call several tools at once",),
    timeout=math.inf,  # the called tools have their own
    is_proxy=True,
    resumable=True,
)
async def call_tools(
    context: RequestContext,
    calls: Annotated[
        list[OneCall],
        Field(min_length=1, max_length=MOST_CALLS, description="Each a name and its arguments"),
    ],
) -> Answers:
    """Calls several tools: reads at once, what writes in order; one that fails stops no other."""
    wanted = [ToolCall(each.name, each.arguments or {}) for each in calls]
    specs = [context.registry.get(call.name) for call in wanted]
    for call, spec in zip(wanted, specs, strict=True):
        if spec is not None and spec.is_proxy:
            raise _nested_too_deep(call.name, call_tools.__name__)
    with _together(context, wanted) as together:
        results = await together.call_all(wanted)
    registry = context.registry
    results = [advised(each, registry, call) for call, each in zip(wanted, results, strict=True)]
    return Answers.of(wanted, results)


@contextmanager
def _together(context: RequestContext, calls: Sequence[ToolCall]) -> Iterator[RequestContext]:
    """Yields the context of several calls: a loop, unless already in one or for a single call."""
    if context.loop is not None or len(calls) == 1:
        yield context
    else:
        with context.looping("", lambda: len(calls) - 1) as (looping, _):
            yield looping


def _nested_too_deep(name: str, through: str) -> InvalidArgumentsError:
    itself = "itself" if name == through else name
    return InvalidArgumentsError(
        f"name: {through} cannot call {itself}.",
        next_actions=["Name the tool that you want called, with its arguments."],
    )


def _compact(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
