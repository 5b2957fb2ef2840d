"""The skills of the settings, and those that other agents keep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp.server.context import ServerRequestContext

from server.composition.safety import make_sandbox
from server.mcp.profiles import Profiles
from server.settings.settings import Settings
from tools.agent.skillfiles.places import SkillPlaces
from tools.agent.skillfiles.skills import Skills
from tools.core.registry import ToolRegistry
from tools.retrieval.catalogue import LOADER

__all__ = ["make_skills", "may_load_skills"]


def make_skills(settings: Settings, environ: Mapping[str, str]) -> Skills:
    """Makes the skills, of which nothing is looked at before the first question."""
    places = SkillPlaces(
        files=make_sandbox(settings, settings.root),
        machine=make_sandbox(settings, Path(settings.root.anchor)),
        directories=settings.skills.directories,
        discover=settings.skills.discover,
        home=_home(),
        variables=environ,
    )
    return Skills(places, owner=settings.identity.user_id)


def may_load_skills(
    registry: ToolRegistry, profiles: Profiles, ctx: ServerRequestContext[Any, Any]
) -> bool:
    """Whether the profile of a request has the tool that loads skills."""
    loader, profile = registry.get(LOADER), profiles.of(ctx)
    return loader is not None and (profile is None or profile.tool_set.admits(loader))


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # the user has none
        return None
