"""The skills visible to one client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server.context import ServerRequestContext

from server.mcp.sessions import principal_of
from storage.models import Identity
from tools.agent.skillfiles.skill import Skill
from tools.agent.skillfiles.skills import Skills
from tools.core.errors import NotFoundError
from tools.core.toolset import ToolSet

Context = ServerRequestContext[Any, Any]


class SkillView:
    """Finds skills for a client; its methods block and belong in a worker thread.

    Args:
        skills: All skills.
        identity: The identity of requests without a token.
        tool_set_of: Returns the tools that a client may call; None allows all.
        may_load: Returns whether these tools include loading skills.
    """

    def __init__(
        self,
        skills: Skills,
        identity: Identity,
        tool_set_of: Callable[[Context], ToolSet | None] = lambda _ctx: None,
        may_load: Callable[[ToolSet | None], bool] = lambda _tool_set: True,
    ) -> None:
        self._skills = skills
        self._identity = identity
        self._tool_set_of = tool_set_of
        self._may_load = may_load

    def visible_to(self, ctx: Context) -> Sequence[Skill]:
        """Returns the skills that the client may see; none if it may not load any."""
        tool_set = self._tool_set_of(ctx)
        return self._skills.seen_by(self._who(ctx), tool_set) if self._may_load(tool_set) else ()

    def changes(self) -> int:
        """Refreshes the skills and returns how often they have changed."""
        self._skills.all()
        return self._skills.changes

    def at(self, ctx: Context, uri: str) -> tuple[Skill, str]:
        """Returns the skill that contains an address, and the path in it.

        Raises:
            NotFoundError: If the client may see no skill there.
        """
        tool_set = self._tool_set_of(ctx)
        if not self._may_load(tool_set):
            raise NotFoundError(f"{uri!r} is not the address of a skill.")
        return self._skills.at(uri, self._who(ctx), tool_set)

    def find(self, ctx: Context, name: str) -> Skill:
        """Returns the skill of a name.

        Raises:
            NotFoundError: If the client may see no skill of that name.
        """
        tool_set = self._tool_set_of(ctx)
        if not self._may_load(tool_set):
            raise NotFoundError("The profile of this client leaves skills out.")
        return self._skills.find(name, self._who(ctx), tool_set)

    def _who(self, ctx: Context) -> Identity:
        return principal_of(ctx, self._identity).identity
