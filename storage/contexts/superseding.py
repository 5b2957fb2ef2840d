"""Superseding: knowledge that gives an attribute a new value replaces the earlier value.

Former values stay in the same context, each sentence in its own passage under a heading that marks
it as former.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.contexts.contexts import read_context
from storage.contexts.filters import Selection
from storage.contexts.ingestion import PreparedChunk, chunk_terms
from storage.database import View
from storage.index.lexical import UserIndex
from storage.models import FORMERLY, Context, NewContext
from storage.people.fact_history import MOST_FORMER
from storage.retrieval.ranking import numbers_and_negations
from storage.tokenize import fold, is_spaceless, tokenize

LONGEST = 200  # maximum characters of a text that may be a statement
MOST_WORDS = 6  # maximum words of a value; twice as many characters in scripts without spaces

_IS = r"(?:is|are|(?:has |have |was |were )?changed to)(?: now| currently)?"
_IST = (
    r"(?:ist|sind|beträgt|lautet|liegt)(?: jetzt| nun| inzwischen| derzeit| aktuell)?"
    r"(?: bei| auf)?"
)
_GENITIVE = (
    r"(?!(?:Das|Dies|Dieses|Jenes|Was|Es|Alles|Welches)\b)(?P<subject>[A-ZÄÖÜ]\w+)(?:s|['\u2019]s?)"
)
_ATTRIBUTE = r"(?P<attribute>[\w-]+(?: [\w-]+){0,4})"
_SUBJECT, _VALUE = "(?P<subject>.+?)", "(?P<value>.+)"
_SPACED = (
    rf"(?:[Tt]he )?{_ATTRIBUTE} of {_SUBJECT} {_IS} {_VALUE}",
    rf"{_SUBJECT}['\u2019]s {_ATTRIBUTE} {_IS} {_VALUE}",
    rf"(?:Der|Die|Das) (?P<attribute>[\w-]+) von {_SUBJECT} {_IST} {_VALUE}",
    rf"{_GENITIVE} (?P<attribute>[\w-]+) {_IST} {_VALUE}",
)
_SPACELESS = (rf"{_SUBJECT}的(?P<attribute>[^的]+?)(?:现在|目前|已经)?(?:是|改为|变为|为){_VALUE}",)
"""Subject and attribute, in either order, and the value, in English, German and Chinese."""

_SENTENCES = (
    r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bProf)(?<!\bSt)(?<!\d)[.!?]\s|[,;:]\s|\n"
    r"|\d[.!?]\s(?!Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dez)"
)
_ARTICLE = r"(?i)^(?:the|an?|der|die|das|dem|den|des)\s+"
_USER = r"(?i)(?:the )?user|(?:der |des )?(?:nutzer|benutzer)s?|用户"
_THE_USER = "user"
_NAME = r"(?:^|[\s-])[A-ZÄÖÜ\d]"
_IDEOGRAPH = "[\u4e00-\u9fff]"
_LATIN_NAME = r"[A-Za-z]{2}"
_PASSING = (
    r"(?i)\b(?:it|this|that|these|those|him|her|them|me|you|us|my|your|our|his|their|its|today"
    r"|yesterday|tomorrow|tonight|\w+day|week|month|year|heute|gestern|morgen|\w+tag|woche|monat"
    r"|jahr)\b|[这那它他她我你今昨明]"
)
"""Words that refer to something else each time they are used as a subject."""

_UNSURE = (
    r"(?i)\b(?:or|and|but|for|if|when|unless|except|until|since|from|with|because|during|while"
    r"|only|before|after|probably|maybe|perhaps|possibly|about|around|roughly|sometimes|often"
    r"|usually|at least|at most|more than|less than|over|under|above|below|up to|also|too"
    r"|oder|und|aber|für|wenn|falls|außer|bis|seit|ab|mit|weil|während|nur|vor|nach|wohl|vielleicht"
    r"|wahrscheinlich|etwa|ungefähr|manchmal|oft|mindestens|höchstens|mehr als|weniger als|über"
    r"|unter|auch)\b|或|和|但|如果|可能|大约|大概|至少|至多|超过|以上|以下|只|也"
)
"""Words in a value that may hold alongside another value."""

_WITH_NUMBER = r".*\d.*"
_PHONE = r"[+\d][\d ()/-]{3,}"
_SINGLE = {
    r"(?:.* )?e ?mail(?: address)?|.*e mail adresse|.*邮箱": r"\S+@\S+",
    r"(?:.* )?(?:deadline|due date|start date|end date|birthday|address)": _WITH_NUMBER,
    r".*(?:frist|geburtstag|adresse|anschrift)": _WITH_NUMBER,
    r".*(?:截止日期|截止时间|生日|地址|住址)": _WITH_NUMBER,
    r"(?:.* )?(?:phone|mobile)(?: number)?|.*(?:telefonnummer|handynummer)": _PHONE,
    r".*(?:电话|电话号码|手机号)": _PHONE,
    r"(?:.* )?(?:password|passcode|pin)|.*(?:passwort|kennwort|密码)": r"\S*\d\S*",
    r"(?:.* )?status|.*状态": ".+",
}
"""Folded attributes that have one value at a time, with the pattern of their certain values.

