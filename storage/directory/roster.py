"""Rosters: cached names and groups of one identity's records in a directory.

Each use checks the cache against the record: first the library's version, and if that grew, the
number of records and the last one written.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from storage.database import Database, Where, identity_clause
from storage.directory.models import Directory, GroupSize, Listed, Match
from storage.directory.record_documents import values_of
from storage.index.bounded import BoundedDict
from storage.models import ContextType, Identity
from storage.people.name_matching import nearest
from storage.people.nameindex import NameIndex
from storage.tokenize import fold, tokenize

_GENERIC = (
    "department dept division program programme school faculty institute center centre section"
    " group unit office"
)
"""Words for kinds of groups, which do not identify a group."""

_SIMILAR = 0.8
_NEAR = 45.0  # of 100, minimum score of a suggestion
_NEAREST = 5
_PREFIX = 3  # minimum letters that match as the beginning of a word, such as "neuro"


@dataclass(frozen=True, slots=True)
class _Group:
    """A group."""

    value: str
    own: tuple[int, ...]
    associated: tuple[int, ...]  # those who are only associated with it
    terms: frozenset[str]


class Groups:
    """The groups of one field, built from each member's own and associated values."""

    def __init__(self, values: Iterable[tuple[int, Sequence[str], Sequence[str]]]) -> None:
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        members: tuple[dict[str, dict[int, None]], ...] = (defaultdict(dict), defaultdict(dict))
        for number, own, associated in values:
            for into, names in zip(members, (own, associated), strict=True):
                for name in names:
                    spellings[fold(name)][name] += 1
                    into[fold(name)][number] = None
        self._groups: dict[str, _Group] = {}
        for folded, written in sorted(spellings.items()):
            own_ones = members[0].get(folded, {})
            others = [each for each in members[1].get(folded, {}) if each not in own_ones]
            value = written.most_common(1)[0][0]
            self._groups[folded] = _Group(
                value, tuple(own_ones), tuple(others), _identifying_terms(value)
            )

    def sizes(self) -> list[GroupSize]:
        """Returns every group by name, with its size."""
        return [
            GroupSize(group.value, len(group.own), len(group.associated))
            for group in self._groups.values()
        ]

    def find(self, value: str) -> tuple[Match, list[str]]:
        """Returns the folded names of the groups that a name matches, likeliest first."""
        folded = fold(value)
        if folded in self._groups:
            return "exact", [folded]
        partial = self._partial(_identifying_terms(value))
        if partial:
            return "partial", partial
        fuzzy = self._fuzzy(folded)
        return ("fuzzy", fuzzy) if fuzzy else ("none", [])

    def nearest(self, value: str) -> list[str]:
        """Returns the groups with the nearest names, as they are spelled."""
        from rapidfuzz import fuzz, process

        found = process.extract(
            fold(value), list(self._groups), scorer=fuzz.WRatio, score_cutoff=_NEAR, limit=_NEAREST
        )
        return [self._groups[folded].value for folded, _, _ in found]

    def value(self, folded: str) -> str:
        """Returns the spelling of a group."""
        return self._groups[folded].value

    def members(self, folded: Iterable[str]) -> tuple[list[int], list[int]]:
        """Returns the members of any of these groups, and those only associated with them."""
        groups = [self._groups[each] for each in folded]
        own = dict.fromkeys(number for group in groups for number in group.own)
        associated = dict.fromkeys(number for group in groups for number in group.associated)
        return list(own), [number for number in associated if number not in own]

    def _partial(self, asked: frozenset[str]) -> list[str]:
        """Finds groups that contain all the words, or whose words are all contained in them."""
        same = [folded for folded, group in self._groups.items() if group.terms == asked]
        if same or not asked:
            return same
        shares = {
            folded: len(asked & group.terms) / len(asked | group.terms)
            for folded, group in self._groups.items()
            if asked <= group.terms or (group.terms and group.terms <= asked)
        }
        return _ranked(shares)

    def _fuzzy(self, asked: str) -> list[str]:
        """Finds groups that differ by a typo, as a whole or in each word."""
        from rapidfuzz.distance import OSA

        words = [word for word in asked.split() if not _generic().issuperset(tokenize(word))]
        shares = {}
        for folded in self._groups:
            whole = OSA.normalized_similarity(asked, folded)
            each = [max(_like(word, other) for other in folded.split()) for word in words]
            score = max(
                whole if whole >= _SIMILAR else 0.0,
                sum(each) / len(each) - 0.01 * len(folded.split()) if each and all(each) else 0.0,
            )
            if score > 0:
                shares[folded] = score
        return _ranked(shares)


