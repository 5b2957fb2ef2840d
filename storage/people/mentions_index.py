"""Finds the texts that mention an entity's name, on demand and always up to date.

The lexical index lists the chunks that contain the words of a name, and only those are read. A
chunk's text never changes, so nothing is read twice: per name, the matching chunks and the last
chunk read are cached. So no data needs to be synchronized when contexts or entities change, and
adding either costs nothing.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from storage.database import Database, View
from storage.index.bounded import BoundedDict
from storage.models import Identity
from storage.people.entitysearch import visible
from storage.people.models import EntityType
from storage.tokenize import STOP_WORDS, fold, fold_accents, is_spaceless, tokenize

if TYPE_CHECKING:
    from storage.index.lexical import UserIndex


_WORDS_TOO = frozenset(
    """
    access act aids amazon amber angel apple april arch arm art ash atom august aurora autumn
    baker bash basil bay beacon bear bill bing bishop black blue bolt box brave bridge brook
    brown buck bud butcher can carol cash cat chance charity chase cherry chip christian chuck
    clay cliff coda cook coral craft crystal cursor daisy dale dash dawn dean december destiny
    dick drew dusty earl echo edge ember eve excel faith falcon february fern field fisher flash
    flora forest fox frank freeman friday gale gap gay gene ginger glen go good grace grant gray
    green guy happy harmony hazel heather helm herb holly honor hope hunter ice ink iris ivory
    ivy jack january jasmine jay jazz jersey jet jewel joy july june justice keep king kitty
    lake lance lane lark laurel lily linear list little loom love make march mark mars mason
    master may meet melody mercury mercy merit meta mike miles miller mint miracle misty monday
    notion november object ocean october olive opal oracle orange outlook page pages park parker
    pat patience peace pearl peg penny pilot pine piper poppy porter price prince queen rain ram
    raven ray red reed render rich river rob robin rock rocket rod rose rowan rust rusty sage
    sandy sap saturday scout sentry september shell signal skip sky slack smart smith snap snow
    spark spike spring sprint square stack star sterling stone storm stripe sue summer sun
    sunday sunny swift target taylor teams tempo thursday tiger trace trinity tucker tuesday
    unity us van vault victor victory viola violet wade walker ward wave weaver wednesday west
    white will willow winter wise wolf wood woody word young zoom
    blau braun ernst frei fromm gelb gerne groß gut hart heil jung kalt klein klug kurz lang lieb
    mai rot sanft schnell schwarz stark still treu wahr warm weiß wild
    """.split()  # noqa: SIM905  # words read best as text
)
"""Folded names that are also ordinary words."""

_MONTHS = frozenset(
    """
    january february march april may june july august september october november december mai
    """.split()  # noqa: SIM905  # words read best as text
)
_BEFORE_A_MONTH = (
    r"(?:\d|\b(?:in|since|until|till|during|through|last|next|this|early|mid|late|every"
    r"|im|seit|bis|ab|ende|anfang|mitte|letzten|n\u00e4chsten))[\s.-]*$"
)
_AFTER_A_MONTH = r"[\s,.]*\d"
_BEGINS = r"(?:^|[.!?:;\n\u2022*#>\"\u201c(-])\s*$"
_AFTER_A_VERB = (
    r"\s+(?:the|an?|i|you|we|they|he|she|it|this|that|these|those|my|your|our|his|her|its|their|me"
    r"|us|him|them|there|all|any|some|der|die|das|ein|eine|ich|du|wir|sie|er|es|ihr)\b"
)
_APOSTROPHE = r"(?:['`\u2018\u2019\u02bc](?!(?:ll|re|ve|[sdmt])\b))?"  # "she'll" is not "Shell"
_BLANK = (
    r"(?:[^\S\n]{1,4}|[^\S\n]{0,4}\n[^\S\n]{0,8}"  # a line break, but not a paragraph break
    r"|[\u00b7\u30fb_/\u2010-\u2015-]|\.(?=\w)"
)
_SHORT = 2  # letters of an abbreviation: "Dr. Berg", "J. Doe"
_KATAKANA = "[\u30a1-\u30fa\u30fc]"  # a name ends with its run
_NEAR = 24  # characters of context to check


class NameRegex:
    """Matches one spelling of a name in texts; a person "Jean" is not in "Jean-Luc"."""

    def __init__(self, spelling: str, *, of_person: bool) -> None:
        self.folded = fold(spelling)
        self.is_word = self.folded in STOP_WORDS or self.folded in _WORDS_TOO
        self.written = fold_accents(spelling).strip()
        if self.is_word and self.written.islower() and self.folded not in STOP_WORDS:
            self.written = self.written.capitalize()
        letters = self.folded.replace(" ", "")
        self.is_sayable = len(letters) > 1 and not (
            self.folded in STOP_WORDS and self.written.islower()
        )
        self._of_person = of_person and " " not in self.folded

    def is_in(self, text: str) -> bool:
        """Returns whether a text contains the name."""
        if not self.is_sayable:
            return False
        text = fold_accents(text)
        searched = text if self.is_word else text.lower()
        return any(self._counts(text, *found.span()) for found in self._body.finditer(searched))

    def is_tag(self, tag: str) -> bool:
        """Returns whether it equals a tag, or the last part of one such as "people/ann-lee"."""
        return self.folded in {fold(tag), fold(tag.rpartition("/")[2])}

    @cached_property
    def _body(self) -> re.Pattern[str]:
        return _compile(self.written if self.is_word else self.folded)

    def _counts(self, text: str, start: int, end: int) -> bool:
        """Returns whether a match is the name, judging by its context."""
        before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
        if _continues_word(text[start], before[-1:]) or _continues_word(text[end - 1], after[:1]):
            return False
        if self._of_person and (re.match(r"-[A-Z]", after) or re.search(r"[A-Z][a-z]+-$", before)):
            return False
        if not self.is_word:
            return True
        if self.folded in _MONTHS and (
            re.search(_BEFORE_A_MONTH, before, re.IGNORECASE) or re.match(_AFTER_A_MONTH, after)
        ):
            return False
        begins = start == 0 or re.search(_BEGINS, before)
        return not (begins and re.match(_AFTER_A_VERB, after, re.IGNORECASE))


def _compile(name: str) -> re.Pattern[str]:
    words = name.split()
    body = _word(words[0])
    for earlier, word in pairwise(words):
        short = r"|\.\s?" if len(earlier) <= _SHORT else ""
        optional = "?" if is_spaceless(earlier) and is_spaceless(word) else ""
        body += f"{_BLANK}{short}){optional}{_word(word)}"
    return re.compile(body)


def _word(word: str) -> str:
    """Returns the pattern of a word, with an optional apostrophe anywhere in it."""
    if is_spaceless(word):
        return re.escape(word)
    return _APOSTROPHE.join(map(re.escape, word))


def _continues_word(letter: str, beside: str) -> bool:
    if re.match(_KATAKANA, letter):
        return re.match(_KATAKANA, beside) is not None
    apart = is_spaceless(letter) or is_spaceless(beside)
    return letter.isalnum() and beside.isalnum() and not apart


REMEMBERED = 1_000  # maximum names cached, those used last


@dataclass(frozen=True, slots=True)
class _Name:
    """A name to look for."""

    spelling: str
    of_person: bool = False  # whether it is a person's
    is_title: bool = False  # whether only titles count, because no entity has the name


@dataclass(frozen=True, slots=True)
class _Read:
    """The chunks that mention a name, up to the last one read."""

    until: int
    seqs: tuple[int, ...]


class MentionsIndex:
    """Finds the chunks of any user that mention names; its methods block."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: BoundedDict[tuple[str, _Name], _Read] = BoundedDict(REMEMBERED)
        self._lock = threading.Lock()

    def chunks(self, identity: Identity, folded: Sequence[str]) -> tuple[int, ...]:
        """Returns the chunks of a user that mention one of these entities' names, ascending.

        Deleted chunks may be among them. Names of entities that the identity does not see are
        ignored. A name without an entity matches notes with that title.
        """
        if not folded:
            return ()
        with self._database.read() as connection:
            reading = _Reading(connection, identity.user_id)
            names = _names(connection, identity, folded)
            said = {seq for name in names for seq in self._read_mentions(reading, name).seqs}
        return tuple(sorted(said))

    def saying(self, identity: Identity, spelling: str) -> tuple[int, ...]:
        """Returns the chunks of a user that mention a name as given, with or without an entity."""
        with self._database.read() as connection:
            return self._read_mentions(_Reading(connection, identity.user_id), _Name(spelling)).seqs

    def _read_mentions(self, reading: _Reading, name: _Name) -> _Read:
        key = (reading.user_id, name)
        with self._lock:
            known = self._known.get(key, _Read(0, ()))
        if known.until < reading.last:
            new = tuple(reading.saying(name, known.until))
            known = _Read(reading.last, (*known.seqs, *new))
            if not reading.is_indexed:
                return known  # not cached: unindexed chunks must be checked again
        with self._lock:
            self._known[key] = known
        return known


