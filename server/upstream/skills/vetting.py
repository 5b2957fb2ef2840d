"""Vetting: which skills of other servers a person has to look at before a model does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from server.upstream.connections.skill_entries import SkillEntry
from server.upstream.safety.deception import Finding, invisible, texts_in
from server.upstream.safety.judging import Judged, judge
from server.upstream.safety.pins import Definition
from storage.catalog.pins import Pins

DYNAMIC = "its files are dynamic, so that none can be told from another"


def judge_skills(
    server: str, entries: Sequence[SkillEntry], pins: Pins, *, trusts: bool
) -> list[Judged[SkillEntry]]:
    """The skills of a server, each with what keeps it from being used; blocks.

    They are accepted as tools are (see Vetting). A pin is kept by the address of the skill, which
    with its server is all that tells it from others.

    Args:
        server: Its name in the settings.
        entries: What it lists.
        pins: What was accepted.
        trusts: Whether what has no pin gets one, unless there is something wrong with it.
    """
    offered = {
        each.uri: Judged(each, _definition(each), tuple(_findings(each))) for each in entries
    }
    return judge(server, offered, pins, trusts=trusts)


def _definition(entry: SkillEntry) -> Definition:
    """Its front matter, and each file with digest and size."""
    files: object = entry.resources
    if entry.resources != "dynamic":
        files = {each.uri: f"{each.digest}, {each.size} bytes" for each in entry.resources}
    return Definition.over({"frontmatter": entry.frontmatter, "resources": files})


def _findings(entry: SkillEntry) -> Iterator[Finding]:
    if entry.resources == "dynamic":
        yield Finding(DYNAMIC, "")
    yield from invisible(("front matter", text) for text in texts_in(entry.frontmatter))
