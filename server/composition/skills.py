"""Builds the skills in the settings, and those that other agents keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp.server.context import ServerRequestContext

from server.composition.safety import make_sandbox
from server.mcp.browsing.skill_view import SkillView
from server.mcp.profiles import Profiles
from server.settings.settings import Settings
from storage.models import Identity
from tools.agent.skillfiles.places import SkillPlaces
from tools.agent.skillfiles.skill import Skill
from tools.agent.skillfiles.skills import Skills
from tools.core.toolset import ToolSet
from tools.retrieval.catalogue import LOADER, Catalogue
from tools.sandbox.files.sandbox import Sandbox


def make_skills(
    settings: Settings,
    environ: Mapping[str, str],
    others: Callable[[], Sequence[Skill]] = tuple,
    sandbox: Sandbox | None = None,
) -> Skills:
    """Builds the skills, which are read on first use.

    Args:
        settings: The settings.
        environ: The environment, for the locations of agents' skills.
        others: Returns the skills of other servers; see Skills.
        sandbox: The files of the root; None uses the current directory.
    """
    places = SkillPlaces(
        files=sandbox or make_sandbox(settings, settings.root),
        machine=make_sandbox(settings, Path(settings.root.anchor)),
        directories=settings.skills.directories,
        discover=settings.skills.discover,
        home=_home(),
        variables=environ,
    )
    return Skills(places, owner=settings.identity.user_id, others=others)


def view_skills(catalogue: Catalogue, identity: Identity, profiles: Profiles) -> SkillView:
    """Builds the clients' view of skills, shown to clients that may load them."""

    def tool_set_of(ctx: ServerRequestContext[Any, Any]) -> ToolSet | None:
        profile = profiles.of(ctx)
        return None if profile is None else profile.tool_set

    def may_load(tool_set: ToolSet | None) -> bool:
        loader = catalogue.registry.get(LOADER)
        return loader is not None and (tool_set is None or tool_set.admits(loader))

    return SkillView(catalogue.skills, identity, tool_set_of, may_load)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # the user has no home directory
        return None
