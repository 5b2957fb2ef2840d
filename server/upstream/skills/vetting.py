"""Vetting: which skills of other servers a person has to look at before a model does."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from server.upstream.connections.skill_entries import SkillEntry
from server.upstream.safety.deception import Finding
from server.upstream.safety.pins import Definition
from server.upstream.safety.vetting import CHANGED, UNKNOWN, UNPINNED
from storage.catalog.pins import Pin, Pins
from storage.errors import StorageError
from tools.core.invisible import hidden

__all__ = ["JudgedSkill", "judge_skills"]

DYNAMIC = "its files are dynamic, so that none can be told from another"
INVISIBLE = "what it says of itself has invisible characters"

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class JudgedSkill:
    """A skill, and whether it may be used.

    Attributes:
        entry: As its server lists it.
        definition: What a pin of it is over: its front matter, and each file with digest and size.
        pin: What was accepted of it; None if nothing was.
        findings: Why a person has to look at it; empty where none has to.
    """

    entry: SkillEntry
    definition: Definition
    pin: Pin | None
    findings: tuple[Finding, ...]

    @property
    def barred(self) -> str:
        """The findings as the rest of a sentence; empty where there are none."""
        return "; ".join(each.reason for each in self.findings)


def judge_skills(
    server: str, entries: Sequence[SkillEntry], pins: Pins, *, trusts: bool
) -> list[JudgedSkill]:
    """The skills of a server, each with what keeps it from being used; blocks.

    As with tools, the first that is seen of a skill is accepted unless there is something wrong
    with it, and what is another afterwards waits for a person. A pin is kept by the address of the
    skill, which with its server is all that tells it from others.

    Args:
        server: Its name in the settings.
        entries: What it lists.
        pins: What was accepted.
        trusts: Whether what has no pin gets one, unless there is something wrong with it.
    """
    try:
        known = pins.of(server)
    except StorageError as error:
        _logger.warning("The pins of %r cannot be read: %s", server, error)
        unknown = Finding(UNKNOWN, "")
        return [JudgedSkill(each, _definition(each), None, (unknown,)) for each in entries]
    judged = [_judged(each, known.get(each.uri)) for each in entries]
    return _trusted(server, judged, pins) if trusts else judged


def _judged(entry: SkillEntry, pin: Pin | None) -> JudgedSkill:
    definition = _definition(entry)
    if pin is None:
        return JudgedSkill(entry, definition, None, tuple(_findings(entry)))
    if pin.sha256 != definition.sha256:
        found = (Finding(CHANGED, ""), *_findings(entry))
        return JudgedSkill(entry, definition, pin, found)
    return JudgedSkill(entry, definition, pin, () if pin.approved else tuple(_findings(entry)))


def _trusted(server: str, judged: Sequence[JudgedSkill], pins: Pins) -> list[JudgedSkill]:
    """The same, where what is new and has nothing wrong is pinned."""
    new = {
        each.entry.uri: (each.definition.sha256, each.definition.text)
        for each in judged
        if each.pin is None and not each.findings
    }
    if not new:
        return list(judged)
    try:
        pinned: Mapping[str, Pin] = pins.trust(server, new)
    except StorageError as error:
        _logger.warning("Skills of %r cannot be pinned: %s", server, error)
        pinned = {}
    return [
        _with(each, pinned.get(each.entry.uri)) if each.entry.uri in new else each
        for each in judged
    ]


def _with(judged: JudgedSkill, pin: Pin | None) -> JudgedSkill:
    """The same with its new pin, which another process may have made of something else."""
    if pin is None:
        return replace(judged, findings=(Finding(UNPINNED, ""),))
    return _judged(judged.entry, pin)


def _definition(entry: SkillEntry) -> Definition:
    if entry.resources == "dynamic":
        files: object = "dynamic"
    else:
        files = {each.uri: f"{each.digest}, {each.size} bytes" for each in entry.resources}
    content = {"frontmatter": entry.frontmatter, "resources": files}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return Definition(text, sha256(text.encode()).hexdigest())


def _findings(entry: SkillEntry) -> Iterator[Finding]:
    if entry.resources == "dynamic":
        yield Finding(DYNAMIC, "")
    said = json.dumps(entry.frontmatter, ensure_ascii=False)
    if hidden(said):
        yield Finding(INVISIBLE, said[:200])
