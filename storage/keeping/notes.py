"""Writes exported records as Markdown files: front matter with the fields, then the text.

The front matter has JSON values, which are valid YAML (https://yaml.org/spec/1.2.2/).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MAX_NAME_BYTES = 100
"""The bytes of a title in a file name; file systems allow 255 bytes in total."""

ID_LETTERS = 12
"""The letters of an id in a file name; the whole id if that is not unique."""

_UNSAFE = re.compile(r"[^\w -]+")
_BLANKS = re.compile(r"[\s-]+")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TIMES = {"create_time", "update_time", "event_time"}
_BODY = {"record", "text", "turns", "passages", "made_from"}


def write_note(folder: Path, record: Mapping[str, Any]) -> Path:
    """Writes a profile, an entity or a context to its own file."""
    kind, title = _kind_and_title(record)
    into = folder / kind
    into.mkdir(mode=0o700, exist_ok=True)
    text = f"---\n{_front_matter(record)}---\n\n{_body(record, title)}\n"
    name, whole_id = _safe(title), str(record.get("id", ""))
    for ending in (whole_id[:ID_LETTERS], whole_id):
        path = into / ("-".join(filter(None, (name, ending))) + ".md")
        with suppress(FileExistsError), path.open("x", encoding="utf-8", newline="\n") as file:
            path.chmod(0o600)
            file.write(text)
            return path
    raise FileExistsError(str(path))


def _kind_and_title(record: Mapping[str, Any]) -> tuple[str, str]:
    match record["record"]:
        case "profile":
            owner = (record["user_id"], record["device_id"], record["agent_id"])
            return "profiles", " ".join(filter(None, owner))
        case "entity":
            return "entities", record["name"]
        case _:
            return str(record["context_type"]), record["title"]


def _safe(title: str) -> str:
    """Converts a title to a portable file name: letters of any script, digits, hyphens."""
    plain = _UNSAFE.sub("-", unicodedata.normalize("NFC", title))
    short = _BLANKS.sub("-", plain).encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    return short.strip("-_") or "untitled"


def _front_matter(record: Mapping[str, Any]) -> str:
    lines = []
    for key, value in record.items():
        if key in _BODY or value in ("", [], {}, None):
            continue
        shown = _moment(value) if key in _TIMES else value
        lines.append(f"{'date' if key == 'event_time' else key}: {_yaml(shown)}\n")
    return "".join(lines)


def _moment(seconds: float) -> str | float:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return seconds  # before the year 1 or after 9999


def _yaml(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _body(record: Mapping[str, Any], title: str) -> str:
    if "turns" in record:
        return "\n\n".join(
            part
            for turn in record["turns"]
            for part in (turn["heading"] and f"## {turn['heading']}", turn["content"])
            if part
        )
    if record["record"] == "context":
        return str(record["text"])
    return f"# {title}\n\n{record['summary']}".rstrip()
