"""Held skills: those of all other servers, as they were listed last and as they may be used."""

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

from server.mcp.visible import visible
from server.upstream.connections.failures import problem_of
from server.upstream.connections.skill_entries import SkillEntry, get_skill
from server.upstream.safety.judging import Judged
from server.upstream.skills.upstream_skill import Address, UpstreamSkill
from server.upstream.skills.vetting import judge_skills
from server.upstream.upstream import Upstream
from storage.catalog.pins import Pins
from storage.errors import StorageError
from tools.agent.skillfiles.frontmatter import FrontMatter
from tools.agent.skillfiles.places import Origin
from tools.core.errors import ToolError, UpstreamError
from tools.core.invisible import revealed

MOST_TOLD = 10
"""Skills of a server of which the log says why they are left out."""

_Held = Mapping[str, tuple[Upstream, tuple[SkillEntry, ...]]]

_logger = logging.getLogger("toolcrib")


class HeldSkills:
    """Keeps the skills of other servers. Nothing is read of one before it is needed.

    Args:
        pins: Which of them were accepted.
    """

    def __init__(self, pins: Pins) -> None:
        self._pins = pins
        self._held: _Held = {}
        self._usable: dict[str, tuple[tuple[SkillEntry, ...], list[SkillEntry]]] = {}
        self._judged: _Held = {}
        self._approvals = -1
        self._skills: tuple[UpstreamSkill, ...] = ()
        self._judging = threading.Lock()

    def put(self, upstream: Upstream, entries: Sequence[SkillEntry]) -> None:
        """Puts what a server lists now in the place of what it listed before."""
        self._held = {**self._held, upstream.name: (upstream, tuple(entries))}

    def offered(self) -> tuple[UpstreamSkill, ...]:
        """All of them; the same object until one changes, or a person accepts one. Blocks."""
        with self._judging:
            held, approvals = self._held, self._approvals
            if any(each.barred for each in self._skills):
                approvals = self._approved()
            if held is not self._judged or approvals != self._approvals:
                self._approvals = self._approved()
                self._skills = tuple(self._made(held))
                self._judged = held
            return self._skills

    def _approved(self) -> int:
        try:
            return self._pins.approvals()
        except StorageError:  # whatever was held back for that has to be tried again
            return -2

    def _made(self, held: _Held) -> list[UpstreamSkill]:
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
        """The bytes at an address, from the server that listed it and no other."""
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        try:
            with anyio.fail_after(upstream.settings.start_timeout + upstream.settings.timeout):
                answer = await upstream.ask_for_all(
                    lambda connection: connection.session.send_request(
                        request, types.ReadResourceResult
                    )
                )
        except (MCPError, TimeoutError, ValidationError) as error:
            said = await problem_of(error, None)
            raise UpstreamError(
                f"The server {upstream.name!r} does not give {visible(uri)}: {said}."
            ) from error
        try:
            return _checked(entry, uri, answer)
        except ValueError as error:
            await self._look_again(upstream, entry)
            raise UpstreamError(
                f"What the server {upstream.name!r} gives as {visible(uri)} is not what it listed: "
                f"{error}. It is not used.",
                next_actions=[
                    "Load the skill again, which says whether the user has to look at it first."
                ],
            ) from error

    async def _look_again(self, upstream: Upstream, before: SkillEntry) -> None:
        """Puts what a server says of a skill now in the place of what it said before."""
        try:
            with anyio.fail_after(upstream.settings.timeout):
                now = await upstream.ask_for_all(
                    lambda connection: get_skill(connection.session, before.uri)
                )
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            _logger.warning("The skill %r: %s", before.uri, await problem_of(error, None))
            return
        if now.uri == before.uri and upstream.name in self._held:
            _, entries = self._held[upstream.name]
            self.put(upstream, [now if each.uri == now.uri else each for each in entries])


def usable(server: str, entries: Sequence[SkillEntry]) -> list[SkillEntry]:
    """The entries that are as the specification wants them; the log says why others are not."""
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
            wrong.append(f"{shown}: another is called {path!r} already")
    for told in wrong[:MOST_TOLD]:
        _logger.warning("A skill of the server %r is left out, %s.", server, told)
    if len(wrong) > MOST_TOLD:
        _logger.warning("%d more of the server %r are.", len(wrong) - MOST_TOLD, server)
    return list(found.values())


def _skill(
    server: str, judged: Judged[SkillEntry], fetch: Callable[[SkillEntry, str], bytes]
) -> UpstreamSkill:
    """A skill as it may be used: one in quarantine says nothing but that, in words of ours."""
    entry = judged.item
    address = Address.of(server, entry)
    barred = judged.barred
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
        barred=barred,
        fetch=fetch,
    )


def _checked(entry: SkillEntry, uri: str, answer: types.ReadResourceResult) -> bytes:
    """The bytes of a file, if they are those of its entry.

    Raises:
        ValueError: If they are not; the message is the rest of a sentence.
    """
    if len(answer.contents) != 1 or answer.contents[0].uri != uri:
        raise ValueError("it is the content of something else")
    (content,) = answer.contents
    if isinstance(content, types.BlobResourceContents):
        try:
            data = base64.b64decode(content.blob, validate=True)
        except binascii.Error as error:
            raise ValueError("it is no Base64") from error
    else:
        data = content.text.encode("utf-8", "surrogatepass")
    if entry.resources != "dynamic":
        (listed,) = (each for each in entry.resources if each.uri == uri)
        if len(data) != listed.size:
            raise ValueError(f"it has {len(data):,} bytes, not {listed.size:,}")
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != listed.digest:
            raise ValueError("its digest is another")
    if uri == entry.uri:
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
        if _canonical(FrontMatter.of(text).fields) != _canonical(entry.frontmatter):
            raise ValueError("its front matter is another")
    return data


def _canonical(fields: object) -> str:
    return json.dumps(_plain(fields), sort_keys=True)


def _plain(value: object) -> object:
    """The same value, with numbers as every language writes them: 1.0 is 1."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
