"""Searches memory and knowledge with one question."""

from __future__ import annotations

from typing import Annotated, Literal, Unpack

from pydantic import Field

from storage.models import SearchFilter
from storage.retrieval.routing import Scope, UnifiedQuery
from tools.answers.customization import FilterArguments, customized, read_filters
from tools.answers.hits import Answer, FittingSkill
from tools.answers.params import TopK
from tools.answers.tool_cards import clipped_line
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import Effect, ToolScope, tool
from tools.retrieval.index_updates import TAG
from tools.retrieval.models import SearchQuery

MOST_SKILLS = 2
SKILLS_SECONDS = 30.0  # seconds for which a query does without looking for new skills
DESCRIPTION_CHARACTERS = 160
PLAINLY = 0.4  # minimum score of a skill that matches the query itself, not just a related topic


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "retrieval", "memory"),
    capabilities=("answer a question from what is stored", "recall"),
    customize=customized,
)
def query(
    context: RequestContext,
    query: Annotated[str, Field(min_length=1, max_length=10_000, description="The question")],
    scope: Annotated[
        Literal["auto", "memory", "knowledge", "all"],
        Field(description="Where to look; auto goes by the question"),
    ] = "auto",
    intent: Annotated[
        str, Field(max_length=64, description="What for, such as recall or troubleshooting")
    ] = "",
    source: Annotated[
        str | None, Field(max_length=64, description="Only in this part of knowledge")
    ] = None,
    layer: Annotated[
        Literal["auto", "l1", "l2", "l3", "l4"],
        Field(description="Of memory: l1 this session, l2 important, l3 summaries, l4 facts"),
    ] = "auto",
    filters: Annotated[FilterArguments | None, Field(description="What narrows it")] = None,
    top_k: TopK = 5,
    **identity: Unpack[IdentityArguments],
) -> Answer:
    """Searches all memory and knowledge of this user: ask here before saying you do not know."""
    if not query.strip():
        raise InvalidArgumentsError(
            "query is empty.", next_actions=("Describe what you are looking for.",)
        )
    _check_together(scope, source, layer)
    sources = context.collections.sources
    meant = None if source is None else context.collections.source(source)
    unified = UnifiedQuery(
        text=query,
        top_k=top_k,
        scope=Scope(scope),
        intent=intent,
        source=meant,
        sources=sources,
        layers=() if layer == "auto" else (int(layer[1:]),),
        criteria=SearchFilter() if filters is None else read_filters(filters, meant, sources),
        session_id=context.session_id,
    )
    answer = Answer.of_unified(context.shelf(**identity).ask(unified), query)
    if unified.scope in {Scope.AUTO, Scope.ALL} and not (source or filters or unified.layers):
        answer.skills = _fitting_skills(context, query) or None
    return answer


def _fitting_skills(context: RequestContext, query: str) -> list[FittingSkill]:
    """Returns the skills that clearly match the query, except Toolcrib's own."""
    skills = context.catalogue.skills.seen_by(context.identity, context.tool_set, SKILLS_SECONDS)
    others = {each.path: each for each in skills if not each.place.is_own}
    if not others:
        return []
    asked = SearchQuery(
        query_text=query, tags_filter=(TAG,), top_k=MOST_SKILLS + 3, min_score=PLAINLY
    )
    found = context.catalogue.search(asked, context.identity, admitted=context.tool_set)
    fitting = [each.record for each in found if each.record.is_skill and each.record.name in others]
    return [
        FittingSkill(
            name=each.name, description=clipped_line(each.description, DESCRIPTION_CHARACTERS)
        )
        for each in fitting[:MOST_SKILLS]
    ]


def _check_together(scope: str, source: str | None, layer: str) -> None:
    """Rejects contradictions: sources belong to knowledge, layers to memory."""
    if layer != "auto" and source is not None:
        wrong, drop = f"source {source!r} is knowledge, layer {layer} is memory", "source or layer"
    elif layer != "auto" and scope == "knowledge":
        wrong, drop = f"scope knowledge has no layers, and so no {layer}", "layer or scope"
    elif source is not None and scope == "memory":
        wrong, drop = f"scope memory has no sources, and so no {source!r}", "source or scope"
    else:
        return
    raise InvalidArgumentsError(f"{wrong}.", next_actions=(f"Leave {drop} out.",))
