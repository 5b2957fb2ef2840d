"""Finds the tools that a query names, in any spelling."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from storage.tokenize import STOP_WORDS, fold_accents
from tools.retrieval.models import FROM_FILE, ToolRecord

MAX_WORDS = 6  # maximum words of a query that are tried as one name, written with spaces
MIN_PREFIX = 2  # minimum letters of a name's beginning, if the query consists of nothing else
MIN_PREFIX_INSIDE = 4  # minimum letters of it inside a longer query, written as an identifier
_WORD = re.compile(r"(?P<quote>[`\"'])\w[\w.:-]*(?P=quote)|\w(?:[\w.:-]*\w)?")
_JOINED = re.compile(r"(?<!\w)\d*[^\W\d]\w*(?:_|[.:]+)\w")  # from its start: linear
_IDENTIFIER = re.compile(rf"{_JOINED.pattern}|[a-z][A-Z]|[^\W\d_]-?\d|[^\W\d]-[^\W\d]|^[`\"']")
_SERVER = re.compile(r"^.*(?:__|[.:])")


@dataclass
class Mentions:
    """The slots of the tools that a query names, in its order."""

    # Those that are clearly meant, by their full name.
    named: dict[int, None] = field(default_factory=dict)
    begun: dict[int, None] = field(default_factory=dict)  # those whose name the query begins
    # For each word that is a tool's name but may mean something else, the slots.
    passing: list[list[int]] = field(default_factory=list)

    def within(self, allowed: Container[int]) -> Mentions:
        """Returns the mentions of the allowed slots."""
        return Mentions(
            named={slot: None for slot in self.named if slot in allowed},
            begun={slot: None for slot in self.begun if slot in allowed},
            passing=[[slot for slot in slots if slot in allowed] for slots in self.passing],
        )


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a query, as written and in the form in which names are compared."""

    text: str
    key: str

    @property
    def is_identifier(self) -> bool:
        """Returns whether it is hardly an ordinary word; `to-do` and `mp3` may be."""
        return _IDENTIFIER.search(self.text) is not None

    @property
    def is_joined(self) -> bool:
        """Returns whether it can only be a name: `create_issue`, `github.create`."""
        return _JOINED.search(self.text) is not None

    @property
    def is_telling(self) -> bool:
        return self.key not in STOP_WORDS


class Names:
    """All names of tools, without case, accents and separators."""

    def __init__(self) -> None:
        self._slots: dict[str, dict[int, None]] = {}
        self._sorted: list[str] = []

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds the names of a tool."""
        for key in _keys_of(record):
            if key not in self._slots:
                insort(self._sorted, key)
            self._slots.setdefault(key, {})[slot] = None

    def remove(self, slot: int, record: ToolRecord) -> None:
        """Removes the names of a tool."""
        for key in _keys_of(record):
            del self._slots[key][slot]
            if not self._slots[key]:
                del self._slots[key]
                del self._sorted[bisect_left(self._sorted, key)]

    def mentioned(self, query: str) -> Mentions:
        """Returns the tools that a query names.

        A name is clearly meant if it is written as an identifier, in quotes or in several words. An
        ordinary word that happens to be a name ("search", "now") only counts if nothing else is
        asked.
        """
        words = [_Word(found[0], _key(found[0])) for found in _WORD.finditer(query)]
        mentions = Mentions()
        rest = [word for word in words if word.is_telling]
        alone: list[str] = []
        for first, last, key in self._spans(words):
            span = words[first:last]
            rest = [word for word in rest if word not in span]
            if len(span) > 1 or span[0].is_identifier:
                mentions.named.update(self._slots[key])
            else:
                alone.append(key)
        for key in alone:
            if rest:
                mentions.passing.append(list(self._slots[key]))
            else:
                mentions.named.update(self._slots[key])
        mentions.begun.update(dict.fromkeys(self._slots_by_prefix(query, words)))
        return mentions

    def _spans(self, words: list[_Word]) -> Iterator[tuple[int, int, str]]:
        """Yields the names in a query, longest match first: word range (end exclusive) and key."""
        at = 0
        while at < len(words):
            last, key = self._longest(words, at)
            if key:
                yield at, last, key
            at = last

    def _longest(self, words: list[_Word], at: int) -> tuple[int, str]:
        for last in range(min(at + MAX_WORDS, len(words)), at, -1):
            span = words[at:last]
            if len(span) > 1 and sum(word.is_telling for word in span) < 2:  # noqa: PLR2004  # "help me" is not a name
                continue
            key = "".join(word.key for word in span)
            if key in self._slots and (len(span) > 1 or span[0].is_telling):
                return last, key
        own = _key(_SERVER.sub("", words[at].text))
        return at + 1, own if own in self._slots and own != words[at].key else ""

    def _slots_by_prefix(self, query: str, words: list[_Word]) -> Iterator[int]:
        whole = _key(query)
        begun = {whole} if len(whole) >= MIN_PREFIX else set()
        begun.update(
            word.key for word in words if word.is_joined and len(word.key) >= MIN_PREFIX_INSIDE
        )
        for prefix in _outermost(begun):
            yield from self._beginning(prefix)

    def _beginning(self, prefix: str) -> Iterator[int]:
        for at in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            if not self._sorted[at].startswith(prefix):
                return
            yield from self._slots[self._sorted[at]]


def _outermost(prefixes: Iterable[str]) -> Iterator[str]:
    """Yields the prefixes not covered by a shorter one, whose matches include theirs."""
    outer = ""
    for prefix in sorted(prefixes):
        if not outer or not prefix.startswith(outer):
            outer = prefix
            yield prefix


def _keys_of(record: ToolRecord) -> set[str]:
    """Returns the keys of a tool's names, with and without its server, and its aliases."""
    own = record.tool_id.removeprefix(FROM_FILE)  # the prefix is not part of its name
    names = {own, record.name, record.bare_name, *record.aliases}
    names.add(f"{record.server}{record.bare_name}")
    return {key for key in map(_key, names) if key}


def _key(name: str) -> str:
    return "".join(filter(str.isalnum, fold_accents(name).casefold()))
