"""Settings of skills: their directories, and whether to discover those of other agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from server.settings.group import SettingsGroup, expand, split_commas


def _check(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError(f"names {str(path)!r}, which is not an existing directory")
    return path


class SkillSettings(SettingsGroup):
    """Directories of skills, each with a SKILL.md that agents load on demand."""

    directories: Annotated[
        tuple[Annotated[Path, AfterValidator(expand), AfterValidator(_check)], ...],
        BeforeValidator(split_commas),
    ] = Field(
        (),
        description="Directories of skills, for everybody who uses this server; each skill is a "
        "directory with a SKILL.md in one of them. Separated by commas in the environment.",
    )
    discover: bool = Field(
        default=True,
        description="Whether skills are also found where Claude Code, Codex, Gemini CLI, opencode, "
        "Cursor and others keep them: in the home directory, for its user alone, and in the root.",
    )