Names are not included: "Ann's favourite band is ABBA" and "... is Swedish" can both hold.
"""

_MEASURED = (
    r"(?:.* )?(?:limit|quota|size|count|rate|timeout|port|price|rent|salary|budget|weight|height"
    r"|age|capacity|balance|version|threshold|length|width|interval|cost|fee|maximum|minimum)"
    r"|.*(?:limit|kontingent|grosse|anzahl|zahl|rate|timeout|port|preis|miete|gehalt|budget|gewicht"
    r"|hohe|alter|kapazitat|kontostand|version|länge|breite|intervall|kosten|gebuhr)"
    r"|.*(?:限额|限制|上限|配额|大小|数量|次数|速率|超时|端口|价格|租金|工资|薪水|预算|体重|身高"
    r"|年龄|容量|余额|版本|阈值|长度|宽度|间隔|费用|规模)"
)
"""Folded attributes that have one number at a time per unit of measure."""

_NUMBER = r"\d+(?:[.,:]\d+)*"
_EACH = r"\b(?:an?|per|each|every|pro|je|jede[nrs]?)\b"


@dataclass(frozen=True, slots=True)
class Statement:
    """The value of one attribute of one subject."""

    subject: str  # the subject, folded
    attribute: str  # the attribute, folded
    value: str
    is_named: bool  # whether the subject surely means the same one everywhere

    @property
    def words(self) -> str:
        """Words common to all statements of this attribute; the user goes by several words."""
        return self.attribute if self.subject == _THE_USER else f"{self.subject} {self.attribute}"

    def replaces(self, earlier: Statement) -> bool:
        """Returns whether it gives the attribute a new value, so that the earlier one ended.

        That holds if the attribute is a measure and the values differ only in their numbers, or if
        both are values of which it has one at a time.
        """
        if (self.subject, self.attribute) != (earlier.subject, earlier.attribute):
            return False
        mine, others = fold(self.value).split(), fold(earlier.value).split()
        if set(mine) <= set(others) or set(mine) >= set(others):  # one includes the other
            return False
        if re.fullmatch(_MEASURED, self.attribute) and re.search(_NUMBER, self.value):
            return _form(self.value) == _form(earlier.value)
        kind = next(
            (kind for name, kind in _SINGLE.items() if re.fullmatch(name, self.attribute)), None
        )
        return kind is not None and all(
            re.fullmatch(kind, value) for value in (self.value, earlier.value)
        )


def statement_of(text: str) -> Statement | None:
    """Parses a text that is exactly one statement; None for any other text."""
    text = " ".join(text.split(" ")).strip()
    spaceless = re.search(_IDEOGRAPH, text) is not None
    bare = text.rstrip(".!\u3002\uff01 ")
    if len(text) > LONGEST or re.search(_SENTENCES, bare) or "?" in text or "\uff1f" in text:
        return None
    found = (re.fullmatch(each, bare) for each in (_SPACELESS if spaceless else _SPACED))
    said = next(filter(None, found), None)
    if said is None:
        return None
    subject = re.sub(_ARTICLE, "", said["subject"].strip())
    value = re.sub(r" (?:now|jetzt|nun)$", "", said["value"].strip())
    is_user = re.fullmatch(_USER, subject) is not None
    words = len(value) / 2 if spaceless else len(value.split())
    if (
        words > MOST_WORDS
        or re.search(_PASSING, subject)
        or re.search(_UNSURE, value)
        or any(not each[0].isdigit() for each in numbers_and_negations(value))
    ):
        return None
    return Statement(
        subject=_THE_USER if is_user else fold(subject),
        attribute=fold(said["attribute"]),
        value=value,
        is_named=is_user or re.search(_LATIN_NAME if spaceless else _NAME, subject) is not None,
    )


def _form(value: str) -> str:
    return re.sub(_EACH, "/", re.sub(_NUMBER, "#", value.casefold()))


MOST_COMPARED = 200
"""Maximum passages with the words of subject and attribute that are read, newest first."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Knowledge with lines that no longer hold."""

    seq: int
    standing: tuple[str, ...]
    ended: tuple[str, ...]

    def former(self, until: float) -> list[str]:
        """Returns the ended lines as they are stored, with the day they were replaced."""
        day = datetime.fromtimestamp(until, UTC).date().isoformat()
        return [f"Until {day}: {line}" for line in self.ended]