class _Reading:
    """The texts of one user, during one transaction."""

    def __init__(self, connection: sqlite3.Connection, user_id: str) -> None:
        self._connection = connection
        self._index: UserIndex | None = None
        self.user_id = user_id
        self.last = int(
            connection.execute(
                "SELECT coalesce(max(seq), 0) FROM chunks WHERE user_id = ?", (user_id,)
            ).fetchone()[0]
        )
        self.is_indexed = (
            connection.execute("SELECT 1 FROM lexical_todo LIMIT 1").fetchone() is None
        )

    def saying(self, name: _Name, after: int) -> Iterator[int]:
        """Yields the chunks after one that mention a name, ascending."""
        pattern = NameRegex(name.spelling, of_person=name.of_person)
        if not pattern.is_sayable:
            return
        terms = _terms(pattern.folded)
        rows = self._holding(terms, after) if terms else self._spelling(pattern.written, after)
        for row in rows:
            if _says(row, pattern, only_as_title=name.is_title):
                yield int(row["seq"])

    def _holding(self, terms: Sequence[str], after: int) -> sqlite3.Cursor:
        """Reads the chunks that contain all of some terms."""
        from storage.index.lexical import UserIndex

        if self._index is None:
            self._index = UserIndex(self._connection, self.user_id)
        seqs = self._index.holding(terms)
        return self._chunks(
            "json_each(?) j CROSS JOIN chunks c ON c.seq = j.value",
            (json.dumps(seqs[seqs > after].tolist()),),
        )

    def _spelling(self, written: str, after: int) -> sqlite3.Cursor:
        """Reads the chunks that contain a string, for names without terms in the index."""
        return self._chunks(
            "chunks c",
            (self.user_id, after, written, written, written),
            "c.user_id = ? AND c.seq > ?"
            " AND (instr(c.content, ?) OR instr(c.heading, ?) OR instr(x.title, ?))",
        )

    def _chunks(
        self, tables: str, values: tuple[object, ...], where: str = "true"
    ) -> sqlite3.Cursor:
        return self._connection.execute(
            "SELECT c.seq, c.position, c.heading, c.content, x.title, x.summary, x.keywords"
            f" FROM {tables} CROSS JOIN contexts x ON x.seq = c.context_seq WHERE {where}"
            " ORDER BY c.seq",
            values,
        )


