"""Edits YAML, keeping every other character."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import yaml  # type: ignore[import-untyped]  # PyYAML has no types
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode  # type: ignore[import-untyped]  # PyYAML has no types

from server.clients.json_text import Path, nested

_UNIT = "  "


class YamlError(ValueError):
    """A text that is not one YAML document."""


class YamlText:
    """A YAML text with positions; each edit returns a new text.

    Raises YamlError if it is not one YAML document. An edit may return a text that does not mean
    what was asked: the caller parses it and compares.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.values: Any = yaml.safe_load(text)
            self._root = yaml.compose(text, yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f" at line {mark.line + 1}" if mark else ""
            raise YamlError(f"{getattr(error, 'problem', None) or error}{place}") from error
        self._newline = "\r\n" if "\r\n" in text else "\n"
        if self.values is None:
            self.values = {}

    def put(self, keys: Path, value: object) -> str:
        """Sets the value at a path; creates the mappings that are missing on the way."""
        if self._root is None or _is_empty(self._root):
            ended = not self.text or self.text.endswith("\n")
            return self.text + ("" if ended else self._newline) + self._block(keys, value, "")
        node, name = self._root, self._root
        for depth, key in enumerate(keys):
            child = _child(node, key)
            if child is None:
                return self._insert(node, keys[depth:], value)
            name, node = child
            if _is_empty(node) and depth + 1 < len(keys):
                return self._fill(child[0], node, keys[depth + 1 :], value)
        shown = json.dumps(value, ensure_ascii=False)
        start = node.start_mark.index
        if node.start_mark.line > name.end_mark.line:  # a block would end where the key begins
            start = self.text.index(":", name.end_mark.index) + 1
            shown = f" {shown}"
        return self.text[:start] + shown + self.text[self._end(node) :]

    def add(self, keys: Path, item: object) -> str:
        """Refuses: no client's YAML has a list that we write to."""
        raise ValueError(f"its list {'.'.join(map(str, keys))} cannot be changed, with {item!r}")

    def remove(self, keys: Path) -> str:
        """Removes the member at a path, with its lines."""
        node = self._root
        for key in keys[:-1]:
            found = _child(node, key)
            node = found[1] if found else None
        child = _child(node, keys[-1])
        if child is None or node is None or node.flow_style:
            raise ValueError(f"its {'.'.join(map(str, keys))} is not written on lines of its own")
        start = self.text.rfind("\n", 0, child[0].start_mark.index) + 1
        end = self.text.find("\n", self._end(child[1]))
        return self.text[:start] + ("" if end < 0 else self.text[end + 1 :])

    def _insert(self, node: Node, keys: Path, value: object) -> str:
        if not isinstance(node, MappingNode):
            raise ValueError(f"what should hold {keys[0]!r} is not a mapping")  # noqa: TRY004  # of the file, not of an argument
        last_key, last = node.value[-1]
        if node.flow_style:
            member = json.dumps(nested(keys, value), ensure_ascii=False)[1:-1]
            at = self._end(last)
            return f"{self.text[:at]}, {member}{self.text[at:]}"
        indent = " " * last_key.start_mark.column
        end = self.text.find("\n", self._end(last))
        if end < 0:
            return self.text + self._newline + self._block(keys, value, indent)
        return self.text[: end + 1] + self._block(keys, value, indent) + self.text[end + 1 :]

    def _fill(self, key: Node, node: Node, keys: Path, value: object) -> str:
        """Writes a block into a mapping that is `{}` or empty."""
        indent = " " * key.start_mark.column + _UNIT
        colon = self.text.index(":", key.end_mark.index) + 1
        is_written = node.end_mark.index > node.start_mark.index
        head, tail = self.text[:colon], self.text[node.end_mark.index if is_written else colon :]
        rest, newline, below = tail.partition("\n")
        return f"{head}{rest}{newline or self._newline}{self._block(keys, value, indent)}{below}"

    def _block(self, keys: Path, value: object, indent: str) -> str:
        shown = yaml.safe_dump(nested(keys, value), sort_keys=False, allow_unicode=True, width=inf)
        return "".join(f"{indent}{line}{self._newline}" for line in shown.splitlines())

    def _end(self, node: Node) -> int:
        """Returns the end of a node's last character; a block's own mark is at the next token."""
        if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        end: int = node.end_mark.index
        if isinstance(node, ScalarNode) and node.style in {"|", ">"}:
            end = len(self.text[:end].rstrip())
        return end


def _child(node: Node | None, key: str | int) -> tuple[Node, Node] | None:
    if isinstance(node, MappingNode):
        found = [(name, each) for name, each in node.value if name.value == key]
        if len(found) > 1:
            raise ValueError(f"it contains {key!r} twice")
        return found[0] if found else None
    return None


def _is_empty(node: Node) -> bool:
    is_null = isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"
    return is_null or (isinstance(node, MappingNode) and not node.value)
