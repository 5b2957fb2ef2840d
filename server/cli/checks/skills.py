"""Check of the skills: which are found, and which are listed for clients that support skills."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.settings import Settings
    from tools.agent.skillfiles.skills import Skills

MOST_TOLD = 10


def skills(settings: Settings) -> str:
    """Checks every skill on this machine as it is served to clients that support skills."""
    from server.composition.skills import make_skills
    from server.mcp.visible import visible
    from tools.answers.directory import counted

    every = make_skills(settings, os.environ)
    found, unserved = len(every.all()), list(_unserved(every))
    wrong = [*unserved, *(f"{each.where} is left out: {each.why}" for each in every.left_out())]
    more = [f"and {len(wrong) - MOST_TOLD} more"] if len(wrong) > MOST_TOLD else []
    count = f"{found - len(unserved)} of them" if unserved else "all"
    said = f"{counted(found, 'skill')}, {count} listed by skills/list"
    return "\n".join([said, *map(visible, wrong[:MOST_TOLD]), *more])


def _unserved(every: Skills) -> Iterator[str]:
    from server.mcp.browsing.skill_wire import entry_of, servers_of
    from tools.core.errors import ToolError

    servers = servers_of(every.all())
    for each in every.all():
        try:
            entry_of(each, servers)
        except ToolError as error:
            yield f"{each.path} is not: {error.message}"
