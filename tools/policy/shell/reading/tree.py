"""The syntax tree of a command line: finds every command in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from tools.policy.shell.reading.script import (
    Document,
    Piece,
    Template,
    Variable,
    is_literal_body,
)
from tools.policy.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEEPEST = 60
"""Limit on the depth of a tree."""

LITERAL = {
    "word",
    "number",
    "variable_name",
    "file_descriptor",
    "test_operator",
    "special_variable_name",
}
NAMED_COMMANDS = {"command", "declaration_command", "unset_command"}
ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class TooDeepError(ValueError):
    """A tree that is nested too deeply."""


@cache
def _parser() -> Parser:
    from tree_sitter import Language, Parser
    from tree_sitter_bash import language

    return Parser(Language(language()))


def parsed(line: str) -> Node:
    """Parses a line and returns the root of its tree; an unpaired surrogate is a ValueError."""
    return _parser().parse(line.encode()).root_node


def commands_in(root: Node) -> Iterator[tuple[Word, ...]]:
    """Yields the words of every command in the tree; a TooDeepError if it is nested too deeply."""
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
    """Yields here-documents and here-strings, which a shell may read as commands."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "heredoc_body":
            yield text_of(node)
        elif node.type == "herestring_redirect":
            yield from (word.text or "" for word in map(_word, node.named_children))
        stack.extend(reversed(node.children))


def values_in(root: Node) -> Iterator[tuple[str, str, bool]]:
    """Yields the variables that a line sets, each with a text and whether that is a literal.

    Yields the whole value, then each literal within it.
    """
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in {"variable_assignment", "for_statement"}:
            field = "name" if node.type == "variable_assignment" else "variable"
            name = text_of(target) if (target := node.child_by_field_name(field)) else ""
            for value in node.children_by_field_name("value"):
                yield name, text_of(value), False
                yield from ((name, text, True) for text in _literals(value))
        stack.extend(reversed(node.children))


def _literals(value: Node) -> Iterator[str]:
    stack = [value]
    while stack:
        node = stack.pop()
        is_sign = node.type == "$" and node.parent and node.parent.type in {"string", "array"}
        if node.type in {"raw_string", "ansi_c_string", "word", "string_content"} or is_sign:
            yield text_of(node)
        elif node.type not in {"command_substitution", "process_substitution"}:
            stack.extend(node.children)


def _words(node: Node) -> Iterator[Word]:
    """Yields the words of a command, without the assignments before its name."""
    for place, child in enumerate(node.children):
        if child.type == "command_name":
            yield from map(_word, child.children)
        elif node.type != "command" and place == 0:
            yield Word(text_of(child))
        elif child.type == "variable_assignment":
            if node.type != "command":
                yield Word(None)
        elif "redirect" not in child.type:
            yield _word(child)


def _word(node: Node) -> Word:
    template = template_of(node)
    if template is None or template.literal is None:
        return Word(None)
    return Word(template.literal, template.is_glob)


def template_of(node: Node) -> Template | None:
    """Returns the template of a word; None if it has expansions other than simple variables."""
    decoded = _decode(node, 0)
    if decoded is None:
        return None
    pieces, bare = decoded
    return None if "{" in bare and ("," in bare or ".." in bare) else Template.of(pieces, bare)


def _decode(node: Node, depth: int) -> tuple[list[Piece], str] | None:
    """Returns the parts of a word and its unquoted text; None if it is expanded."""
    decoded: tuple[list[Piece] | None, str] = None, "\0"
    text = text_of(node)
    if depth > DEEPEST or node.is_missing:
        return None
    if node.type in LITERAL:
        plain = text.replace("\\\n", "")
        decoded = [ESCAPE.sub(r"\1", plain)], ESCAPE.sub("\0", plain)
    elif node.type == "raw_string":
        decoded = [text[1:-1]], "\0"
    elif node.type == "ansi_c_string" and "\\" not in text:
        decoded = [text[2:-1]], "\0"
    elif node.type in {"string", "translated_string"}:
        decoded = _within_double(node), "\0"
    elif node.type in {"simple_expansion", "expansion"}:
        variable = _variable(node, is_quoted=False)
        decoded = None if variable is None else [variable], "\0"
    elif node.type == "concatenation":
        decoded = _join([_decode(child, depth + 1) for child in node.children])
    pieces, bare = decoded
    return None if pieces is None else (pieces, bare)


def _join(
    parts: Sequence[tuple[list[Piece], str] | None],
) -> tuple[list[Piece] | None, str]:
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None, "\0"
    return [piece for pieces, _ in known for piece in pieces], "".join(bare for _, bare in known)


def _within_double(node: Node) -> list[Piece] | None:
    """Returns the parts of a text in double quotes: text and expansions."""
    text, start = node.text or b"", node.start_byte
    at = text.index(b'"') + 1
    pieces: list[Piece] = [""]
    for child in node.children:
        if child.type in {'"', "string_content", "$"}:
            continue
        document = _document(child) if child.type == "command_substitution" else None
        piece = _variable(child, is_quoted=True) if document is None else document
        if piece is None:
            return None
        pieces += (_unescape(text[at : child.start_byte - start]), piece)
        at = child.end_byte - start
    return [*pieces, _unescape(text[at:-1])]


def _unescape(text: bytes) -> str:
    inside = text.decode(errors="replace").replace("\\\n", "")
    return re.sub(r'\\([$`"\\])', r"\1", inside)


def _variable(node: Node, *, is_quoted: bool) -> Variable | None:
    """Returns a variable expanded without any operators."""
    match [child.type for child in node.children]:
        case ["$", "variable_name"] | ["${", "variable_name", "}"]:
            return Variable(text_of(node.children[1]), is_quoted)
        case ["$", "special_variable_name"] if text_of(node) == "$?":
            return Variable("?", is_quoted)
    return None


def _document(substitution: Node) -> Document | None:
    """Returns the text of `$(cat <<'EOF' …)`; None for any other substitution."""
    inner = substitution.named_children
    if len(inner) != 1 or inner[0].type != "redirected_statement":
        return None
    parts = inner[0].children
    if len(parts) != 2 or text_of(parts[0]) != "cat":  # noqa: PLR2004  # the command, its document
        return None
    body = body_of(parts[1])
    return None if body is None or len(parts[1].children) > 4 else Document(body.rstrip("\n"))  # noqa: PLR2004  # no more than its marks and its text


def body_of(redirect: Node) -> str | None:
    """Returns the text of a here-document; None if it has expansions."""
    if redirect.type != "heredoc_redirect" or redirect.children[0].type != "<<":
        return None
    start = next(text_of(each) for each in redirect.children if each.type == "heredoc_start")
    bodies = [each for each in redirect.children if each.type == "heredoc_body"]
    body = "".join(map(text_of, bodies))
    is_quoted = start[:1] in {"'", '"', "\\"}
    return body if is_quoted or is_literal_body(body) else None


def text_of(node: Node) -> str:
    """Returns the source text of a node."""
    return (node.text or b"").decode(errors="replace")