def _terms(folded: str) -> list[str]:
    """Returns the terms in every text that mentions a name; empty if such texts need none."""
    # Texts are indexed by pairs of Chinese characters, so a single character is never a term.
    return [term for term in tokenize(folded) if len(term) > 1 or not is_spaceless(term)]


def _says(row: sqlite3.Row, pattern: NameRegex, *, only_as_title: bool) -> bool:
    """Returns whether a chunk, or its context's keywords or summary, mention a name."""
    if only_as_title:
        return row["position"] == 0 and fold(row["title"]) == pattern.folded
    texts, tags = [row["title"], row["heading"], row["content"]], []
    if row["position"] == 0:
        texts, tags = [*texts, row["summary"]], json.loads(row["keywords"])
    # The separator prevents matches across texts.
    return pattern.is_in("\n|\n".join(texts)) or any(map(pattern.is_tag, tags))


def _names(
    connection: sqlite3.Connection, identity: Identity, folded: Sequence[str]
) -> list[_Name]:
    """Returns the spellings of entities with these names; other names may be titles of notes."""
    where = visible(identity)
    rows = connection.execute(
        "SELECT DISTINCT n.folded, n.spelling, e.entity_type = ? AS of_person FROM entity_names n"
        " JOIN entities e ON e.seq = n.entity_seq"
        f" WHERE n.user_id = ? AND n.folded IN (SELECT value FROM json_each(?)) AND {where.sql}",
        (EntityType.PERSON, identity.user_id, json.dumps(list(folded)), *where.values),
    ).fetchall()
    owned = {row["folded"] for row in rows}
    return [
        *(_Name(row["spelling"], of_person=bool(row["of_person"])) for row in rows),
        *(_Name(name, is_title=True) for name in folded if name not in owned),
    ]


def is_mentioned(view: View, folded: str) -> bool:
    """Returns whether a visible context other than a card mentions a folded name."""
    owner = view.seen("x")
    return bool(
        view.rows(
            "SELECT 1 FROM mentions m JOIN contexts x ON x.seq = m.context_seq WHERE m.user_id = ?"
            f" AND m.folded = ? AND x.context_type <> 'entity' AND {owner.sql} LIMIT 1",
            (view.user_id, folded, *owner.values),
        )
    )


def mentioned_names(view: View) -> list[str]:
    """Returns the mentioned folded names; the time depends on their number only."""
    rows = view.rows(
        "WITH RECURSIVE names (folded) AS ("
        " SELECT min(folded) FROM mentions WHERE user_id = ?"
        " UNION ALL"
        " SELECT (SELECT min(m.folded) FROM mentions m"
        " WHERE m.user_id = ? AND m.folded > names.folded)"
        " FROM names WHERE names.folded IS NOT NULL)"
        " SELECT folded FROM names WHERE folded IS NOT NULL",
        (view.user_id, view.user_id),
    )
    names = [str(row[0]) for row in rows]
    return [name for name in names if is_mentioned(view, name)] if view.seen("x").narrows else names
