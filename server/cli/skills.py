"""`toolcrib skills`: lists instructions for recurring tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.terminal.options import ConfigOption, JsonOption, RootOption
from server.cli.terminal.screen import console, echo, print_json, print_line, say
from server.mcp.visible import visible, visible_lines

if TYPE_CHECKING:
    from tools.agent.skillfiles.skill import Skill
    from tools.agent.skillfiles.skills import LeftOut

DESCRIPTION_CHARACTERS = 300
"""Length of a skill's description in the list; a named skill is shown in full."""


def skills(
    name: Annotated[str | None, typer.Argument(help="Show this skill and its files.")] = None,
    as_json: JsonOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
) -> None:
    """List the skills and where they were found, or show one; problems go to stderr."""
    from server.composition.skills import make_skills
    from server.settings.sources import load
    from storage.models import Identity

    settings = load({"root": root}, config_file=config)
    identity = Identity(user_id=settings.identity.user_id)
    every = make_skills(settings, os.environ)
    if name is not None:
        _show(every.find(name, identity), as_json=as_json)
        return
    found = every.seen_by(identity)
    if as_json:
        print_json([_as_json(each) for each in found])
    else:
        _print(found)
    _complain(found, every.left_out())


def _as_json(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.path,
        "description": skill.description,
        "source": skill.place.shown,
        "directory": skill.where,
        "problems": list(skill.problems),
        "frontmatter": skill.frontmatter,
    }


def _print(found: Sequence[Skill]) -> None:
    from tools.answers.tool_cards import clipped_line

    for skill in found:
        say((visible(skill.path), "bold"), (f"  {visible(skill.place.shown)}", "dim"))
        if said := clipped_line(visible(skill.description), DESCRIPTION_CHARACTERS):
            say(f"      {said}")


def _show(skill: Skill, *, as_json: bool) -> None:
    from tools.agent.skillfiles.skill import MAIN

    files, too_many = skill.listed()
    if as_json:
        listed = [{"path": each.path, "size": each.size} for each in files]
        print_json({**_as_json(skill), "files": listed})
        return
    say((visible(skill.path), "bold"), (f"  {visible(skill.where)}", "dim"))
    for each in files:
        say(f"      {visible(each.path)}", (f"  {each.size:,} bytes", "dim"))
    if too_many:
        print_line(console(), "It has more files or bytes than a skill may have.", "yellow")
    say("")
    echo(visible_lines(skill.text(MAIN)))
    _complain([skill], ())


def _complain(found: Sequence[Skill], left_out: Sequence[LeftOut]) -> None:
    for skill in found:
        for each in skill.problems:
            echo(f"{visible(skill.path)}: {visible(each)}", err=True)
    for out in left_out:
        where = visible(out.where)
        echo(f"{where} is left out: {visible(out.why)}", err=True)
