"""The parsed tree of a shell's line: which commands stand anywhere in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from tools.policy.shell.plain_line import PlainLine
from tools.policy.shell.words import OPERATORS, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["commands_in", "parsed", "plain_line_of", "scripts_in"]

DEEPEST = 60
"""Levels of a tree that are looked at."""

LITERAL = {
    "word",
    "number",
    "variable_name",
    "file_descriptor",
    "test_operator",
    "special_variable_name",
}
NAMED_COMMANDS = {"command", "declaration_command", "unset_command"}
JOINING = {"program", "list", "pipeline", "redirected_statement"}
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
GLOB = re.compile(r"[*?\[]")


class TooDeepError(ValueError):
    """A tree with more levels than are looked at."""


@cache
def _parser() -> Parser:
    from tree_sitter import Language, Parser
    from tree_sitter_bash import language

    return Parser(Language(language()))


def parsed(line: str) -> Node:
    """The root of the tree.

    Raises:
        UnicodeEncodeError: If the line is no Unicode text.
    """
    return _parser().parse(line.encode()).root_node


def plain_line_of(root: Node) -> PlainLine | None:
    """The commands and what joins them, where the tree has nothing but these."""
    commands: list[tuple[Word, ...]] = []
    operators: list[str] = []
    pending = ""
    for node in _leaves(root, 0):
        if node is None:
            return None
        if node.type in OPERATORS or node.type == "\n":
            pending = ";" if node.type == "\n" else node.type
            continue
        if commands:
            operators.append(pending or ";")
        pending = ""
        commands.append(tuple(_words(node)))
    return PlainLine(tuple(commands), tuple(operators)) if pending in {"", ";"} else None


def commands_in(root: Node) -> Iterator[tuple[Word, ...]]:
    """The words of every command anywhere in the tree.

    Raises:
        TooDeepError: If it is nested too deeply to be looked at.
    """
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > DEEPEST:
            raise TooDeepError("it is nested too deeply")
        if node.type in NAMED_COMMANDS and (words := tuple(_words(node))):
            yield words
        if node.type == "test_command":
            yield (Word("["), Word(None))
        stack.extend((child, depth + 1) for child in reversed(node.children))


def scripts_in(root: Node) -> Iterator[str]:
    """Here-documents and here-strings, which are lines of a shell where a shell reads them."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "heredoc_body":
            yield _text(node)
        elif node.type == "herestring_redirect":
            yield from (word.text or "" for word in map(_word, node.named_children))
        stack.extend(reversed(node.children))


def _leaves(node: Node, depth: int) -> Iterator[Node | None]:
    """Commands and operators in their order; None for whatever is neither."""
    if depth > DEEPEST:
        yield None
    elif node.type == "command" or node.type in OPERATORS or node.type == "\n":
        yield node
    elif node.type in JOINING:
        for child in node.children:
            yield from _leaves(child, depth + 1)
    elif node.type not in {"comment", "file_redirect"}:
        yield None


def _words(node: Node) -> Iterator[Word]:
    """The words of a command; assignments before its name are none of them."""
    for place, child in enumerate(node.children):
        if child.type == "command_name":
            yield from map(_word, child.children)
        elif node.type != "command" and place == 0:
            yield Word(_text(child))
        elif child.type == "variable_assignment":
            if node.type != "command":
                yield Word(None)
        elif "redirect" not in child.type:
            yield _word(child)


def _word(node: Node) -> Word:
    text, bare = _decoded(node, 0)
    if text is None or ("{" in bare and ("," in bare or ".." in bare)):
        return Word(None)
    return Word(text, GLOB.search(bare) is not None and bare != "[")


def _decoded(node: Node, depth: int) -> tuple[str | None, str]:
    """What a word stands for, and what of it is not quoted; None where it is expanded."""
    text = _text(node)
    decoded: tuple[str | None, str] = None, "\0"
    if depth > DEEPEST or node.is_missing:
        return decoded
    if node.type in LITERAL:
        plain = text.replace("\\\n", "")
        decoded = ESCAPE.sub(r"\1", plain), ESCAPE.sub("\0", plain)
    elif node.type == "raw_string":
        decoded = text[1:-1], "\0"
    elif node.type == "ansi_c_string" and "\\" not in text:
        decoded = text[2:-1], "\0"
    elif node.type in {"string", "translated_string"}:
        if all(child.type in {'"', "string_content", "$"} for child in node.children):
            inside = text.removeprefix("$")[1:-1].replace("\\\n", "")
            decoded = re.sub(r'\\([$`"\\])', r"\1", inside), "\0"
    elif node.type == "concatenation":
        parts = [_decoded(child, depth + 1) for child in node.children]
        if all(part is not None for part, _ in parts):
            decoded = "".join(part or "" for part, _ in parts), "".join(bare for _, bare in parts)
    return decoded


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
