"""The signals in a query besides its words: dates, quotes, names, the past, and what it leans on.

"And its limits?" finds nothing on its own, so it is searched together with the query before it. A
complete question stays as it is: words of an earlier question would only mislead.

A logistic regression decides by the form of a question in English, German or Chinese. Its features
are the function words and their neighbours (every other word is reduced to a shape), how many of
those bring a topic, and what precedes its pronouns. The weights were fitted by
`benchmarks/follow_up_weights.py` of commit 0703608e, on the data that docs/query.md names. A query
is always searched alone first: the surer that answers it, the less it depends on another. Hits of
the completed query only join those of the query itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from storage.retrieval.dates import Distance, NamedDate, Span, distances, named_dates, spans_named
from storage.tokenize import STOP_WORDS, fold_accents, is_spaceless, terms_of, tokenize

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
_SPACED = (
    "before|former|formerly|previous|previously|earlier|past|once|ex|used to|history|historically"
    "|fr\u00fcher|fr\u00fchere[nrs]?|vorher|vorherige[nrs]?|zuvor|damals|ehemals|ehemalige[nrs]?|einst"
)
_PAST_VERBS = (  # at the start, "was" is German, unless an English subject follows
    r"did|(?<!^)was|was(?= (?:the|there|it|s?he|my|our|his|her|their|th[ai][ts]|(?-i:[A-Z])\w*)\b)"
    "|were|had|until|war|waren|hatte|hatten|bisher|bis"
)
_SPACELESS = "以前|之前|过去|過去|曾|原来|原來|从前|從前|前任|先前|旧|舊"
_BEFORE = rf"(?i)\b(?:{_SPACED})\b|{_SPACELESS}"
_PAST = rf"(?i)\b(?:{_SPACED}|{_PAST_VERBS})\b|{_SPACELESS}"
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


def asks_for_past(question: str) -> bool:
    """Returns whether a question may be about the past, in English, German or Chinese."""
    return re.search(_PAST, question) is not None


def asks_for_former(question: str) -> bool:
    """Returns whether a question is about what held before, not just in the past tense."""
    return re.search(_BEFORE, question) is not None


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


WEIGHTS_FILE = "follow_up_weights.json"  # the weight of each feature, in a file next to this module
# The score above which a query is completed, since completing a complete one does more harm.
SURE = 0.5
LONGEST = 300  # maximum characters to take from the earlier query
MOST_READ = 200  # maximum characters of a query to examine; a longer one is complete
LONGEST_RUN = 3  # maximum neighbouring words that form one feature
LONGEST_ENDING = 3  # maximum letters of an ending of a general word
SHORTEST_STEM = 3  # minimum letters of its stem
LONGEST_WORD = 3  # maximum characters of a general word in Chinese

_PRONOUNS = frozenset(
    """
    it its they them their theirs he him his she her hers er ihn ihm ihrem ihren ihrer sein seine
    seinem seinen seiner sie es ihr ihre ihnen dessen deren
    """.split()  # noqa: SIM905  # words read best as text
)
_THINGS = frozenset(["es", "it", "its"])
# Words that begin the clause that "it" refers to: "is it true that".
_CLAUSAL = frozenset(["dass", "if", "ob", "that"])

# Words within a sentence that address the other person.
_POLITE = frozenset(["Ihnen", "Ihr", "Ihre", "Ihrem", "Ihren", "Ihrer", "Sie"])
_GERMAN_POINTING = frozenset(["das", "dem", "den", "der", "die", "dies"])
_SUBORDINATE = frozenset(
    """
    if when once before after because while unless although since wenn falls bevor nachdem weil
    sobald während
    """.split()  # noqa: SIM905  # words read best as text
)
_CLASSES = {"wh": "什怎谁哪几多何", "self": "我你您咱", "pointing": "这那", "pronoun": "它他她"}
_ENDINGS = ("ing", "ed", "er", "est", "ly", "s", "en", "t", "e")
_WORD = r"\d+|[^\W\d_]+"
_WITHIN = r"[\w,] $"  # what precedes a word within a sentence
_CLITIC = r"['\u2019][^\W\d_]+"
_CHARACTER = r"[a-zA-Z0-9]+|\w"
_PERSON = r"(?i)\b(?:he|him|his|she|her|hers)\b"
_NAME = (
    r"(?<=[\w,] )(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|(?:Janu|Febru)ary\b|March\b"
    r"|April\b|May\b|June\b|July\b|August\b|(?:Septem|Octo|Novem|Decem)ber\b)"
    r"[A-ZÄÖÜ]\w*[a-z]\w*"
)


def completed(query: str, earlier: Sequence[str]) -> str:
    """Completes a query with the one before it, of the same session, that it depends on.

    That is the latest complete query, or else the first of all, with the last one if that depends
    on it too. For a query about a person only names are taken, also from follow-ups since then:
    other words were measured to mislead.
    """
    asked = [each for each in earlier if tokenize(each)]
    if not asked:
        return query
    # The first cannot depend on an earlier one, whatever its form.
    first = next((at for at in reversed(range(len(asked))) if not is_follow_up(asked[at])), 0)
    subject = " ".join(_topic(each) for each in dict.fromkeys((asked[first], asked[-1])))
    if re.search(_PERSON, query):
        named = (name for before in asked[first:] for name in re.findall(_NAME, before))
        subject = " ".join(dict.fromkeys(named)) or subject
    return f"{subject} {query.strip()}"


def _topic(query: str) -> str:
    """Returns the beginning of a query, without its last punctuation."""
    topic = " ".join(query.split()).rstrip("?.! \uff1f\u3002\uff01")
    return topic if len(topic) <= LONGEST else topic[:LONGEST].rsplit(" ", 1)[0]


def is_follow_up(query: str) -> bool:
    """Returns whether a query's form shows that it depends on an earlier one."""
    return leaning(query) > 0


