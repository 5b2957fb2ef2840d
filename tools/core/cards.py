"""Tools in few words: what a model needs to choose one, and to call it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tools.core.conversion.schema import resolve
from tools.core.spec import ToolOffer, ToolSpec

__all__ = ["groups", "parameters", "signature", "summary"]

MOST_TAGS = 6
"""Tags of one group that are named."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def signature(spec: ToolSpec) -> str:
    """The tool's name and its parameters; "?" follows what may be left out."""
    required = spec.input_schema.get("required", ())
    names = (
        name if name in required else f"{name}?" for name in spec.input_schema.get("properties", {})
    )
    return f"{spec.name}({', '.join(names)})"


def summary(description: str) -> str:
    """The first sentence of a description."""
    return " ".join(_SENTENCE_END.split(description, maxsplit=1)[0].split())


def parameters(spec: ToolSpec) -> str:
    """The tool's name and its parameters with their types."""
    schema = spec.input_schema
    required = schema.get("required", ())
    typed = (
        f"{name}{'' if name in required else '?'}: {_type({**resolve(each, schema), **each})}"
        for name, each in schema.get("properties", {}).items()
    )
    return f"{spec.name}({', '.join(typed)})"


def groups(specs: Sequence[ToolOffer]) -> str:
    """How many tools there are of each group, such as "context 18 (documents 4, events 4)"."""
    tagged: dict[str, list[ToolOffer]] = {}
    for spec in specs:
        group = spec.tags[0] if spec.tags else spec.source.partition(":")[0]
        tagged.setdefault(group, []).append(spec)
    told = []
    for group in sorted(tagged, key=lambda name: (-len(tagged[name]), name)):
        tags = Counter(tag for spec in tagged[group] for tag in spec.tags[1:]).most_common()
        named = ", ".join(f"{tag} {count}" for tag, count in sorted(tags[:MOST_TAGS]))
        told.append(f"{group} {len(tagged[group])}" + (f" ({named})" if named else ""))
    return ", ".join(told)


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return "|".join(dict.fromkeys(map(_type, schema["anyOf"])))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_type(schema.get('items', {}))}]"
    if kind == "object" and schema.get("properties"):
        return "{" + ", ".join(f"{name}?" for name in schema["properties"]) + "}"
    return "|".join(kind) if isinstance(kind, list) else str(kind)
