"""Reads a Python file's environment requirements from a comment at its head (PEP 723).

The format, its terms and the precedence of closing lines are those of
https://packaging.python.org/en/latest/specifications/inline-script-metadata/.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from tools.conversion.arguments.descriptions import show
from tools.conversion.arguments.validation_errors import nearest

_OPENING = re.compile(r"# /// ([a-zA-Z0-9-]+)")
_CLOSING = "# ///"
_FIELDS = ("dependencies", "requires-python", "tool")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
"""Matches the end of tomllib's messages."""


class ScriptMetadataError(ValueError):
    """The metadata cannot be used."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line  # the line in the file, counted from 1


@dataclass(frozen=True, slots=True)
class ScriptMetadata:
    """The requirements of a file; empty if it has none."""

    # Requirements (PEP 508) in the normal form of `packaging`, as listed.
    dependencies: tuple[str, ...] = ()
    requires_python: str = ""  # Python versions (PEP 440 specifiers) in that form, or "" for any


def read_script_metadata(source: str) -> ScriptMetadata:
    """Reads the `script` block of a file; unclosed blocks and other types are ignored.

    `[tool.uv]` is rejected, because installing from other sources than it names would be worse than
    not installing. The tables of other tools are ignored.
    """
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks = [block for block in _blocks(lines) if block.type == "script"]
    if len(blocks) > 1:
        raise ScriptMetadataError(
            f"A second '# /// script' block; the first is at line {blocks[0].start}. "
            "Join them into one.",
            line=blocks[1].start,
        )
    return blocks[0].metadata() if blocks else ScriptMetadata()


@dataclass(frozen=True, slots=True)
class _Block:
    """One block: its type, its opening line (from 1), and its TOML lines."""

    type: str
    start: int
    content: Sequence[str]

    def metadata(self) -> ScriptMetadata:
        document = self._document()
        self._check_keys(document)
        return ScriptMetadata(
            tuple(self._requirement(text) for text in self._dependencies(document)),
            self._requires_python(document),
        )

    def _document(self) -> dict[str, Any]:
        try:
            return tomllib.loads("\n".join(self.content))
        except (ValueError, RecursionError) as error:  # also an infinite number or deep nesting
            message, line = str(error), 0
            if place := _TOML_PLACE.search(message):
                message, line = message[: place.start()], int(place[1] or len(self.content))
            raise ScriptMetadataError(
                f"The '# /// script' block is not valid TOML: {message}.", line=self.start + line
            ) from error

    def _check_keys(self, document: dict[str, Any]) -> None:
        for key in document:
            if key not in _FIELDS and (meant := nearest(key, _FIELDS)):
                raise self._error(f"{key!r} is not a field; did you mean {meant!r}?", key)
        match document.get("tool"):
            case {"uv": settings}:
                named = ", ".join(settings) if isinstance(settings, dict) else show(settings)
                raise self._error(
                    f"[tool.uv] is not honoured here ({named}): name versions and addresses in "
                    "'dependencies' ('name @ https://…'), or set an index for all files with "
                    "uv's own settings (UV_INDEX, uv.toml), and remove the table.",
                    "tool.uv",
                )

    def _dependencies(self, document: dict[str, Any]) -> list[str]:
        match document.get("dependencies", []):
            case [*texts] if all(isinstance(text, str) for text in texts):
                return texts
            case other:
                raise self._error(
                    f"'dependencies' must be a list of strings, such as ['numpy>=2'], not "
                    f"{show(other)}.",
                    "dependencies",
                )

    def _requirement(self, text: str) -> str:
        try:
            return str(Requirement(text))
        except InvalidRequirement as error:
            raise self._error(
                f"The dependency {text!r} is not a requirement such as 'numpy>=2' or "
                f"'name @ https://…' (PEP 508): {str(error).splitlines()[0]}.",
                text,
            ) from error

    def _requires_python(self, document: dict[str, Any]) -> str:
        match document.get("requires-python", ""):
            case str(text):
                with suppress(InvalidSpecifier):
                    return str(SpecifierSet(text))
        raise self._error(
            "'requires-python' must be version specifiers such as '>=3.11,<4', not "
            f"{show(document['requires-python'])}.",
            "requires-python",
        )

    def _error(self, message: str, text: str) -> ScriptMetadataError:
        """Returns an error at the first line with the text, else at the block's opening."""
        found = (number for number, line in enumerate(self.content, 1) if text and text in line)
        return ScriptMetadataError(message, line=self.start + next(found, 0))


def _blocks(lines: Sequence[str]) -> list[_Block]:
    """Returns every closed block; the last closing line of a run of comments counts."""
    blocks = []
    start = 0
    while start < len(lines):
        if not (opening := _OPENING.fullmatch(lines[start])):
            start += 1
            continue
        end = start + 1
        while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
            end += 1
        closings = [at for at in range(start + 2, end) if lines[at] == _CLOSING]
        if closings:
            content = [line[2:] for line in lines[start + 1 : closings[-1]]]
            blocks.append(_Block(opening[1], start + 1, content))
        start = closings[-1] + 1 if closings else end
    return blocks
