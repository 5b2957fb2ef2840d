"""Vetting: selects skills of other servers that need review before a model sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from server.upstream.connections.skill_entries import SkillEntry
from server.upstream.safety.deception import Finding, invisible, texts_in
from server.upstream.safety.judging import Judged, judge
from server.upstream.safety.pins import Definition
from storage.catalog.catalog import Pins

DYNAMIC = "its files are dynamic, so that their content cannot be pinned"


def judge_skills(
    server: str, entries: Sequence[SkillEntry], pins: Pins, *, trusts: bool
) -> list[Judged[SkillEntry]]:
    """Returns the skills of a server with the reasons against their use; blocks.

    They are accepted like tools (see Vetting). A pin belongs to the skill's address, which together
    with its server identifies it.

    Args:
        server: The name of the server in the settings.
        entries: Its listed skills.
        pins: Approved definitions.
        trusts: Whether to pin new skills that have no findings.
    """
    offered = {
        each.uri: Judged(each, _definition(each), tuple(_findings(each))) for each in entries
    }
    return judge(server, offered, pins, trusts=trusts)


def _definition(entry: SkillEntry) -> Definition:
    """Builds the definition from the front matter, and each file's digest and size."""
    files: object = entry.resources
    if entry.resources != "dynamic":
        files = {each.uri: f"{each.digest}, {each.size} bytes" for each in entry.resources}
    return Definition.over({"frontmatter": entry.frontmatter, "resources": files})


def _findings(entry: SkillEntry) -> Iterator[Finding]:
    if entry.resources == "dynamic":
        yield Finding(DYNAMIC, "")
    yield from invisible(("front matter", text) for text in texts_in(entry.frontmatter))
