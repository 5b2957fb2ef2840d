"""Stores the skills of other servers, as last listed and with their approval."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import anyio
import anyio.from_thread
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.mcp.browsing.skill_view import SkillParams
from server.mcp.visible import visible
from server.upstream.connections.link import problem_of
from server.upstream.safety.deception import Finding, invisible, texts_in
from server.upstream.safety.pinning import Definition, Judged, judge
from server.upstream.skill_entries import (
    Address,
    GetSkill,
    GetSkillResult,
    SkillEntry,
    UpstreamSkill,
)
from server.upstream.upstream import Upstream
from storage.catalog.catalog import Pins
from storage.errors import StorageError
from tools.agent.skillfiles.places import Origin
from tools.agent.skillfiles.skill import FrontMatter
from tools.core.errors import ToolError, UpstreamError
from tools.core.unicode_safety import revealed

MOST_TOLD = 10
"""Rejected skills of a server that are logged one by one."""

DYNAMIC = "its files are dynamic, so that their content cannot be pinned"

_Held = Mapping[str, tuple[Upstream, tuple[SkillEntry, ...]]]

_logger = logging.getLogger("toolcrib")


class HeldSkills:
    """Stores the skills of other servers; reads none before it is needed."""

    def __init__(self, pins: Pins) -> None:
        self._pins = pins
        self._held: _Held = {}
        self._usable: dict[str, tuple[tuple[SkillEntry, ...], list[SkillEntry]]] = {}
        self._judged: _Held = {}
        self._approvals = -1
        self._skills: tuple[UpstreamSkill, ...] = ()
        self._judging = threading.Lock()

    def put(self, upstream: Upstream, entries: Sequence[SkillEntry]) -> None:
        """Replaces a server's skills."""
        self._held = {**self._held, upstream.name: (upstream, tuple(entries))}

    def offered(self) -> tuple[UpstreamSkill, ...]:
        """Returns all skills; the same object until one changes or is approved. Blocks."""
        with self._judging:
            held, approvals = self._held, self._approvals
            if any(each.quarantine_reason for each in self._skills):
                approvals = self._count_approvals()
            if held is not self._judged or approvals != self._approvals:
                self._approvals = self._count_approvals()
                self._skills = tuple(self._make_skills(held))
                self._judged = held
            return self._skills

    def _count_approvals(self) -> int:
        try:
            return self._pins.approvals()
        except StorageError:  # judge again, as this may have barred skills
            return -2

    def _make_skills(self, held: _Held) -> list[UpstreamSkill]:
        made = []
        for name, (upstream, entries) in held.items():
            fetch = partial(self._fetch_blocking, upstream)
            if (known := self._usable.get(name)) is None or known[0] is not entries:
                known = self._usable[name] = entries, usable(name, entries)
            judged = judge_skills(name, known[1], self._pins, trusts=True)
            made += [_skill(name, each, fetch) for each in judged]
        return made

    def _fetch_blocking(self, upstream: Upstream, entry: SkillEntry, uri: str) -> bytes:
        return anyio.from_thread.run(self._fetch, upstream, entry, uri)

    async def _fetch(self, upstream: Upstream, entry: SkillEntry, uri: str) -> bytes:
        """Reads an address from the server that listed it."""
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        try:
            answer = await upstream.request(None, request, types.ReadResourceResult)
        except (MCPError, TimeoutError, ValidationError) as error:
            said = await problem_of(error, None)
            raise UpstreamError(
                f"The server {upstream.name!r} did not return {visible(uri)}: {said}."
            ) from error
        try:
            return _check_content(entry, uri, answer)
        except ValueError as error:
            await self._look_again(upstream, entry)
            raise UpstreamError(
                f"The content of {visible(uri)} from the server {upstream.name!r} does not match"
                f" its listing: {error}. It was not used.",
                next_actions=[
                    "Load the skill again, to see whether the user must review it first."
                ],
            ) from error

    async def _look_again(self, upstream: Upstream, before: SkillEntry) -> None:
        """Replaces a skill's entry with a fresh one from its server."""
        try:
            request = GetSkill(params=SkillParams(uri=before.uri))
            now = (await upstream.request(None, request, GetSkillResult)).skill
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            _logger.warning("The skill %r: %s", before.uri, await problem_of(error, None))
            return
        if now.uri == before.uri and upstream.name in self._held:
            _, entries = self._held[upstream.name]
            self.put(upstream, [now if each.uri == now.uri else each for each in entries])