def leaning(query: str) -> float:
    """Returns a logit, above 0 if a query's form shows that it depends on an earlier one.

    It is minus infinity for mere keywords and for long queries, which are always complete.
    """
    found = features(query)
    weights = _weights()
    return sum(weights.get(each, 0) for each in found) - SURE if found else -math.inf


def features(query: str) -> set[str]:
    """Returns the features of a query's form; none for mere keywords and long queries."""
    if len(query) > MOST_READ:
        return set()
    if is_spaceless(query):
        return set() if FUNCTION_CHARACTERS.isdisjoint(query) else set(_of_characters(query))
    words = re.findall(_WORD, query.casefold())
    return set() if FUNCTION_WORDS.isdisjoint(words) else set(_of_words(query))


def _of_words(query: str) -> Iterator[str]:
    plain = query.casefold() if query.isupper() or query.istitle() else re.sub(_CLITIC, "", query)
    found = list(re.finditer(_WORD, plain))
    shapes = [_shape(word, plain) for word in found]
    yield from _runs(shapes)
    names = shapes.count("N")
    general, topical = (sum(shape[0] == kind for shape in shapes) for kind in "~-")
    yield f"content {min(names + general + topical, 6)}"
    yield f"names {min(names, 3)}"
    yield f"general {min(general, 3)}"
    yield f"topical {min(topical, 4)}"
    yield f"topical or named {min(topical + names, 4)}"
    yield f"topical {min(topical, 2)} named {min(names, 2)} general {min(general, 2)}"
    for at, word in enumerate(shapes):
        before = shapes[:at]
        if word in _PRONOUNS:
            others = sum(shape[0] in "-~" for shape in before)
            kind = "thing" if word in _THINGS else "person"
            if kind == "thing" and _CLAUSAL & set(shapes[at + 1 : at + 4]):
                kind = "clause"
            clause = " of a clause" if shapes[0] in _SUBORDINATE else ""
            yield f"{kind}{clause} after {min(before.count('N'), 1)} {min(others, 2)}"
        elif word in _GERMAN_POINTING and "N" not in shapes[at + 1 : at + 4]:
            yield "no noun after a determiner"


def _shape(word: re.Match[str], query: str) -> str:
    """Returns a function word, or the shape of another: number, name, or ending."""
    written, folded = word.group(), word.group().casefold()
    is_within = re.search(_WITHIN, query[: word.start()]) is not None
    if is_within and written in _POLITE:
        return "you"
    if (is_within and written[0].isupper()) or (written.isupper() and len(written) > 1):
        return "N"  # "IT" is not "it", "Will" is not "will"
    if folded in FUNCTION_WORDS:
        return folded
    if written.isdigit():
        return "#"
    stems = range(max(len(folded) - LONGEST_ENDING, SHORTEST_STEM), len(folded))
    is_general = folded in GENERAL_WORDS or any(folded[:end] in GENERAL_WORDS for end in stems)
    kind = "~" if is_general else "-"
    return kind + next((end for end in _ENDINGS if folded.endswith(end)), "")


def _of_characters(query: str) -> Iterator[str]:
    """Yields the features of text without spaces: characters, and the lengths of content runs."""
    characters = re.findall(_CHARACTER, query)
    kinds = _kinds(characters)
    shapes: list[str] = []
    for kind, run in groupby(zip(kinds, characters, strict=True), itemgetter(0)):
        members = [character for _, character in run]
        shapes += members if not kind else [f"{kind}{min(len(members), 4)}"]
    yield from _runs(shapes)
    topical = kinds.count("-")
    content = topical + kinds.count("~")
    yield f"characters {min(content, 7)}"
    yield f"topical {min(topical, 5)}"
    yield f"topical {min(topical, 3)} of {min(len(characters) // 3, 4)}"
    yield f"length {min(len(characters) // 2, 8)}"
    for name, initials in _CLASSES.items():
        at = next((at for at, each in enumerate(characters) if each in initials), None)
        if at is not None:
            before = at - kinds[:at].count("")
            yield f"{name} after {min(before, 3)}"
            yield f"{name} before {min(content - before, 3)}"


def _kinds(characters: Sequence[str]) -> list[str]:
    """Returns each character's kind: "" in a function word, "~" in a general word, else "-"."""
    kinds = ["" if each in FUNCTION_CHARACTERS else "-" for each in characters]
    at = 0
    while at < len(characters):
        lengths = range(LONGEST_WORD, 0, -1)
        run = next(
            (n for n in lengths if "".join(characters[at : at + n]) in GENERAL_CHARACTERS), 0
        )
        kinds[at : at + run] = [kind and "~" for kind in kinds[at : at + run]]
        at += run or 1
    return kinds


def _runs(shapes: Sequence[str]) -> Iterator[str]:
    whole = ["^", *shapes, "$"]
    for length in range(1, LONGEST_RUN + 1):
        for at in range(len(whole) - length + 1):
            yield " ".join(whole[at : at + length])


@cache
def _weights() -> dict[str, float]:
    text = Path(__file__).with_name(WEIGHTS_FILE).read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights


CERTAINTY = 3.0  # the weight of how unlikely it is that a query is answered alone


def dependence(query: str, sure: float) -> float:
    """Returns how likely a query depends on another; `sure` is the score of its own best hit."""
    return 1 / (1 + math.exp(-leaning(query) - CERTAINTY * (1 - sure)))
