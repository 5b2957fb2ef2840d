"""Operators of Data-Juicer: found by what they are to do, and told whole."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Annotated, Literal

import anyio.to_thread
from pydantic import Field

from tools.answers.params import TopK
from tools.core.client import Refusal, Reply, Sampler
from tools.core.context import RequestContext
from tools.core.errors import UnavailableError, UpstreamError
from tools.core.spec import Effect, ToolScope, tool
from tools.data.answers.operators import (
    FoundOperators,
    ListedOperator,
    OperatorHit,
    OperatorInfo,
    OperatorPage,
    SearchStep,
)
from tools.data.catalogue.bundle import bundled, bundled_index
from tools.data.catalogue.kinds import Kind

if TYPE_CHECKING:  # a start needs no catalogue
    from tools.data.catalogue.operator import Operator

CANDIDATES = 40
"""Operators that are found by words before a model chooses among them."""

_Intent = Annotated[
    str, Field(min_length=1, max_length=1_000, pattern=r"\S", description="What is to be done")
]
_Kind = Annotated[Kind | None, Field(description="Only operators of this kind")]
_Tags = Annotated[
    list[Annotated[str, Field(max_length=64)]] | None,
    Field(max_length=20, description="Only with all of these, such as text, image, cpu, gpu, api"),
]


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "operators"),
    capabilities=("find operators that clean, filter, deduplicate or make data for training",),
)
async def retrieve_operators(
    intent: _Intent,
    top_k: TopK = 10,
    mode: Annotated[
        Literal["auto", "bm25", "regex"],
        Field(description="auto: by words and meaning, or else as a regular expression"),
    ] = "auto",
    op_type: _Kind = None,
    tags: _Tags = None,
) -> FoundOperators:
    """Finds operators of Data-Juicer by what they are to do, in English or Chinese."""
    from tools.data.catalogue.search import by_pattern

    operators = await _chosen(op_type, tags)
    hits: list[OperatorHit] = []
    trace = []
    if mode != "regex":
        hits = await _searched(intent, operators, with_meaning=mode == "auto")
        searcher = "hybrid" if any(each.cosine is not None for each in hits) else "bm25"
        trace.append(SearchStep(searcher=searcher, found=len(hits)))
    if mode == "regex" or (mode == "auto" and not hits):
        hits = [OperatorHit.of(each) for each in await by_pattern(intent, operators)]
        trace.append(SearchStep(searcher="regex", found=len(hits)))
    return FoundOperators(operators=hits[:top_k], trace=trace, candidates=len(operators))


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    tags=("data", "operators"),
    capabilities=("have a model choose operators for processing data",),
    timeout=300,
)
async def retrieve_operators_api(
    context: RequestContext,
    intent: _Intent,
    top_k: TopK = 10,
    mode: Annotated[
        Literal["auto", "llm"],
        Field(description="llm: the model reads all operators; auto: the best by words, or all"),
    ] = "auto",
    op_type: _Kind = None,
    tags: _Tags = None,
) -> FoundOperators:
    """Has a model choose operators: the client's, or else the one that the settings name."""
    if context.sampler is None:
        raise UnavailableError(
            "There is no model to ask: the client offers none, and the settings name none.",
            next_actions=[
                "Use retrieve_operators, which needs no model.",
                "Ask the user to set summaries.url and summaries.model to such a model.",
            ],
        )
    from tools.data.catalogue.search import ratings

    operators = await _chosen(op_type, tags)
    found: list[OperatorHit] = []
    trace = []
    if mode == "auto":
        found = await _searched(intent, operators, with_meaning=True)
        trace.append(SearchStep(searcher="hybrid", found=len(found)))
    asked = [bundled().operators[each.name] for each in found[:CANDIDATES]] or operators
    if not asked:
        return FoundOperators(operators=[], trace=trace, candidates=0)
    reply = await _asked(context.sampler, intent, top_k, asked)
    if isinstance(reply, Reply):
        rated = ratings(reply.text, asked)
        hits = [OperatorHit.of(bundled().operators[name], rated[name]) for name in rated]
        trace.append(SearchStep(searcher="llm", found=len(hits), note=reply.model))
    elif mode == "llm":
        raise UpstreamError(
            f"No operator was chosen: {reply}.",
            next_actions=["Use retrieve_operators, which needs no model."],
        )
    else:
        hits = found
        trace.append(SearchStep(searcher="llm", found=0, note=reply))
    return FoundOperators(operators=hits[:top_k], trace=trace, candidates=len(operators))


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "operators"),
    capabilities=("see the parameters of an operator of Data-Juicer",),
)
def get_operator_info(
    operator_name: Annotated[
        str, Field(min_length=1, max_length=256, description="Its name, as nearly as you know it")
    ],
) -> OperatorInfo:
    """Tells all of an operator: what it does, its parameters with types and defaults."""
    found = bundled().resolve(operator_name)
    return OperatorInfo.of(found, bundled().common(found.operator.type), bundled().version)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "operators"),
    capabilities=("list the operators of Data-Juicer",),
)
def list_operator_catalog(
    op_type: _Kind = None,
    tags: _Tags = None,
    include_parameters: Annotated[bool, Field(description="With the parameters of each")] = False,
    limit: Annotated[int, Field(ge=1, le=1_000, description="Most operators of a page")] = 50,
    cursor: Annotated[
        str, Field(max_length=256, description="next_cursor of the page before")
    ] = "",
) -> OperatorPage:
    """Lists operators by name, in pages."""
    operators = list(bundled().chosen(op_type, tags or ()))
    begin = bisect.bisect_right([each.name for each in operators], cursor)
    page = operators[begin : begin + limit]
    has_more = begin + limit < len(operators)
    return OperatorPage(
        operators=[ListedOperator.of(each, with_parameters=include_parameters) for each in page],
        total=len(operators),
        next_cursor=page[-1].name if has_more else None,
        release=bundled().version,
    )


async def _chosen(op_type: Kind | None, tags: list[str] | None) -> list[Operator]:
    """The operators that the filters leave; the first time the catalogue is read."""
    return await anyio.to_thread.run_sync(lambda: list(bundled().chosen(op_type, tags or ())))


async def _searched(
    intent: str, operators: list[Operator], *, with_meaning: bool
) -> list[OperatorHit]:
    """Those that a search finds, the best first."""
    index = await anyio.to_thread.run_sync(bundled_index)
    search = index.by_both if with_meaning else index.by_words
    scores = await anyio.to_thread.run_sync(search, intent)
    found = [(scores[each.name], each) for each in operators if each.name in scores]
    found.sort(key=lambda each: (-each[0].score, each[1].name))
    return [OperatorHit.scored(operator, score) for score, operator in found]


async def _asked(
    sampler: Sampler, intent: str, top_k: int, operators: list[Operator]
) -> Reply | str:
    """What a model answered, or why it did not."""
    from tools.data.catalogue.search import question

    (reply,) = await sampler.ask([question(intent, top_k, operators)], state="")
    if isinstance(reply, Reply):
        return reply
    return f"{reply.by} refused" if isinstance(reply, Refusal) else "the model gave no answer"
