"""Files that rows name: images, sounds and videos, which were copied in for one run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .agreed import MADE, media_folder
from .reading import Columns

_KEYS = {"image_key": "images", "audio_key": "audios", "video_key": "videos"}
"""Keys of a configuration that say where rows name files, with their defaults."""

_HASH = re.compile(r"__dj_hash_#.*?#")
"""Matches what Data-Juicer adds to the name of each new file, different in each run."""


def files_in(columns: Columns, config: dict[str, Any]) -> list[str]:
    """Returns the files that rows name, each once."""
    keys = _keys(config)
    values = (columns[key] for key in columns if key in keys)
    return list(dict.fromkeys(name for each in values for name in _texts(each) if name))


class Media:
    """The files of one run, and what operators make of them.

    `files` has for each name that rows have where the file is, and how the result names it.
    """

    def __init__(self, files: dict[str, tuple[str, str]], directory: Path, export: Path) -> None:
        self._placed = {name: placed for name, (placed, _) in files.items()}
        self._names = dict(files.values())
        self._inside = f"{directory}{os.sep}"
        self._made = directory / MADE
        self._folder = Path(media_folder(str(export)))

    def place(self, columns: Columns, config: dict[str, Any]) -> Columns:
        """Returns rows that name the files as this process sees them."""
        keys = _keys(config) if self._placed else set()
        return {
            name: _change(values, lambda text: self._placed.get(text, text))
            if name in keys
            else values
            for name, values in columns.items()
        }

    def restore(self, columns: Columns) -> Columns:
        """Returns rows that name the files as the result does, and puts new ones next to it."""
        return _change(columns, self._name) if self._placed else columns

    def _name(self, text: str) -> str:
        if not text.startswith(self._inside):
            return text
        if text not in self._names:
            self._names[text] = self._deliver(Path(text))
        return self._names[text]

    def _deliver(self, made: Path) -> str:
        """Moves a file or a folder that an operator made next to the result."""
        is_there = made.is_relative_to(self._made)  # else near its source, in the operator's folder
        inner = made.relative_to(self._made) if is_there else Path(made.parent.name, made.name)
        plain = self._folder / _HASH.sub("", str(inner))
        target, count = plain, 1
        while target.exists():
            count += 1
            target = plain.with_name(f"{plain.stem}-{count}{plain.suffix}")
        target.parent.mkdir(parents=True, exist_ok=True)
        made.rename(target)
        return str(target.relative_to(self._folder.parent))


def _keys(config: dict[str, Any]) -> set[str]:
    return {str(config.get(key) or default) for key, default in _KEYS.items()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _change(value: Any, change: Callable[[str], str]) -> Any:
    """Returns a value with each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_change(each, change) for each in value]
    if isinstance(value, dict):
        return {name: _change(each, change) for name, each in value.items()}
    return value
