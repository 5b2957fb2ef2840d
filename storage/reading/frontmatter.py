"""Notes: parses front matter, wikilinks and tags of Markdown files.

Front matter is YAML between lines of three hyphens at the beginning of a file, as in Jekyll, Hugo
and Obsidian (https://help.obsidian.md/properties). Wikilinks and tags are Obsidian's
(https://help.obsidian.md/links, https://help.obsidian.md/tags).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any

from storage.models import seconds_of

# Maximum entities and keywords taken from one note; a table of contents links to everything.
MOST_NAMES = 100
_MAX_YAML = 65_536
_MAX_JSON = 65_536  # the limit for a caller's metadata
_MAX_LEVELS = 16
_MAX_VALUES = 10_000  # YAML aliases can expand a few lines to billions
_MAX_NAME = 256

_BLOCK = re.compile(
    r"---[ \t]*\n(?P<yaml>.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(?P<ticks>`{1,3})(?!`)[^\n]{0,500}?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_WIKILINK = re.compile(r"\[\[(?!\s)(?P<target>[^\[\]|#^\n]{1,256})(?:[|#^][^\[\]\n]{0,256})?\]\]")
_ATTACHMENT = re.compile(r"\.(?!md$)[A-Za-z][A-Za-z0-9]{1,4}$")
_NAMING = frozenset({"people", "person", "persons", "entities", "entity"})
_TAG = re.compile(r"(?<!\S)#(?P<tag>[\w/-]{1,256})")


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed Markdown file."""

    body: str  # the text without the front matter; the whole text if nothing else is left
    title: str = ""  # the front matter's title, or nothing
    event_time: float | None = None  # Unix seconds of its `date` or `created`
    # Its `tags` and `keywords`, then the tags in the text, without the hash.
    keywords: tuple[str, ...] = ()
    # Its `aliases`, `people` and `entities`, then the notes the text links to.
    entities: tuple[str, ...] = ()
    # All other fields, also `people` and `entities`; dates as ISO 8601.
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_note(text: str) -> Note:
    """Parses a Markdown text, in linear time.

    Front matter that cannot be parsed stays in the text.
    """
    block = _BLOCK.match(text, 0, _MAX_YAML)
    fields = None if block is None else _fields(block["yaml"])
    if block is None or fields is None:
        return _note(text, {})
    body = text[block.end() :].lstrip("\n")
    return _note(body if body.strip() else text, fields)


def _note(body: str, fields: dict[str, Any]) -> Note:
    prose = _CODE.sub(" ", body)
    tags = [tag.lstrip("#") for tag in _names(_take(fields, "tags", "tag", "keywords"))]
    written = (tag["tag"] for tag in _TAG.finditer(prose))
    inline = [tag.strip("/") for tag in written if any(map(str.isalpha, tag))]
    aliases = _names(_take(fields, "aliases", "alias"))
    (title,) = _take(fields, "title")[:1] or [""]
    return Note(
        body=body,
        title=" ".join(title.split()) if isinstance(title, str) else str(title),
        event_time=_take_time(fields, "date", "created"),
        keywords=_first([*tags, *inline]),
        entities=_first([*aliases, *_declared_names(fields), *_links(prose)]),
        metadata=fields,
    )


def _fields(block: str) -> dict[str, Any] | None:
    """Parses the fields to JSON values; None if it is not front matter."""
    import yaml  # type: ignore[import-untyped]  # PyYAML has no types

    try:
        loaded = yaml.safe_load(block)
        if not isinstance(loaded, dict):
            return {} if loaded is None else None
        fields: dict[str, Any] = _to_json(loaded, iter(range(_MAX_VALUES)))
        return fields if len(json.dumps(fields)) <= _MAX_JSON else None
    except Exception:  # noqa: BLE001  # any failure: the block stays text
        return None


def _to_json(value: object, budget: Iterator[int], level: int = 0) -> Any:  # noqa: ANN401  # any JSON value
    """Converts a value to JSON types."""
    if next(budget, None) is None or level > _MAX_LEVELS:
        raise ValueError("more than metadata may have")
    match value:
        case dict():
            return {str(key): _to_json(each, budget, level + 1) for key, each in value.items()}
        case list() | tuple() | set():
            return [_to_json(each, budget, level + 1) for each in value]
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _take(fields: dict[str, Any], *names: str) -> list[Any]:
    """Removes and returns the values under these names, in any case; lists are flattened."""
    taken: list[Any] = []
    for name in names:
        for key in [key for key in fields if key.strip().lower() == name]:
            value = fields.pop(key)
            taken += value if isinstance(value, list) else [] if value is None else [value]
    return taken


def _take_time(fields: dict[str, Any], *names: str) -> float | None:
    """Removes and returns the first of these names that is a date; others stay."""
    for name in names:
        for key in [key for key in fields if key.strip().lower() == name]:
            try:
                moment = seconds_of(str(fields[key]).strip())
            except (ValueError, OverflowError):
                continue
            del fields[key]
            return moment
    return None


def _names(values: Iterable[object]) -> Iterator[str]:
    """Yields the names in a field: list items, or parts of a text with commas."""
    for value in values:
        match value:
            case str():
                yield from value.replace("[[", "").replace("]]", "").split(",")
            case bool() | dict() | None:
                continue
            case list():
                yield from _names(value)
            case _:
                yield str(value)


def _declared_names(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names under `people` and `entities`: list items, or a text split at commas."""
    for key, value in fields.items():
        if key.strip().lower() not in _NAMING:
            continue
        for item in value if isinstance(value, list) else str(value or "").split(","):
            if isinstance(item, str):
                yield item.strip().removeprefix("[[").removesuffix("]]").partition("|")[0]


def _links(prose: str) -> Iterator[str]:
    for link in _WIKILINK.finditer(prose):
        name = link["target"].rpartition("/")[2].strip()
        if not _ATTACHMENT.search(name):
            yield name.removesuffix(".md")


def _first(names: Iterable[str]) -> tuple[str, ...]:
    spellings: dict[str, str] = {}
    for name in names:
        bare = " ".join(name.split())
        if 0 < len(bare) <= _MAX_NAME:
            spellings.setdefault(bare.casefold(), bare)
    return tuple(islice(spellings.values(), MOST_NAMES))