def find_superseded(view: View, new: NewContext, selection: Selection) -> Superseded | None:
    """Finds the newest knowledge that a new piece certainly contradicts."""
    said = statement_of(new.text)
    if said is None:
        return None
    # Texts are indexed by pairs of Chinese characters, so a single character is never a term.
    terms = [term for term in tokenize(said.words) if len(term) > 1 or not is_spaceless(term)]
    holding = selection.keep(UserIndex(view.connection, view.user_id).holding(terms))
    rows = view.rows(
        "SELECT DISTINCT c.context_seq FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
        " ORDER BY c.seq DESC",
        (json.dumps(holding[-MOST_COMPARED:].tolist()),),
    )
    for (seq,) in rows:
        lines = contents_of(view.connection, seq)[0].split("\n")
        statements = [statement_of(line) for line in lines]
        ended = [each is not None and said.replaces(each) for each in statements]
        if not any(ended) or None in statements:
            continue
        known = read_context(view.connection, seq)
        if _is_later(new, known) and _is_named(view, said, new, known):
            told = list(zip(lines, ended, strict=True))
            return Superseded(
                seq,
                standing=tuple(line for line, is_over in told if not is_over),
                ended=tuple(line for line, is_over in told if is_over),
            )
    return None


def contents_of(connection: sqlite3.Connection, seq: int) -> tuple[str, list[str]]:
    """Returns the current text of a piece of knowledge, and its former sentences."""
    rows = connection.execute(
        "SELECT heading, content FROM chunks WHERE context_seq = ? ORDER BY position", (seq,)
    ).fetchall()
    standing = [row["content"] for row in rows if row["heading"] != FORMERLY]
    return "\n".join(standing), [row["content"] for row in rows if row["heading"] == FORMERLY]


def former_chunks(new: NewContext, past: Sequence[str]) -> list[PreparedChunk]:
    """Returns the passages of former sentences, latest first, placed after the current text."""
    chunks: list[PreparedChunk] = []
    start = len(new.text) + 2
    for line in past[:MOST_FORMER]:
        chunks.append(PreparedChunk(FORMERLY, line, start, *chunk_terms(new.title, FORMERLY, line)))
        start += len(line) + 1
    return chunks


def _is_later(new: NewContext, known: Context) -> bool:
    """Returns whether the new is no older and no less sure, and its source and names agree."""
    sources = {(each.raw_type, each.raw_id) for each in (new, known) if each.raw_id}
    names = [set(map(fold, each.entities)) for each in (new, known)]
    return (
        (new.event_time is None or new.event_time >= known.event_time)
        and new.confidence >= known.confidence
        and len(sources) <= 1
        and (not all(names) or bool(names[0] & names[1]))
    )


def _is_named(view: View, said: Statement, new: NewContext, known: Context) -> bool:
    """Returns whether both certainly mean one subject: by its spelling, or as a known name."""
    if said.is_named or said.subject in map(fold, (*new.entities, *known.entities)):
        return True
    found = "SELECT 1 FROM entity_names WHERE user_id = ? AND folded = ? LIMIT 1"
    return bool(view.rows(found, (view.user_id, said.subject)))