def usable(server: str, entries: Sequence[SkillEntry]) -> list[SkillEntry]:
    """Returns the valid entries; logs why others are left out."""
    found: dict[str, SkillEntry] = {}
    wrong = []
    for each in entries:
        shown = visible(each.uri)[:200]
        try:
            path = Address.of(server, each).path.casefold()
        except ValueError as error:
            wrong.append(f"{shown}: {error}")
            continue
        if found.setdefault(path, each) is not each:
            wrong.append(f"{shown}: the name {path!r} is taken")
    for told in wrong[:MOST_TOLD]:
        _logger.warning("A skill of the server %r is left out: %s.", server, told)
    if len(wrong) > MOST_TOLD:
        _logger.warning("%d more skills of %r are left out.", len(wrong) - MOST_TOLD, server)
    return list(found.values())


def _skill(
    server: str, judged: Judged[SkillEntry], fetch: Callable[[SkillEntry, str], bytes]
) -> UpstreamSkill:
    """Builds a skill; in quarantine its description is the reason, in our own words."""
    entry = judged.item
    address = Address.of(server, entry)
    barred = judged.quarantine_reason
    said = f"In quarantine: {barred}." if barred else revealed(entry.frontmatter["description"])
    return UpstreamSkill(
        path=address.path,
        name=entry.frontmatter["name"],
        description=" ".join(said.split()),
        frontmatter={} if barred else entry.frontmatter,
        place=Origin(server, f"server {server}", server=server),
        problems=(said,) if barred else (),
        entry=entry,
        files=address.files,
        quarantine_reason=barred,
        fetch=fetch,
    )


def _check_content(entry: SkillEntry, uri: str, answer: types.ReadResourceResult) -> bytes:
    """Checks the content of a file against its entry, and returns it.

    Raises a ValueError, whose message is the rest of a sentence, if they differ.
    """
    if len(answer.contents) != 1 or answer.contents[0].uri != uri:
        raise ValueError("it is the content of something else")
    (content,) = answer.contents
    if isinstance(content, types.BlobResourceContents):
        try:
            data = base64.b64decode(content.blob, validate=True)
        except binascii.Error as error:
            raise ValueError("it is not Base64") from error
    else:
        data = content.text.encode("utf-8", "surrogatepass")
    if entry.resources != "dynamic":
        (listed,) = (each for each in entry.resources if each.uri == uri)
        if len(data) != listed.size:
            raise ValueError(f"it has {len(data):,} bytes, not {listed.size:,}")
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != listed.digest:
            raise ValueError("its digest differs")
    if uri == entry.uri:
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
        if _canonical(FrontMatter.of(text).fields) != _canonical(entry.frontmatter):
            raise ValueError("its front matter differs")
    return data


def _canonical(fields: object) -> str:
    return json.dumps(_normalize(fields), sort_keys=True)


def _normalize(value: object) -> object:
    """Normalizes numbers, which languages write differently: 1.0 becomes 1."""
    if isinstance(value, dict):
        return {key: _normalize(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_normalize(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def judge_skills(
    server: str, entries: Sequence[SkillEntry], pins: Pins, *, trusts: bool
) -> list[Judged[SkillEntry]]:
    """Returns the skills of a server with the reasons against their use; blocks.

    They are accepted like tools (see Review). A pin belongs to the skill's address, which together
    with its server identifies it.
    """
    offered = {}
    for each in entries:
        texts = (("front matter", text) for text in texts_in(each.frontmatter))
        findings = [Finding(DYNAMIC, "")] if each.resources == "dynamic" else []
        findings += invisible(texts)
        offered[each.uri] = Judged(each, _definition(each), tuple(findings))
    return judge(server, offered, pins, trusts=trusts)


def _definition(entry: SkillEntry) -> Definition:
    """Builds the definition from the front matter, and each file's digest and size."""
    files: object = entry.resources
    if entry.resources != "dynamic":
        files = {each.uri: f"{each.digest}, {each.size} bytes" for each in entry.resources}
    return Definition.over({"frontmatter": entry.frontmatter, "resources": files})
