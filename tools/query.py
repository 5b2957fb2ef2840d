"""One question over everything that is stored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from storage.models import SearchFilter
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.params import AgentId, DeviceId, TopK, UserId
from tools.core.retrieved import Retrieved
from tools.core.spec import Effect, ToolScope, tool

__all__ = ["query"]


class Answer(Retrieved):
    """What was found, and where.

    Attributes:
        scope: Where it was looked for.
    """

    scope: str


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "retrieval"),
    capabilities=("answer a question from what is stored", "recall"),
)
def query(
    context: RequestContext,
    query: Annotated[str, Field(min_length=1, max_length=10_000, description="The question")],
    scope: Annotated[
        Literal["auto", "knowledge", "all"],
        Field(description="Where to look; knowledge is all there is"),
    ] = "auto",
    top_k: TopK = 5,
    user_id: UserId = None,
    device_id: DeviceId = None,
    agent_id: AgentId = None,
) -> Answer:
    """Searches everything stored for this user: ask here first, before saying you do not know."""
    if not query.strip():
        raise InvalidArgumentsError(
            f"query: {query!r} asks nothing.", next_actions=("Ask in words what you look for.",)
        )
    shelf = context.shelf(user_id, device_id, agent_id)
    found = Retrieved.of(shelf.search(query, SearchFilter(), top_k))
    return Answer(scope="knowledge" if scope == "auto" else scope, **found.__dict__)
