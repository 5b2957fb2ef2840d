"""The skills that one client may see."""

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
    """Finds skills for whoever makes a request; all of it blocks, in a worker thread.

    Args:
        skills: All of them.
        identity: Who asks where no token says it.
        tool_set_of: The tools that a client may call; None means all.
        may_load: Whether skills may be loaded with such tools.
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

    def seen(self, ctx: Context) -> Sequence[Skill]:
        """All that they may see; none where they may not load any."""
        tool_set = self._tool_set_of(ctx)
        return self._skills.seen_by(self._who(ctx), tool_set) if self._may_load(tool_set) else ()

    def changes(self) -> int:
        """How often what there is was found to be other, now included."""
        self._skills.all()
        return self._skills.changes

    def at(self, ctx: Context, uri: str) -> tuple[Skill, str]:
        """The skill that an address is in, and the path of what is there.

        Raises:
            NotFoundError: If they may see none there.
        """
        tool_set = self._tool_set_of(ctx)
        if not self._may_load(tool_set):
            raise NotFoundError(f"{uri!r} is the address of no skill.")
        return self._skills.at(uri, self._who(ctx), tool_set)

    def named(self, ctx: Context, name: str) -> Skill:
        """The skill of a name.

        Raises:
            NotFoundError: If they may see none that is called so.
        """
        tool_set = self._tool_set_of(ctx)
        if not self._may_load(tool_set):
            raise NotFoundError("The profile of this client leaves skills out.")
        return self._skills.find(name, self._who(ctx), tool_set)

    def _who(self, ctx: Context) -> Identity:
        return principal_of(ctx, self._identity).identity
