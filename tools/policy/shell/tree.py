"""The syntax tree of a command line: finds every command in it, and converts it to a script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from tools.policy.shell.script import (
    Document,
    Item,
    Loop,
    NotPlainError,
    Piece,
    Redirect,
    Simple,
    Template,
    Variable,
    is_literal_body,
    normal_script,
)
from tools.policy.shell.words import OPERATORS, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


DEEPEST = 60  # limit on the depth of a tree

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
        parts = [_decode(child, depth + 1) for child in node.children]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            pieces = [piece for found, _ in known for piece in found]
            decoded = pieces, "".join(bare for _, bare in known)
    return None if decoded[0] is None else (decoded[0], decoded[1])


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


JOINING = {
    *("program", "list", "pipeline", "redirected_statement", "if_statement", "elif_clause"),
    *("else_clause", "while_statement", "do_group", "subshell", "compound_statement"),
    "negated_command",
}
GRAMMAR = {
    *("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "(", ")", "!"),
    *OPERATORS,
    "\n",
}
MARKS = {"<<", "heredoc_start", "heredoc_body", "heredoc_end"}
TESTS = {"unary_expression", "binary_expression", "parenthesized_expression"}


def script_of(root: Node) -> tuple[Item, ...]:
    """Converts a tree to items; a NotPlainError if it contains anything else."""
    walk = _Walk()
    walk.into(root, 0)
    return normal_script(walk.items)


class _Walk:
    """A walk through a tree, in the order of the line."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._take: dict[str, Callable[[Node, int], None]] = {
            "command": self._command,
            "declaration_command": self._export,
            "test_command": lambda node, _depth: self.items.append(
                Simple(tuple(_words_of_test(node)))
            ),
            "for_statement": self._loop,
            "file_redirect": self._redirect,
            "herestring_redirect": self._redirect,
            "heredoc_redirect": self._document,
            "comment": lambda _node, _depth: None,
            **dict.fromkeys(JOINING, self._children),
            **dict.fromkeys(GRAMMAR, lambda node, _depth: self.items.append(node.type)),
        }

    def into(self, node: Node, depth: int) -> None:
        """Processes a node and its children."""
        take = self._take.get(node.type)
        if take is None or depth > DEEPEST or node.is_missing:
            raise NotPlainError(f"it has a part that is not looked into ({node.type})")
        take(node, depth)

    def _children(self, node: Node, depth: int) -> None:
        text, start, end = node.text or b"", node.start_byte, node.start_byte
        for child in node.children:
            # The parser drops a dash before <<.
            if text[end - start : child.start_byte - start].strip() == b"-":
                self._add(words=(Template(("-",)),))
            self.into(child, depth + 1)
            end = child.end_byte

    def _command(self, node: Node, depth: int) -> None:
        """Processes a command, with its assignments and redirections."""
        self.items.append(Simple(()))
        for child in node.children:
            if child.type == "variable_assignment":
                self._add(assigned=(_assignment(child),))
            elif child.type == "command_name":
                self._add(words=tuple(map(_template, child.children)))
            elif child.type in {"file_redirect", "herestring_redirect"}:
                self._redirect(child, depth)
            else:
                self._add(words=(_template(child),))

    def _export(self, node: Node, _depth: int) -> None:
        first, *rest = node.children
        if first.type != "export":
            raise NotPlainError(f"{text_of(first)} sets variables")
        words = [Template(("export",))]
        for child in rest:
            if child.type == "variable_assignment":
                name, value = _assignment(child)
                words.append(Template.of([f"{name}=", *value.pieces], ""))
            else:
                words.append(_template(child))
        self.items.append(Simple(tuple(words)))

    def _loop(self, node: Node, depth: int) -> None:
        keyword, name, _in, *rest = node.children
        if keyword.type != "for" or _in.type != "in":
            raise NotPlainError("the head of a loop is not 'for x in a b'")
        group = rest.pop()
        values = tuple(_template(each) for each in rest if each.type not in {";", "\n"})
        self.items.append(Loop(text_of(name), values))
        self.into(group, depth + 1)

    def _redirect(self, node: Node, _depth: int) -> None:
        """Processes a redirection; the tree attaches words that follow it."""
        signs = [each for each in node.children if each.type != "file_descriptor"]
        operator, target, *words = signs
        joins = operator.type == ">&" and text_of(target) in {"1", "2"}
        if operator.type in {"<>", "<&", "<&-", ">&-"} or (operator.type == ">&" and not joins):
            raise NotPlainError("it redirects in an unusual way")
        self._add(redirect=Redirect(operator.type, _template(target)))
        if words:
            self._add(words=tuple(map(_template, words)))

    def _document(self, node: Node, depth: int) -> None:
        """Processes a here-document; the tree includes the rest of its first line."""
        body = body_of(node)
        if body is None:
            raise NotPlainError("a here-document expands something")
        self._add(redirect=Redirect("<<", Template.of([body], "")))
        for child in node.children:
            if child.type in self._take:
                self.into(child, depth + 1)
            elif child.type not in MARKS:
                self._add(words=(_template(child),))

    def _add(
        self,
        words: tuple[Template, ...] = (),
        assigned: tuple[tuple[str, Template], ...] = (),
        redirect: Redirect | None = None,
    ) -> None:
        """Adds to the last command, or to the compound command that just ended."""
        last = self.items[-1] if self.items else None
        redirects = () if redirect is None else (redirect,)
        if isinstance(last, Simple):
            self.items[-1] = Simple(
                (*last.words, *words), (*last.assigned, *assigned), (*last.redirects, *redirects)
            )
        elif words or assigned:
            raise NotPlainError("it can be read in more than one way")
        else:
            self.items += redirects


def _template(node: Node) -> Template:
    template = template_of(node)
    if template is None:
        raise NotPlainError("it expands something")
    return template


def _assignment(node: Node) -> tuple[str, Template]:
    name, sign, *rest = node.children
    if name.type != "variable_name" or sign.type != "=" or len(rest) > 1:
        raise NotPlainError("it sets a variable in an unusual way")
    value = _template(rest[0]) if rest else Template(())
    if value.literal is None:
        raise NotPlainError("it sets a variable to what another is")
    return text_of(name), Template.of([value.literal], "")


def _words_of_test(node: Node) -> list[Template]:
    found: list[Template] = []
    for child in node.children:
        if child.type in TESTS:
            found += _words_of_test(child)
        elif child.is_named:
            found.append(_template(child))
        else:
            found.append(Template((text_of(child),)))
    return found
