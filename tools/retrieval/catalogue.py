"""Combines callable tools, tools described by files, and skills in one catalogue."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tools.agent.skillfiles.skills import Skills
from tools.conversion.arguments.known_names import NEAREST
from tools.core.errors import NotFoundError, UnavailableError, UnknownToolError
from tools.core.registry import LONGEST_NAME, SUGGESTIONS, ToolRegistry, check_admitted
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec
from tools.core.toolset import ToolSet, folded_name
from tools.retrieval.index_updates import (
    OF_PROJECT,
    FileRecords,
    IndexUpdater,
    SkillRecords,
    admits_record,
)

if TYPE_CHECKING:  # loaded at the first search
    from storage.library import Library
    from storage.models import Identity
    from tools.retrieval.index import ToolIndex
    from tools.retrieval.learning import Learning
    from tools.retrieval.models import Kind, SearchQuery, SearchResult, ToolRecord

LOADER = "load_skill"  # the tool that loads skills
REACHING = "toolsearch"  # tag of the tools that lead to others: calling one does not count as a use
MISTYPED = 80.0  # minimum similarity, of 100, of a name that was only mistyped
WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Found:
    """A tool that fits a need."""

    record: ToolRecord
    # The tool itself; the loader for a skill; None for a tool that only a file describes.
    spec: ToolSpec | None
    score: float  # how well it fits, above 0 and up to 1
    is_down: bool = False  # whether its server is currently unreachable
    also: tuple[str, ...] = ()  # the other servers that have the same tool


class Catalogue:
    """Finds tools in their current state.

    Safe to share between threads, except `notify`. Nothing is loaded before the first search.

    `why_unlisted` returns the rest of a sentence, or "" if the tools of a server, by its name, are
    known or there is no such server. `unlisted` waits briefly for servers whose tools are unknown,
    and returns those that remain, with that rest of a sentence. `settle` waits briefly for tools
    that are about to appear.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        library: Library | None = None,
        learning: Callable[[], Learning] | None = None,
        is_down: Callable[[str], bool] = lambda _server: False,
        why_unlisted: Callable[[str], str] = lambda _server: "",
        unlisted: Callable[[], Mapping[str, str]] = dict[str, str],
        index: Callable[[], ToolIndex] | None = None,
        settle: Callable[[], None] | None = None,
        skills: Skills | None = None,
    ) -> None:
        self.registry = registry
        self._make_learning = learning
        self.learning: Learning | None = None  # since the first search
        self._is_down = is_down
        self._why_unlisted = why_unlisted
        self._unlisted = unlisted
        self._settle = settle
        self._admitted: dict[ToolSet, dict[str, bool]] = {}
        self.skills = skills or Skills()
        self._records = FileRecords(library)
        self._skill_records = SkillRecords(self.skills)
        make_index = index or partial(_own_index, library)
        records = (self._records, self._skill_records)
        self._updater = IndexUpdater(registry, records, make_index, self._forget)
        self._making = threading.Lock()
        self._changed = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Builds the slower parts of the index in the background, from the first search on."""
        self._updater.start()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep_fresh)
                yield
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._updater.close)

    def notify(self) -> None:
        """Announces that many tools may have appeared, so that they are indexed before a search."""
        self._changed.set()

    def unlisted(self, admitted: ToolSet | None) -> dict[str, str]:
        """Waits briefly for servers whose tools are unknown; blocks.

        Returns those that remain, with the reason.
        """
        return {
            server: why
            for server, why in self._unlisted().items()
            if admitted is None or admitted.admits_server(server)
        }

    def share_indexed(self) -> float:
        """Returns the share of the tools that can be found by meaning, or 1 if that is final."""
        return self._updater.share_indexed()

    def search(
        self,
        query: SearchQuery,
        identity: Identity,
        *,
        session_id: str = "",
        admitted: ToolSet | None = None,
        kind: Kind | None = None,
    ) -> list[Found]:
        """Returns the admitted tools (of one kind, if given) that fit, best first; blocks."""
        if self._settle is not None:
            self._settle()
        index = self._updater.current()
        learning = self._learned()
        asked = query.query_text
        sees_all = kind is None and admitted is None and self.skills.shows_all(identity)
        admits = None
        if not sees_all or self.registry.has_created:
            admits = partial(self._may_find, identity, admitted, kind)
        results = index.search(
            query,
            admits=admits,
            boosts=None if learning is None else learning.boosts(identity, asked),
        )
        found = [
            each for each in (self._best_callable(result, admitted) for result in results) if each
        ]
        if learning is not None:
            ids = [each.spec.id for each in found if each.spec and not each.record.is_skill]
            learning.shown.note(identity, session_id, asked, ids)
        return found

    async def served(
        self, spec: ToolSpec, result: ToolResult, identity: Identity, session_id: str
    ) -> None:
        """Learns from a successful call if a search of its session found the tool."""
        learning = self.learning
        if learning is None or result.is_error or REACHING in spec.tags:
            return
        question = learning.shown.question_for(identity, session_id, spec.id)
        if question is not None:
            await anyio.to_thread.run_sync(learning.remember, identity, question, spec.id)

    def find(self, name: str, tool_set: ToolSet | None, user_id: str = "") -> ToolSpec:
        """Returns the tool of that name, alias or unique bare name; blocks if there is none.

        Raises UnknownToolError, which suggests tools that the caller's set admits, or NotFoundError
        if only a file describes it.
        """
        try:
            spec = self.registry.of(user_id).find(name, tool_set)
        except UnknownToolError as error:
            server = name.partition("__")[0]
            is_admitted = tool_set is None or tool_set.admits_server(server)
            if is_admitted and (why := self._why_unlisted(server)):
                raise UnavailableError(  # it never listed its tools, so this one may exist
                    f"The tools of the server {server!r} are unknown: it {why}.",
                    next_actions=["Try again later, or ask the user to run `toolcrib servers`."],
                ) from None
            if (record := self.record(name, tool_set)) is None:
                error.suggestions = self._closest(name, tool_set, user_id, error.suggestions)
                raise
            raise NotFoundError(
                f"{record.name[:200]!r} can be found but not called: a file describes it, and no "
                "server that is connected here has it.",
                next_actions=["Search for another tool, or ask the user to connect its server."],
            ) from None
        check_admitted(spec, tool_set)
        return spec

    def _closest(
        self, name: str, tool_set: ToolSet | None, user_id: str, spelled: Sequence[str]
    ) -> tuple[str, ...]:
        """Returns the tools closest to an unknown name: by what it means, or as it is spelled."""
        from rapidfuzz import fuzz

        from storage.models import Identity
        from tools.retrieval.models import SearchQuery

        registry = self.registry.of(user_id)
        offers = {each.name for each in registry.offers(tool_set)}
        if known := [each for each in NEAREST.get(folded_name(name), ()) if each in offers]:
            return tuple(known)
        mistyped = [each for each in spelled if fuzz.ratio(each, name) >= MISTYPED]
        words = " ".join(WORD_STARTS.sub(" ", name[:LONGEST_NAME]).replace("-", "_").split("_"))
        meant = list[str]()
        if not mistyped and words.strip():
            asked = SearchQuery(query_text=words, top_k=SUGGESTIONS)
            found = self.search(asked, Identity(user_id), admitted=tool_set)
            meant = [each.spec.name for each in found if each.spec is not None]
        return tuple(dict.fromkeys((*mistyped, *meant, *spelled)))[:SUGGESTIONS]

    def record(self, name: str, tool_set: ToolSet | None) -> ToolRecord | None:
        """Returns a file's record of a tool, by tool_id or name, if a set admits it."""
        found = self._records.by_name(name)
        if found is None or (tool_set is not None and not admits_record(tool_set, found)):
            return None
        return found

    def refresh(self) -> None:
        """Applies changes to the index; blocks."""
        self._updater.refresh()

    async def _keep_fresh(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                await anyio.to_thread.run_sync(self.refresh)
            except Exception:  # the next search tries again and reports it
                _logger.exception("The index of tools could not be updated")

    def _forget(self, tool_id: str) -> None:
        for judged in list(self._admitted.values()):
            judged.pop(tool_id, None)

    def _may_find(
        self, identity: Identity, tool_set: ToolSet | None, kind: Kind | None, record: ToolRecord
    ) -> bool:
        if kind not in {None, record.kind}:
            return False
        if record.is_created:
            own = self.registry.by_id(record.tool_id)
            if own is None or own.owner != identity.user_id:
                return False
            return tool_set is None or tool_set.admits(own)
        if self._skill_records.hides(record.tool_id, identity):
            return False
        return tool_set is None or self._admits(tool_set, record)

    def _admits(self, tool_set: ToolSet, record: ToolRecord) -> bool:
        """Returns whether a set has a tool; cached until the tool changes."""
        judged = self._admitted.setdefault(tool_set, {})
        found = judged.get(record.tool_id)
        if found is None:
            spec = self.registry.get(LOADER if record.is_skill else record.tool_id)
            found = admits_record(tool_set, record) if spec is None else tool_set.admits(spec)
            if record.is_skill and record.server:
                found = found and tool_set.admits_server(record.server)
            if record.is_skill and OF_PROJECT in record.tags:
                found = found and not tool_set.is_off_root
            judged[record.tool_id] = found
        return found

    def _best_callable(self, result: SearchResult, admitted: ToolSet | None) -> Found | None:
        """Returns a search result with the best callable tool among duplicates."""
        if result.tool.is_skill:
            loader = self.registry.get(LOADER)
            return None if loader is None else Found(result.tool, loader, result.score)
        there = map(self.registry.by_id, (result.tool.tool_id, *result.also))
        specs = [spec for spec in there if spec and (admitted is None or admitted.admits(spec))]
        if not specs:
            # Any other tool has just disappeared.
            return Found(result.tool, None, result.score) if result.tool.is_from_file else None
        best = min(specs, key=self._cannot_be_reached)
        also = tuple(each.server or each.name for each in specs if each is not best)
        return Found(result.tool, best, result.score, self._cannot_be_reached(best), also)

    def _cannot_be_reached(self, spec: ToolSpec) -> bool:
        return bool(spec.server) and self._is_down(spec.server)

    def _learned(self) -> Learning | None:
        with self._making:
            if self.learning is None and self._make_learning is not None:
                self.learning = self._make_learning()
            return self.learning


def _own_index(library: Library | None) -> ToolIndex:
    from tools.retrieval.index import ToolIndex

    return ToolIndex(cache=None if library is None else library.catalog.analyses)
