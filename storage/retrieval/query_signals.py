"""The signals in a query besides its words: dates, quotes, names, speakers, "when"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from storage.retrieval.dates import Distance, NamedDate, Span, distances, named_dates, spans_named
from storage.tokenize import STOP_WORDS, fold_accents, is_spaceless, terms_of

_LISTS = json.loads(Path(__file__).with_name("function_words.json").read_text(encoding="utf-8"))

# Function words make the form of a question. General words have a meaning but no topic. A question
# of general words depends on what came before: "Were there any side effects?" and "Is breakfast
# included?" need an earlier subject; "Do penguins have knees?" does not.
FUNCTION_WORDS = frozenset(" ".join(_LISTS["function_words"]).split())  # in English and German
FUNCTION_CHARACTERS = frozenset("".join(_LISTS["function_characters"]))  # in Chinese
GENERAL_WORDS = frozenset(" ".join(_LISTS["general_words"]).split())  # without endings
GENERAL_CHARACTERS = frozenset(" ".join(_LISTS["general_characters"]).split())

_QUOTED = r'"([^"]+)"|“([^”]+)”|„([^“”"]+)[“”"]|«([^»]+)»|「([^」]+)」|『([^』]+)』|《([^》]+)》'
_WHEN = (
    r"(?i)^\W*(?:when|since when|until when|how long ago|(?:(?:on|in|during)\s)?(?:what|which)\s"
    r"(?:date|day|month|week|year)|wann|seit wann|bis wann|wie lange ist es her"
    r"|(?:an|in)\s(?:welchem|welcher)\s(?:datum|jahr|monat|tag|woche))\b"
    r"|什[么麼]时候|什[么麼]時候|何时|何時|哪(?:一)?[天年月]|几[月号]|幾[月號]"
)
_TIME = (  # without (?i), which would double the time
    r"\b(?:ago|just|lately|recently|since|today|tomorrow|tonight|yesterday"
    r"|(?:every|few|last|next|other|past|this)\s(?:day|fall|month|night|spring|summer|week|winter"
    r"|year)\w*|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december"
    r"|gerade|gestern|heute|kürzlich|neulich|seit|vorgestern"
    r"|(?:diese|letzte|nächste|vorige)[mnrs]?\s(?:jahr|monat|sommer|winter|woche)\w*"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|januar|februar|märz|mai|juni|juli|oktober"
    r"|dezember|(?:19|20)\d\d)\b"
    r"|[昨今明前后後]天|[去今明前]年|[上这這下本][个個]?(?:周|週|星期|礼拜|月)"
    r"|(?:天|周|週|月|年)[以之]?前|\d月|\d[日号]|刚刚?|剛剛?|最近"
)
_FIRST_WORD = r"(?:^|[.?!:]\s)\W*\S+"


@dataclass(frozen=True, slots=True)
class Cues:
    """The cues in a query about where its answer is."""

    text: str
    dates: tuple[NamedDate | Span, ...]  # the dates that it names
    distances: tuple[Distance, ...]  # the dates that it gives relative to an event
    asks_when: bool  # whether the answer is a time
    phrases: Sequence[str]
    names: frozenset[str]  # its words that are written like names


def cues_of(query: str, now: float) -> Cues:
    """Returns the cues of a query asked at a moment, in Unix seconds."""
    dates, events = dates_of(query, now)
    return Cues(
        text=query,
        dates=dates,
        distances=events,
        asks_when=re.search(_WHEN, query) is not None,
        phrases=[
            phrase
            for groups in re.findall(_QUOTED, query)
            if len(phrase := squeezed("".join(groups))) > 1
        ],
        names=names_in(query),
    )


def names_in(query: str) -> frozenset[str]:
    """Returns capitalized words except at the beginning of a sentence and time words.

    In German these include nouns. Chinese has no capitals, so any capitalized word there is a name.
    Anywhere, a capitalized word with a digit is one ("GRP-205").
    """
    within = query
    if not is_spaceless(query):
        within = "" if query.isupper() else re.sub(_FIRST_WORD, " ", query)
    identifiers = [word for word in terms_of(query).values() if any(map(str.isdigit, word))]
    names = (word for word in (*terms_of(within).values(), *identifiers) if word[0].isupper())
    return frozenset(word for word in names if word != "May" and not tells_time(word))


def dates_of(query: str, now: float) -> tuple[tuple[NamedDate | Span, ...], tuple[Distance, ...]]:
    """Returns the dates that a query names, and those that it gives relative to an event.

    "Last Friday" is relative to a day that the query also names, if there is one. That day counts
    too: it may be when it was mentioned.
    """
    dates = named_dates(query)
    day = next(filter(None, (d.day_span for d in dates if isinstance(d, NamedDate))), None)
    if day is None:
        return (*dates, *spans_named(query, now)), tuple(distances(query))
    far = filter(None, (distance.span(day.middle) for distance in distances(query)))
    return tuple(dict.fromkeys((*dates, *spans_named(query, day.middle), *far))), ()


def tells_time(text: str) -> bool:
    """Returns whether a text says when something was or will be."""
    return re.search(_TIME, text.lower()) is not None


def squeezed(text: str) -> str:
    """Normalizes a text for comparing quotes: case folded, single spaces, plain apostrophes."""
    return " ".join(text.replace("\u2019", "'").casefold().split()).strip(" .,;:!?")


# Most questions about a conversation name the person whose words answer them. BM25 hardly reflects
# that: in a conversation of two, every name appears in half of the turns or more.
MOST_NAME_WORDS = 4  # a heading whose first part has more words is not a name
_LETTERS = r"[^\W\d_]+"


def speaker_of(heading: str) -> str:
    """Returns the name at the beginning of a turn's heading, as in "Ann Lee, 8 May 2023"; or ""."""
    name = heading.split(",", 1)[0].strip()
    return name if len(name.split()) <= MOST_NAME_WORDS else ""


def named_speakers(query: str, speakers: Iterable[str]) -> frozenset[str]:
    """Returns the speakers that a query names, by the whole name or a word of it.

    A name that is also a common English word, such as Will, must be capitalized.
    """
    folded = fold_accents(query)
    written = set(re.findall(_LETTERS, folded))
    words = {word.casefold() for word in written}

    def is_named(speaker: str) -> bool:
        name = fold_accents(speaker)
        if is_spaceless(name):
            return name in folded
        return any(
            part in written if part.casefold() in STOP_WORDS else part.casefold() in words
            for part in re.findall(_LETTERS, name)
            if len(part) > 1
        )

    return frozenset(speaker for speaker in speakers if speaker and is_named(speaker))
