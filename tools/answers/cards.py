"""Tools in few words: what a model needs to choose one, and to call it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tools.core.spec import ToolSpec
from tools.core.toolset import ToolOffer

__all__ = ["Card", "card", "clipped_line", "groups", "parameters", "summary"]

MOST_TAGS = 6
"""Tags of one group that are named."""

PARAMETERS_CHARACTERS = 1_500
"""Of all parameters of a tool with their types."""

NAME_CHARACTERS = 60
"""Of one parameter's name."""

PARAMETER_CHARACTERS = 100
"""Of one parameter with its type in a card."""

CHOICES_CHARACTERS = 30
"""Of the values of one parameter; where there are more, its type is told."""

MOST_DEPTH = 4
"""Levels of a parameter's type that are told; definitions of others may contain themselves."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_SHORT = {"string": "str", "integer": "int", "number": "num", "boolean": "bool"}


class Card(NamedTuple):
    """A tool in one line.

    Attributes:
        signature: Its parameters in parentheses, the required ones first and with their types; "?"
            follows what may be left out, and "…" stands for those that had no room.
        summary: What it does.
    """

    signature: str
    summary: str


def card(schema: Mapping[str, Any], description: str, room: int) -> Card:
    """The line of a tool after its name, within a number of characters whatever it is like.

    What it does comes first where both are short of room, but has half of it at most.

    Args:
        schema: JSON Schema of its arguments.
        description: What it does.
        room: Characters of both together, ": " between them included; at least 20.
    """
    said = summary(description)
    left = room - len("(): ")
    listed = _listed(schema, max(left - len(said), left // 2))
    return Card(f"({listed})", clipped_line(said, left - len(listed)))


def summary(description: str) -> str:
    """The first sentence of a description."""
    return " ".join(_SENTENCE_END.split(description.strip(), maxsplit=1)[0].split())


def clipped_line(text: str, room: int) -> str:
    """A text in one line, without characters that nobody sees; "…" stands for what is cut off."""
    line = "".join(each for each in " ".join(text.split()) if each.isprintable())
    if len(line) <= room:
        return line
    words = line[: max(room - 1, 0)].rpartition(" ")[0]
    kept = words if len(words) > room // 2 else line[: max(room - 1, 0)]
    return f"{kept}…" if room > 0 else ""


def parameters(spec: ToolSpec) -> str:
    """The tool's name and its parameters with their types."""
    schema = spec.input_schema
    required = _required(schema)
    typed = (
        f"{name}{'' if name in required else '?'}: {_type(each, schema)}"
        for name, each in _properties(schema)
    )
    return clipped_line(f"{spec.name}({', '.join(typed)})", PARAMETERS_CHARACTERS)


def groups(specs: Sequence[ToolOffer], room: int) -> str:
    """How many tools there are of each group, such as "context 18 (documents 4, events 4)".

    Those of other servers are counted by server, after our own. What has no room is counted
    together.

    Args:
        specs: The tools.
        room: Characters at most, at least 60.
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
    tagged = [each + _tags(own[name]) for each, name in zip(plain, ranked, strict=True)]
    foreign = [
        f"{name} {count}"
        for name, count in sorted(servers.items(), key=lambda each: (-each[1], each[0]))
    ]
    shares = room if not foreign else room * 2 // 3
    told = next((each for each in (tagged, plain) if len(", ".join(each)) <= shares), None)
    ours = ", ".join(told) if told is not None else _fitting(plain, shares)
    if not foreign:
        return ours
    theirs = "other servers: "
    left = room - len(ours) - len(theirs) - len("; ")
    theirs += _fitting(foreign, left)
    return f"{ours}; {theirs}" if ours else theirs


def _tags(specs: Sequence[ToolOffer]) -> str:
    tags = Counter(tag for spec in specs for tag in spec.tags[1:]).most_common()
    named = ", ".join(f"{tag} {count}" for tag, count in sorted(tags[:MOST_TAGS]))
    return f" ({named})" if named else ""


def _fitting(entries: Sequence[str], room: int) -> str:
    """The first entries, and how many more there are."""
    for count in range(len(entries), 0, -1):
        more = f", {len(entries) - count} more" if count < len(entries) else ""
        text = ", ".join(entries[:count]) + more
        if len(text) <= room:
            return text
    return f"{len(entries)}" if entries else ""


def _listed(schema: Mapping[str, Any], room: int) -> str:
    """The parameters: the required ones with their types where all fit, and then the others."""
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
    """As many of the entries as fit, with room for a sign that there are more."""
    if len(", ".join(entries)) <= room:
        return entries
    left = room - len("…")
    for count, entry in enumerate(entries):
        left -= len(entry) + len(", ")
        if left < 0:
            return entries[:count]
    return entries


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each parameter with its schema, in which other servers may have put anything."""
    found = schema.get("properties")
    for name, each in found.items() if isinstance(found, Mapping) else ():
        yield clipped_line(str(name), NAME_CHARACTERS), each if isinstance(each, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    names = found if isinstance(found, list | tuple) else ()
    return [clipped_line(str(name), NAME_CHARACTERS) for name in names]


def _type(
    schema: object, root: Mapping[str, Any], *, short: bool = False, depth: int = MOST_DEPTH
) -> str:
    if not isinstance(schema, Mapping) or not depth:
        return "any"
    schema = _resolved(schema, root)
    if isinstance(choices := schema.get("enum"), list | tuple):
        told = "|".join(map(str, choices))
        if not short or len(told) <= CHOICES_CHARACTERS:
            return told
    union = next((schema[key] for key in ("anyOf", "oneOf") if key in schema), None)
    if isinstance(union, list | tuple):
        said = (_type(each, root, short=short, depth=depth - 1) for each in union)
        return "|".join(dict.fromkeys(said))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_type(schema.get('items', {}), root, short=short, depth=depth - 1)}]"
    if kind == "object" and not short and (names := [name for name, _ in _properties(schema)]):
        return "{" + ", ".join(f"{name}?" for name in names) + "}"
    kinds = kind if isinstance(kind, list | tuple) else [kind]
    return "|".join(_SHORT.get(str(each), str(each)) if short else str(each) for each in kinds)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a schema refers to within its root, with what it says itself; else as it is."""
    for _ in range(MOST_DEPTH):
        found: Any = root
        place = schema.get("$ref")
        if not isinstance(place, str) or not place.startswith("#/"):
            break
        for key in place.removeprefix("#/").split("/"):
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            break
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema
