"""The skills of the settings, and those that other agents keep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from server.composition.safety import make_sandbox
from server.settings.settings import Settings
from tools.agent.skillfiles.places import SkillPlaces
from tools.agent.skillfiles.skills import Skills

__all__ = ["make_skills"]


def make_skills(settings: Settings, environ: Mapping[str, str]) -> Skills:
    """Makes the skills, of which nothing is looked at before the first question."""
    places = SkillPlaces(
        files=make_sandbox(settings, settings.root),
        machine=make_sandbox(settings, Path(settings.root.anchor)),
        directories=settings.skills.directories,
        discover=settings.skills.discover,
        home=_home(),
        environ=environ,
    )
    return Skills(places, owner=settings.identity.user_id)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # the user has none
        return None
