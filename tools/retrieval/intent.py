"""Reads what a request wants done, and which of its words mean the same as others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, reduce
from operator import or_

from storage.tokenize import tokenize
from tools.retrieval.models import SENTENCE_END, ToolRecord, spaced

# What tools do, each with its verbs in requests and in the names of tools.
ACTIONS = {
    "create": "create add new make insert append generate build open file start draft draw put plan"
    " compose register fork clone",
    "list": "list enumerate browse show all which available overview exist",
    "read": "read get show view open display retrieve fetch see look inspect print describe check"
    " info status load give tell know say contents take watch monitor explain trace summarize",
    "search": "search find look locate lookup query where seek discover google need browse",
    "count": "query count calculate compute sum average total aggregate evaluate eval execute run",
    "update": "update edit change modify set replace fix correct patch adjust format close approve"
    " rename make turn assign mark tick configure manage",
    "write": "write save store put record note keep remember add set fill type enter insert log"
    " append",
    "delete": "delete remove erase clear drop discard forget unlink uninstall clean empty"
    " stop cancel",
    "send": "send post tell reply answer comment notify message publish share email respond upload"
    " push leave submit add interact",
    "run": "run execute start launch invoke call perform use apply do eval",
    "stop": "stop kill cancel end terminate close abort quit exit interrupt",
    "move": "move rename relocate drag transfer",
    "copy": "copy duplicate clone fork",
    "convert": "convert translate export turn transform extract pull change generate make import"
    " parse",
    "navigate": "go navigate visit open browse switch checkout travel",
    "press": "click press tap hit push choose select pick hover type key",
    "undo": "undo revert restore reset unstage rollback back unset",
    "compare": "compare diff difference changed",
    "delegate": "delegate assign hand",
    "plan": "plan think schedule",
}
_READING = ("list", "read", "search", "count", "compare")
_NO_NOUN = r"(?!(?:is|was|does|has|this|its|us)\b)"
# The beginnings of questions, and the actions that answer them; the first that fits counts.
_QUESTIONS = (
    (r"how\s+(?:many|much|often)", ("count", "list", "search")),
    (r"where", ("search", "list")),
    (rf"(?:which|what)\s+{_NO_NOUN}(?:\w+\s+)?{_NO_NOUN}\w*[^\Ws]s", ("list", "search", "count")),
    (r"are\s+there", ("list", "search", "count")),
    (r"which|what|who|whose|when|are|is|does|do|did|has|have|how|why", _READING),
)

# Each line has words that people and tools use for the same thing.
SYNONYMS = """
folder directory
picture image photo logo icon
rename move
bug issue ticket
website site webpage page url web
internet web online
message post chat
program process application app
terminal shell console command
spreadsheet excel workbook worksheet xlsx sheet
mail email inbox
repository repo
database sql table
row record entry
dropdown select option
route direction road drive car
far distance
high height elevation altitude
big size large
long length duration
fast speed
old age
cost price money payment
place location address
place restaurant hotel shop
person people member user contact
paper article publication study research
bold italic color font style format
color red green blue dark light theme
watch monitor track
paragraph block
workspace team organization
chart graph plot diagram
documentation docs manual reference
library package dependency framework
reaction emoji thumb like
click press button tap
channel room group
history log
task todo job
fact knowledge
meeting event appointment calendar
weather forecast temperature
song music audio
movie film video
password secret credential
error exception failure
"""

# What files are, by the ending of their names.
_FILES = {
    "file": "txt md rst log py js ts jsx tsx java go rs rb php c h cpp cs sh sql html css xml json"
    " jsonl yaml yml toml ini cfg conf env lock zip tar gz 7z pdf doc docx odt ppt pptx csv tsv"
    " parquet db mp3 wav mp4 mov",
    "image file": "png jpg jpeg gif svg webp bmp tiff",
    "spreadsheet file": "xlsx xls ods",
}
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}\.\w+")
_URL = re.compile(
    r"\bhttps?://\S+|\b(?:[a-z0-9-]{1,63}\.)+(?:com|org|net|io|dev|edu|gov)\b\S*", re.IGNORECASE
)
_FILE = re.compile(r"(?<![\w.])[\w/~-][\w./~-]{0,200}\.([A-Za-z0-9]{1,7})\b(?!\()")
_CHANNEL = re.compile(r"(?<!\w)#[a-z][\w-]*", re.IGNORECASE)
_COORDINATES = re.compile(r"-?\d{1,3}\.\d+\W{0,3},\s*-?\d{1,3}\.\d+")
_PULLS, _MERGES = re.compile(r"\b(?:PR|pr)(s?)\b"), re.compile(r"\bMR(s?)\b")
_BEFORE_VERB = re.compile(
    r"\W*(?:(?:please|kindly|hey|hi|hello|now|then|also|and|just|can|could|would|will|you|i|we|me"
    r"|us|want|need|like|love|wish|have|to|help|let|lets|able|d|m|s|trying|going|so|ok|after|that|it"
    r"|finally|lastly|next|first|firstly|second|secondly|additionally|moreover|furthermore|once"
    r"|done)\b\W*)*",
    re.IGNORECASE,
)
_PLEASE = re.compile(r"\bplease\s+(\w+)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_METHOD = re.compile(r"^(?:api )?(?:post|put|patch)\b", re.IGNORECASE)
VERB_PLACES = 2  # words of a sentence, after its courtesies, among which its verb is


def name_values(text: str) -> str:
    """Replaces addresses, files, channels and coordinates in a request by what they are."""
    text = _MERGES.sub(r"merge request\1", _PULLS.sub(r"pull request\1", text))
    if not any(sign in text for sign in ".#"):
        return text
    text = _COORDINATES.sub("coordinates", text)
    text = _URL.sub("web page URL", _MAIL.sub("email address", text))
    return _CHANNEL.sub("channel", _FILE.sub(_name_file, text))


def _name_file(found: re.Match[str]) -> str:
    ending = found[1].lower()
    kind = next((kind for kind, endings in _FILES.items() if ending in endings.split()), None)
    return found[0] if kind is None else f"{kind} {ending}"


def is_verb(term: str) -> bool:
    """Returns whether a term names an action more than a thing."""
    return term in _actions_by_term()


def synonyms(term: str) -> tuple[str, ...]:
    """Returns the terms that mean nearly the same."""
    return _synonyms_by_term().get(term, ())


def actions_of_tool(record: ToolRecord) -> int:
    """Returns what a tool does, as bits: by the first verb of its name; 0 if it has none.

    A name that also says that something is counted or queried counts as both. A method of HTTP in a
    name says less than the verb with which the description begins.
    """
    name = spaced(record.bare_name)
    found = list(_actions(name))
    if found and _METHOD.search(name):
        begins = " ".join(_WORD.findall(record.description[:100])[:VERB_PLACES])
        found = list(_actions(begins))[:1] or found
    return found[0] | _bits(("count",)) & reduce(or_, found) if found else 0


def wanted_actions(text: str) -> int:
    """Returns what a request wants done, as bits; 0 if that is unknown."""
    wanted = 0
    for sentence in SENTENCE_END.split(text):
        answers = next((names for begins, names in _questions() if begins.match(sentence)), None)
        if answers is not None:
            wanted |= _bits(answers)
        elif (asked := _PLEASE.search(sentence)) is not None:
            wanted |= next(_actions(asked[1]), 0)
        else:
            start = _BEFORE_VERB.match(sentence)
            words = _WORD.findall(sentence[start.end() if start else 0 :][:100])
            wanted |= next(_actions(" ".join(words[:VERB_PLACES])), 0)
    return wanted


@cache
def reading_actions() -> int:
    """Returns the actions that only read, as bits."""
    return _bits(_READING)


@cache
def _questions() -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    return tuple(
        (re.compile(rf"\W*(?:{begins})\b", re.IGNORECASE), names) for begins, names in _QUESTIONS
    )


def _actions(text: str) -> Iterator[int]:
    table = _actions_by_term()
    for word in _WORD.findall(text):
        yield from (table[term] for term in tokenize(word) if term in table)


def _bits(names: tuple[str, ...]) -> int:
    return sum(1 << bit for bit, name in enumerate(ACTIONS) if name in names)


@cache
def _actions_by_term() -> dict[str, int]:
    found: dict[str, int] = {}
    for bit, verbs in enumerate(ACTIONS.values()):
        for term in tokenize(verbs):
            found[term] = found.get(term, 0) | 1 << bit
    return found


@cache
def _synonyms_by_term() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in SYNONYMS.strip().splitlines():
        terms = tokenize(line)
        for term in terms:
            found[term] = (*found.get(term, ()), *(each for each in terms if each != term))
    return found