def _identifying_terms(value: str) -> frozenset[str]:
    """Returns the words that identify a group; all of them if all are generic."""
    terms = frozenset(tokenize(value))
    return terms - _generic() or terms


@cache
def _generic() -> frozenset[str]:
    return frozenset(tokenize(_GENERIC))


def _like(word: str, other: str) -> float:
    from rapidfuzz.distance import OSA

    if len(word) >= _PREFIX and other.startswith(word):
        return 0.9
    return float(OSA.normalized_similarity(word, other, score_cutoff=_SIMILAR))


def _ranked(shares: Mapping[str, float]) -> list[str]:
    return sorted(shares, key=lambda folded: (-shares[folded], folded))


NEAREST = 3  # names to suggest if no record has the name asked for
MOST_KEPT = 8  # maximum rosters in memory; one of 8,000 people takes some 15 MB

_State = tuple[int, int, int]


class Roster:
    """The records of a directory, with indexes of their names and groups."""

    def __init__(self, directory: Directory, listed: list[Listed]) -> None:
        self.directory = directory
        self.listed = listed
        self.places = {each.key: place for place, each in enumerate(listed)}
        self._groups: dict[str, Groups] = {}

    @cached_property
    def names(self) -> NameIndex:
        """The index of names; an owner is a position in `listed`."""
        return NameIndex(
            (place, name, at > 0)
            for place, each in enumerate(self.listed)
            for at, name in enumerate((each.name, *each.aliases))
        )

    def nearest(self, name: str) -> list[str]:
        """Returns the names nearest to an unknown one, nearest first."""
        spellings = {fold(each.name): each.name for each in self.listed}
        return [spellings[each.folded] for each in nearest(fold(name), spellings)[:NEAREST]]

    def groups(self, field: str) -> Groups:
        """Returns the groups of a field; a member is a position in `listed`."""
        if field not in self._groups:
            further = self.directory.groups[field]
            self._groups[field] = Groups(
                (
                    place,
                    each.groups.get(field, ()),
                    [value for name in further for value in each.groups.get(name, ())],
                )
                for place, each in enumerate(self.listed)
            )
        return self._groups[field]


class Rosters:
    """The cached rosters of all identities."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: BoundedDict[tuple[Identity, str], tuple[int, _State, Roster]] = BoundedDict(
            MOST_KEPT
        )

    def of(self, identity: Identity, directory: Directory) -> Roster:
        """Returns the current roster of the records that an identity sees in a directory."""
        where = _records(identity, directory)
        place = (identity, directory.name)
        with self._database.read() as connection:
            version = connection.execute(
                "SELECT coalesce(sum(version), 0) FROM versions WHERE user_id IN (?, '')",
                (identity.user_id,),
            ).fetchone()[0]
            with self._lock:
                kept = self._kept.get(place)
            if kept is not None and kept[0] == version and kept[2].directory == directory:
                return kept[2]
            state = _state(connection, where)
            if kept is not None and kept[1] == state and kept[2].directory == directory:
                roster = kept[2]
            else:
                roster = Roster(directory, _read_records(connection, where, directory))
        with self._lock:
            self._kept[place] = (version, state, roster)
        return roster


def _records(identity: Identity, directory: Directory) -> Where:
    owner = identity_clause(identity, "x")
    return Where(
        f"{owner.sql} AND x.raw_type = ? AND x.context_type = '{ContextType.DOCUMENT}'",
        (*owner.values, directory.name),
    )


def _state(connection: sqlite3.Connection, where: Where) -> _State:
    count, last, total = connection.execute(
        "SELECT count(*), coalesce(max(x.seq), 0), coalesce(sum(x.seq), 0) FROM contexts x"
        f" WHERE {where.sql}",
        where.values,
    ).fetchone()
    return count, last, total


def _read_records(
    connection: sqlite3.Connection, where: Where, directory: Directory
) -> list[Listed]:
    """Reads the records, ordered by name; of several devices' records with one key, the newest."""
    rows = connection.execute(
        f"SELECT x.seq, x.raw_id, x.title, x.metadata FROM contexts x WHERE {where.sql}"
        " ORDER BY x.seq",
        where.values,
    )
    by_key = {}
    for row in rows:
        known = json.loads(row["metadata"])
        groups = {field: values_of(known, field) for field in directory.group_fields}
        by_key[row["raw_id"]] = Listed(
            seq=row["seq"],
            key=row["raw_id"],
            name=row["title"],
            aliases=values_of(known, directory.aliases),
            groups={field: values for field, values in groups.items() if values},
            link=str(known.get(directory.link, "")),
        )
    return sorted(by_key.values(), key=lambda each: (each.name.casefold(), each.key))
