"""Tools in few words: enough for a model to choose one and to call it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired

from pydantic import FiniteFloat
from typing_extensions import TypedDict

from tools.conversion.schema_reading import merged
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import ToolSpec
from tools.core.toolset import ToolOffer
from tools.retrieval.catalogue import Found
from tools.retrieval.index_updates import OF_PROJECT
from tools.retrieval.models import first_sentence

MOST_TAGS = 6  # limit on the tags named for a group
PARAMETERS_CHARACTERS = 1_500  # limit on all parameters of a tool with their types

NAME_CHARACTERS = 60
"""Limit on the name of a parameter, or of a tool that is only described in a file."""

PARAMETER_CHARACTERS = 100  # limit on a parameter with its type in a card
CHOICES_CHARACTERS = 30  # limit on the listed values of a parameter; beyond it, its type is shown

MOST_DEPTH = 4
"""Limit on the levels of a parameter's type; schemas of other servers may be recursive."""

_SHORT = {"string": "str", "integer": "int", "number": "num", "boolean": "bool"}


class Card(NamedTuple):
    """A tool in one line."""

    # Its parameters in parentheses, the required ones first and with their types; "?" marks
    # optional ones, and "…" those that did not fit.
    signature: str
    summary: str  # what it does


def card(schema: Mapping[str, Any], description: str, room: int) -> Card:
    """Formats the line of a tool after its name, within a number of characters.

    If both are too long, the description comes first but gets at most half of the room.
    """
    said = first_sentence(description)
    left = room - len("(): ")
    listed = _list_parameters(schema, max(left - len(said), left // 2))
    return Card(f"({listed})", clipped_line(said, left - len(listed)))


def clipped_line(text: str, room: int) -> str:
    """Cuts a text to one line without invisible characters; "…" marks what is cut off."""
    line = "".join(each for each in " ".join(text.split()) if each.isprintable())
    if len(line) <= room:
        return line
    words = line[: max(room - 1, 0)].rpartition(" ")[0]
    kept = words if len(words) > room // 2 else line[: max(room - 1, 0)]
    return f"{kept}…" if room > 0 else ""


def parameters(spec: ToolSpec) -> str:
    """Formats the tool's name and its parameters with their types."""
    schema = spec.input_schema
    required = _required(schema)
    typed = (
        f"{name}{'' if name in required else '?'}: {_type(each, schema)}"
        for name, each in _properties(schema)
    )
    return clipped_line(f"{spec.name}({', '.join(typed)})", PARAMETERS_CHARACTERS)


def groups(specs: Sequence[ToolOffer], room: int) -> str:
    """Counts the tools of each group, such as "context 18 (documents 4, events 4)".

    Tools of other servers are counted by server, after our own. Groups that do not fit are counted
    together.
    """
    own: dict[str, list[ToolOffer]] = {}
    servers: Counter[str] = Counter()
    for spec in specs:
        kind, _, server = spec.source.partition(":")
        if kind == "upstream":
            servers[server] += 1
        else:
            own.setdefault(spec.tags[0] if spec.tags else kind, []).append(spec)
    ranked = sorted(own, key=lambda name: (-len(own[name]), name))
    plain = [f"{name} {len(own[name])}" for name in ranked]
    tagged = []
    for each, name in zip(plain, ranked, strict=True):
        tags = Counter(tag for spec in own[name] for tag in spec.tags[1:]).most_common(MOST_TAGS)
        listed = ", ".join(f"{tag} {count}" for tag, count in sorted(tags))
        tagged.append(f"{each} ({listed})" if listed else each)
    foreign = [
        f"{name} {count}"
        for name, count in sorted(servers.items(), key=lambda each: (-each[1], each[0]))
    ]
    shares = room if not foreign else room * 2 // 3
    told = next((each for each in (tagged, plain) if len(", ".join(each)) <= shares), None)
    ours = ", ".join(told) if told is not None else _join_fitting(plain, shares)
    if not foreign:
        return ours
    theirs = "other servers: "
    left = room - len(ours) - len(theirs) - len("; ")
    theirs += _join_fitting(foreign, left)
    return f"{ours}; {theirs}" if ours else theirs


def _join_fitting(entries: Sequence[str], room: int) -> str:
    """Joins the first entries, and the number of those that do not fit."""
    for count in range(len(entries), 0, -1):
        more = f", {len(entries) - count} more" if count < len(entries) else ""
        text = ", ".join(entries[:count]) + more
        if len(text) <= room:
            return text
    return f"{len(entries)}" if entries else ""


def _list_parameters(schema: Mapping[str, Any], room: int) -> str:
    """Lists the required parameters, with types if all fit, then the optional ones."""
    properties = dict(_properties(schema))
    required = [name for name in _required(schema) if name in properties]
    kinds = {name: _type(properties[name], schema, short=True) for name in required}
    typed = [clipped_line(f"{name}: {kinds[name]}", PARAMETER_CHARACTERS) for name in required]
    optional = [f"{name}?" for name in properties if name not in required]
    for entries in ([*typed, *optional], [*required, *optional]):
        shown = _first(entries, room)
        if len(shown) >= len(required):
            break
    more = ["…"] if len(shown) < len(entries) else []
    listed = ", ".join([*shown, *more])
    return listed if len(listed) <= room else ""


def _first(entries: Sequence[str], room: int) -> Sequence[str]:
    """Returns as many entries as fit, leaving room for an ellipsis."""
    if len(", ".join(entries)) <= room:
        return entries
    left = room - len("…")
    for count, entry in enumerate(entries):
        left -= len(entry) + len(", ")
        if left < 0:
            return entries[:count]
    return entries


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields each parameter with its schema, which may be malformed on other servers."""
    found = schema.get("properties")
    for name, each in found.items() if isinstance(found, Mapping) else ():
        yield clipped_line(str(name), NAME_CHARACTERS), each if isinstance(each, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    names = found if isinstance(found, list | tuple) else ()
    return [clipped_line(str(name), NAME_CHARACTERS) for name in names]


def _type(schema: object, root: Mapping[str, Any], *, short: bool = False) -> str:
    return _TypeWriter(root, is_short=short).type_of(schema)


class _TypeWriter:
    """Formats types of an untrusted schema: each part once, and cut."""

    def __init__(self, root: Mapping[str, Any], *, is_short: bool) -> None:
        self._root = root
        self._is_short = is_short
        self._written: dict[tuple[int, int], str] = {}

    def type_of(self, schema: object, depth: int = MOST_DEPTH) -> str:
        """Formats the type of a part, down to a number of levels."""
        if not isinstance(schema, Mapping) or not depth:
            return "any"
        key = id(schema), depth
        if key not in self._written:
            self._written[key] = self._type(schema, depth)[:PARAMETERS_CHARACTERS]
        return self._written[key]

    def _type(self, schema: Mapping[str, Any], depth: int) -> str:
        schema = merged(schema, self._root)
        if isinstance(choices := schema.get("enum"), list | tuple):
            told = "|".join(map(str, choices))
            if not self._is_short or len(told) <= CHOICES_CHARACTERS:
                return told
        union = next((schema[key] for key in ("anyOf", "oneOf") if key in schema), None)
        if isinstance(union, list | tuple):
            said = (self.type_of(each, depth - 1) for each in union)
            return "|".join(dict.fromkeys(said))
        kind = schema.get("type", "any")
        if kind == "array":
            return f"[{self.type_of(schema.get('items', {}), depth - 1)}]"
        members = [f"{name}?" for name, _ in _properties(schema)]
        if kind == "object" and members and not self._is_short:
            return f"{{{', '.join(members)}}}"
        kinds = map(str, kind if isinstance(kind, list | tuple) else [kind])
        return "|".join(_SHORT.get(each, each) if self._is_short else each for each in kinds)


FEW = 5  # number of cards that share CARDS_CHARACTERS; of more, each gets a fifth of it
CARDS_CHARACTERS = 680  # 170 tokens at four characters each
MOST_ALSO = 3  # limit on the other servers named for the same tool
ALSO_CHARACTERS = 30  # limit on the text about them
LEAST_SHOWN = 0.005  # scores below this would round to zero
NONE = "No tool fits. Try other words, fewer tags or a lower min_score."


class ToolCard(TypedDict):
    """A tool in one line.

    Attributes:
        name: Its name.
        signature: Its parameters, required ones first; "?" marks optional ones.
        summary: What it does.
        score: How well it matches, up to 1.
        server: The other server it belongs to.
        also: Other servers with the same tool.
        note: Why it cannot be called now, or whose skill it is.
    """

    name: str
    signature: str
    summary: str
    score: FiniteFloat
    server: NotRequired[str]
    also: NotRequired[list[str]]
    note: NotRequired[str]


class FoundTools(ToolModel):
    """The matching tools, best first.

    Attributes:
        tools: One card per tool.
        available: What is available, if nothing matches.
        incomplete: What could not be searched yet.
    """

    tools: list[ToolCard]
    available: str = ""
    incomplete: OmitNone[str] = None

    @classmethod
    def of(cls, found: Sequence[Found], incomplete: str | None = None) -> FoundTools:
        """Converts search results to cards."""
        room = CARDS_CHARACTERS // max(min(len(found), FEW), 1) - 1
        return cls(tools=[_card(each, room) for each in found], incomplete=incomplete)

    def to_text(self) -> str:
        """Formats one line per tool."""
        lines = list(map(_line, self.tools)) or [f"{NONE} There are: {self.available}."]
        return "\n".join([*lines, *filter(None, [self.incomplete])])


def _card(found: Found, room: int) -> ToolCard:
    """Builds a card whose line has a limited length."""
    spec = found.spec
    if spec is not None and found.record.is_skill:
        return _skill_card(found, spec.name, room)
    name = clipped_line(found.record.name, NAME_CHARACTERS) if spec is None else spec.name
    made = ToolCard(name=name, signature="", summary="", score=round(found.score, 3))
    if spec is None:
        made["note"] = "found only: cannot be called here"
    elif spec.quarantine_reason:
        made["note"] = "in quarantine"
    elif found.is_down:
        made["note"] = "its server is down"
    if spec is not None and spec.server:
        made["server"] = spec.server
    if found.also:
        made["also"] = list(found.also[:MOST_ALSO])
    if spec is not None and spec.quarantine_reason:
        return made
    said = found.record if spec is None else spec
    schema = found.record.parameters or {} if spec is None else spec.input_schema
    left = room - len(_line(made)) - len(": ")
    made["signature"], made["summary"] = card(schema, said.description, left)
    return made


def _skill_card(found: Found, loader: str, room: int) -> ToolCard:
    """Builds a card for the call that loads a skill."""
    record = found.record
    signature = f'(name="{record.name}")'
    made = ToolCard(name=loader, signature=signature, summary="", score=round(found.score, 3))
    if OF_PROJECT in record.tags:
        made["note"] = "a skill of the project"
    made["summary"] = clipped_line(record.description, room - len(_line(made)) - len(": "))
    return made


def _line(made: ToolCard) -> str:
    """Formats a card: the call, its summary, notes and score."""
    named = f"also on {', '.join(made.get('also', ()))}"
    also = f" {clipped_line(named, ALSO_CHARACTERS)}" if "also" in made else ""
    note = f" ({made['note']})" if "note" in made else ""
    said = ": ".join(filter(None, (made["name"] + made["signature"], made["summary"])))
    score = f"{made['score']:.2f}" if made["score"] >= LEAST_SHOWN else "<0.01"
    return f"{said}{also}{note} {score}"
