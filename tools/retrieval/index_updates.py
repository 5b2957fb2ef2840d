"""Keeps the index up to date with the registry, file records and skills."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from storage.errors import StorageError
from storage.models import Identity
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.core.toolset import ToolOffer, ToolSet
from tools.retrieval.models import FROM_FILE, SKILL, ToolRecord

if TYPE_CHECKING:  # loaded at the first search
    from storage.catalog.catalog import Records as StoredRecords
    from storage.library import Library
    from tools.agent.skillfiles.skill import Skill
    from tools.agent.skillfiles.skills import Skills
    from tools.retrieval.index import ToolIndex


WAIT_SECONDS = 2.0  # seconds that a search waits for new tools before it continues without them
# Seconds that a search waits for cached or quickly computed vectors, before it does without them.
QUICK_SECONDS = 0.5
WHOLE_SECONDS = 3.0  # seconds after the first search in which searches wait for all vectors
AT_ONCE = 500  # tools that are indexed at once; `close` waits for no more
_logger = logging.getLogger("toolcrib")


class Records(Protocol):
    """A source of records other than the registry."""

    def current(self) -> Mapping[str, ToolRecord]:
        """Returns all records by id; the same object until something changes. Blocks."""


class IndexUpdater:
    """Applies only what has changed. Safe to share between threads."""

    def __init__(
        self,
        registry: ToolRegistry,
        records: Sequence[Records],
        make_index: Callable[[], ToolIndex],
        changed: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._records = records
        self._make_index = make_index
        self._changed = changed
        self._index: ToolIndex | None = None
        self._wait_ends = 0.0
        self._seen = 0
        self._pending: dict[str, None] = {}
        self._indexed: list[Mapping[str, ToolRecord]] = [{} for _ in records]
        self._fills = False
        self._refreshing = threading.Lock()
        self._making = threading.Lock()
        self._begun = threading.Event()
        """Set once the first tools are indexed, which include all of our own."""

    def start(self) -> None:
        """Lets the index build its slower parts in the background, as soon as it exists."""
        with self._making:
            self._fills = True
            if self._index is not None:
                self._index.start()

    def close(self) -> None:
        """Stops the background work; a running refresh stops after its current batch."""
        self._fills = False
        with self._refreshing, self._making:
            if self._index is not None:
                self._index.close()

    def current(self) -> ToolIndex:
        """Returns the index with all changes, or without the latest if they take long. Blocks."""
        index = self._get_index()
        self._wait_ends = self._wait_ends or time.monotonic() + WHOLE_SECONDS
        if self._is_behind():
            refreshing = threading.Thread(target=self.refresh, name="tool-intake", daemon=True)
            refreshing.start()
            refreshing.join(WAIT_SECONDS)
            self._begun.wait()
        index.wait(QUICK_SECONDS, self._wait_ends - time.monotonic())
        return index

    def share_indexed(self) -> float:
        """Returns the share of the tools that can be found by meaning, or 1 if that is final."""
        index = self._get_index()
        return index.share_filled * len(index) / max(len(index) + len(self._pending), 1)

    def refresh(self) -> None:
        """Applies all changes; blocks."""
        index = self._get_index()
        try:
            self._refresh(index)
        finally:
            self._begun.set()

    def _refresh(self, index: ToolIndex) -> None:
        with self._refreshing:
            changes = self._registry.changes  # read before the tools, so that no change is missed
            self._pending.update(dict.fromkeys(self._registry.changed_since(self._seen)))
            self._seen = changes
            for place in range(len(self._records)):
                self._take_records(index, place)
            began_filling = self._fills
            while self._pending and self._fills is began_filling:
                names = list(islice(self._pending, AT_ONCE))
                self._take_tools(index, names)
                for name in names:
                    del self._pending[name]
                self._begun.set()

    def _is_behind(self) -> bool:
        if self._pending or self._registry.changes != self._seen:
            return True
        now = [each.current() for each in self._records]
        return any(new is not old for new, old in zip(now, self._indexed, strict=True))

    def _get_index(self) -> ToolIndex:
        with self._making:
            if self._index is None:
                self._index = self._make_index()
                if self._fills:
                    self._index.start()
            return self._index

    def _take_tools(self, index: ToolIndex, names: Sequence[str]) -> None:
        """Adds the current tools with these ids, and removes the missing ones."""
        coming: list[ToolRecord] = []
        for name in names:
            spec = self._registry.by_id(name)
            if spec is not None and spec.id == name:
                coming.append(record_of(spec))
            else:
                index.remove_tool(name)
            self._changed(name)
        _add(index, coming)

    def _take_records(self, index: ToolIndex, place: int) -> None:
        before, now = self._indexed[place], self._records[place].current()
        for gone in before.keys() - now.keys():
            index.remove_tool(gone)
            self._changed(gone)
        coming = [each for key, each in now.items() if before.get(key) != each]
        for each in coming:
            self._changed(each.tool_id)
        _add(index, coming)
        self._indexed[place] = now


def record_of(spec: ToolSpec) -> ToolRecord:
    """Returns the searchable texts of a tool."""
    return ToolRecord.model_construct(
        tool_id=spec.id,
        name=spec.name,
        description=spec.details or spec.description,
        tags=spec.tags or (spec.source.partition(":")[0],),  # the group in which it is counted
        capabilities=(spec.title, *spec.capabilities) if spec.server else spec.capabilities,
        parameters=dict(spec.input_schema),
        server=spec.server,
        aliases=spec.aliases,
        names_only=bool(spec.quarantine_reason),
    )


def _add(index: ToolIndex, records: Sequence[ToolRecord]) -> None:
    """Adds tools; one that the index rejects is logged and does not affect the others."""
    try:
        index.add_tools(records)
    except Exception:  # noqa: BLE001  # foreign definitions may be arbitrary
        for record in records:
            try:
                index.add_tool(record)
            except Exception:
                _logger.exception("%s cannot be found by search_tools", record.tool_id)


class FileRecords:
    """The records that `toolcrib index` stores, by id, including other processes' changes.

    Safe to share between threads.
    """

    def __init__(self, library: Library | None) -> None:
        self._library = library
        self._records: Mapping[str, ToolRecord] = {}
        self._changes = 0
        self._reading = threading.Lock()

    def current(self) -> Mapping[str, ToolRecord]:
        """Returns all records; the same object until one changes. Blocks.

        If they cannot be read, it logs a warning and returns the previous ones.
        """
        if self._library is None:
            return self._records
        with self._reading:
            try:
                records = self._library.catalog.records
                changes = records.changes()
                if changes != self._changes:
                    self._records = dict(_read(records))
                    self._changes = changes
            except StorageError as error:
                _logger.warning("The tools that files describe cannot be read: %s", error)
            return self._records

    def by_name(self, name: str) -> ToolRecord | None:
        """Returns the record with that tool_id, or else with that name; blocks."""
        records = self.current()
        found = records.get(FROM_FILE + name)
        return found or next((each for each in records.values() if each.name == name), None)


def admits_record(tool_set: ToolSet, record: ToolRecord) -> bool:
    """Returns whether a set contains a tool that only a file describes."""
    offer = ToolOffer(name=record.name, aliases=record.aliases, tags=record.tags, source="file")
    return tool_set.admits(offer)


def _read(records: StoredRecords) -> Iterator[tuple[str, ToolRecord]]:
    for stored in records.listed():
        try:
            record = ToolRecord.model_validate(stored.fields)
        except ValueError as error:  # stored by another version
            _logger.warning("A tool described by %s is skipped: %s", stored.file, error)
            continue
        tool_id = FROM_FILE + record.tool_id
        aliases = tuple(
            dict.fromkeys(each for each in (*record.aliases, record.tool_id) if each != record.name)
        )
        yield tool_id, record.model_copy(update={"tool_id": tool_id, "aliases": aliases})


TAG = "skill"
# Tag of a skill inside the root, which anyone with write access there may have written.
OF_PROJECT = "project"


class SkillRecords:
    """The records of the skills that a model may load, by id."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        self._seen: tuple[Skill, ...] = ()
        self._personal: set[str] = set()  # complete before a record can be indexed
        self._records: Mapping[str, ToolRecord] = {}

    def current(self) -> Mapping[str, ToolRecord]:
        """Returns all records; the same object until a skill changes. Blocks."""
        found = self._skills.all()
        if found is not self._seen:
            self._personal = {SKILL + each.path for each in found if each.place.is_personal}
            made = map(_skill_record, (each for each in found if each.is_for_models))
            self._seen, self._records = found, {each.tool_id: each for each in made}
        return self._records

    def hides(self, tool_id: str, identity: Identity) -> bool:
        """Returns whether a record is of a skill that an identity may not see."""
        return tool_id in self._personal and not self._skills.shows_all(identity)


def _skill_record(skill: Skill) -> ToolRecord:
    return ToolRecord.model_construct(
        tool_id=SKILL + skill.path,
        name=skill.path,
        description=skill.description,
        tags=(TAG, *[OF_PROJECT] * skill.place.is_project),
        capabilities=skill.domains,
        parameters=None,
        server=skill.place.server,
        aliases=(),
        names_only=False,
    )
