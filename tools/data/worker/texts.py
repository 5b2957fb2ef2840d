"""The texts of a row: one field, several that go together, or the messages of a chat.

The server reads them too: it needs no package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

JOIN = "+"
"""Between the names of fields whose texts go together, as in `question+answer`."""

_INNER = ("content", "value", "text")  # keys under which a message of a chat has its text
_ASKS = ("instruction", "question", "prompt", "query", "input")
_ANSWERS = ("output", "answer", "response", "completion", "chosen", "rejected")


def text_keys_of(config: Mapping[str, Any]) -> list[str]:
    """Returns the text keys of a configuration."""
    keys = config.get("text_keys") or ["text"]
    return [keys] if isinstance(keys, str) else list(keys)


def fields_of(key: str, known: Sequence[str] | Mapping[str, Any]) -> list[str] | None:
    """Returns the fields that a text key names; None where rows have no such fields."""
    if key in known:
        return [key]
    names = [name.strip() for name in key.split(JOIN)]
    return names if len(names) > 1 and all(name in known for name in names) else None


def values_of(row: Mapping[str, Any], key: str) -> list[Any]:
    """Returns the values of a row that a text key names; those that it has."""
    names = [key] if key in row else [name.strip() for name in key.split(JOIN)]
    return [row[name] for name in names if name in row]


def texts_in(value: object) -> Iterator[str]:
    """Yields the texts of a value: itself, or those of the messages in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, dict):
        for name in _INNER:
            if name in value:
                yield from texts_in(value[name])


def with_texts(value: Any, texts: Iterator[str]) -> Any:
    """Returns a value with its texts replaced by others, in their order."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, list):
        return [with_texts(each, texts) for each in value]
    if isinstance(value, dict):
        made = {name: with_texts(value[name], texts) for name in _INNER if name in value}
        return {**value, **made}
    return value


def joined(values: Sequence[Any]) -> str:
    """Returns all texts of some values as one; a number or truth value as it is written."""
    plain = (str(value) if isinstance(value, int | float) else value for value in values)
    return "\n".join(text for value in plain for text in texts_in(value))


def text_key_of(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the text key that fits some rows; None where they have no texts.

    Questions with their answers go together; else it is the field with the longest texts.
    """
    lengths: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            is_chat = isinstance(value, list) and isinstance(next(iter(value), None), dict)
            if isinstance(value, str) or is_chat:
                lengths[name] = lengths.get(name, 0) + sum(map(len, texts_in(value)))
    has_text = [name for name, size in lengths.items() if size]
    asks = [name for name in has_text if name.lower() in _ASKS]
    answers = [name for name in has_text if name.lower() in _ANSWERS]
    longest = max(has_text, key=lengths.__getitem__, default=None)
    if asks and answers and longest in {*asks, *answers}:
        return JOIN.join(name for name in has_text if name in asks or name in answers)
    return longest
