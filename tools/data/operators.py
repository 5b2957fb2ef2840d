"""Finds and describes operators of Data-Juicer, and lists what else its release offers."""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from tools.answers.params import TopK
from tools.core.client import Refusal, Reply
from tools.core.context import RequestContext
from tools.core.errors import UnavailableError, UpstreamError
from tools.core.spec import tool
from tools.data.answers.operators import (
    Formatters,
    FoundOperators,
    ListedOperator,
    OperatorHit,
    OperatorInfo,
    OperatorPage,
    Options,
    SearchStep,
    Strategies,
)
from tools.data.catalogue.catalogue import Kind, Operator, bundled
from tools.data.recipe import Executor
from tools.data.specs import READS

CANDIDATES = 40  # operators, the best by words and meaning, that a model chooses among

LIKE_PATTERN = re.compile(r"\w[\\^$*|(\[]|[\\^$*|)\]]\w")
"""Matches an intent that looks like a regular expression: signs of one next to a word."""

LISTS: Mapping[str, Any] = {**READS, "tags": ("data", "operators")}
"""Options of the tools that describe operators without asking a model."""

_Intent = Annotated[
    str, Field(min_length=1, max_length=1_000, pattern=r"\S", description="What is to be done")
]
_Kind = Annotated[Kind | None, Field(description="Only operators of this kind")]
_Tags = Annotated[
    list[Annotated[str, Field(max_length=64)]] | None,
    Field(max_length=20, description="Only with all of these, such as text, image, cpu, gpu, api"),
]


@tool(
    **LISTS,
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
    from tools.data.catalogue.search import FLOOR, by_pattern, rank

    operators = await _select(op_type, tags)
    hits, trace = [], []
    if mode != "regex":
        rank_all = partial(rank, intent, operators, with_meaning=mode == "auto")
        ranked = await anyio.to_thread.run_sync(rank_all)
        hits = [OperatorHit.of(each, *kinds) for each, kinds in ranked if kinds.score >= FLOOR]
        trace.append(SearchStep(searcher="hybrid" if mode == "auto" else "bm25", found=len(hits)))
    if mode == "regex" or (mode == "auto" and not hits and LIKE_PATTERN.search(intent)):
        hits = [OperatorHit.of(each) for each in await by_pattern(intent, operators)]
        trace.append(SearchStep(searcher="regex", found=len(hits)))
    return FoundOperators.of(hits[:top_k], trace, len(operators))


@tool(
    **{**LISTS, "idempotent": False},
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
    from tools.data.catalogue.search import question, rank, ratings

    operators = asked = await _select(op_type, tags)
    trace = []
    if mode == "auto":
        ranked = await anyio.to_thread.run_sync(partial(rank, intent, operators))
        asked = [operator for operator, _ in ranked[:CANDIDATES]]
        trace.append(SearchStep(searcher="hybrid", found=len(asked)))
    if not asked:
        return FoundOperators.of([], trace, 0)
    (reply,) = await context.sampler.ask([question(intent, top_k, asked)], state="")
    if not isinstance(reply, Reply):
        problem = f"{reply.by} refused" if isinstance(reply, Refusal) else reply.problem
        raise _unusable(f"The model gave no answer: {problem}")
    try:
        rated = ratings(reply.text, operators)
    except ValueError as error:
        begins = f"It begins {reply.text[:200]!r}"
        raise _unusable(f"The answer of {reply.model} is not usable: {error}. {begins}") from None
    hits = [OperatorHit.of(*each) for each in rated[:top_k]]
    trace.append(SearchStep(searcher="llm", found=len(rated), note=reply.model))
    return FoundOperators.of(hits, trace, len(operators))


@tool(**LISTS, capabilities=("see the parameters of an operator of Data-Juicer",))
def get_operator_info(
    operator_name: Annotated[
        str, Field(min_length=1, max_length=256, description="Its name, as nearly as you know it")
    ],
) -> OperatorInfo:
    """Tells all of an operator: what it does, its parameters with types and defaults."""
    return OperatorInfo.of(operator_name, bundled())


@tool(**LISTS, capabilities=("list the operators of Data-Juicer",))
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
    operators = bundled().select(op_type, tags)
    begin = bisect.bisect_right([each.name for each in operators], cursor)
    page = operators[begin : begin + limit]
    has_more = begin + limit < len(operators)
    left_out = {} if include_parameters else {"parameters": None}
    return OperatorPage(
        operators=[ListedOperator.from_attributes(each, **left_out) for each in page],
        total=len(operators),
        next_cursor=page[-1].name if has_more else None,
        release=bundled().version,
    )


@tool(**READS, capabilities=("see what can be configured of running a recipe",))
def list_system_config(
    prefix: Annotated[
        str, Field(max_length=64, description="Only keys that begin so, such as partition.")
    ] = "",
    include_descriptions: Annotated[bool, Field(description="Say what each is for")] = False,
) -> Options:
    """Lists what a system spec may say, with types and defaults."""
    known = bundled().system_options.values()
    options = [each for each in known if each.name.startswith(prefix)]
    if not include_descriptions:
        options = [each.model_copy(update={"description": ""}) for each in options]
    return Options(options=options, release=bundled().version)


@tool(**READS, capabilities=("see which formats of datasets can be read, or made",))
def list_dataset_formatters() -> Formatters:
    """Lists the formatters: which files each reads, or what dataset it makes."""
    return Formatters(formatters=list(bundled().formatters.values()))


@tool(**READS, capabilities=("see from where datasets can be loaded",))
def list_dataset_load_strategies(
    executor_type: Annotated[
        Executor | None, Field(description="Only those of this executor")
    ] = None,
) -> Strategies:
    """Lists where data can be loaded from, and which keys an entry of dataset.configs needs."""
    return Strategies(strategies=bundled().strategies_of(executor_type))


async def _select(op_type: Kind | None, tags: list[str] | None) -> list[Operator]:
    # In a thread: the first call reads the catalogue.
    return await anyio.to_thread.run_sync(lambda: bundled().select(op_type, tags))


def _unusable(message: str) -> UpstreamError:
    return UpstreamError(
        f"{message}.",
        next_actions=[
            "Use retrieve_operators, which needs no model.",
            "Ask the user to check the model that summaries.url and summaries.model name.",
        ],
    )
