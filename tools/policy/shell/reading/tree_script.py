"""Converts a syntax tree to the form in which the two parsers are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.policy.shell.reading.script import (
    Item,
    Loop,
    NotPlainError,
    Redirect,
    Simple,
    Template,
    normal_script,
)
from tools.policy.shell.reading.tree import DEEPEST, body_of, template_of, text_of
from tools.policy.shell.words import OPERATORS

if TYPE_CHECKING:
    from tree_sitter import Node

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
            "test_command": self._test,
            "for_statement": self._loop,
            "file_redirect": self._redirect,
            "herestring_redirect": self._redirect,
            "heredoc_redirect": self._document,
            "comment": lambda _node, _depth: None,
            **dict.fromkeys(JOINING, self._children),
            **dict.fromkeys(GRAMMAR, self._word),
        }

    def into(self, node: Node, depth: int) -> None:
        """Processes a node and its children."""
        take = self._take.get(node.type)
        if take is None or depth > DEEPEST or node.is_missing:
            raise NotPlainError(f"it has a part that is not looked into ({node.type})")
        take(node, depth)

    def _children(self, node: Node, depth: int) -> None:
        end = node.start_byte
        for child in node.children:
            if _between(node, end, child.start_byte) == b"-":  # the parser drops it before <<
                self._add(words=(Template(("-",)),))
            self.into(child, depth + 1)
            end = child.end_byte

    def _word(self, node: Node, _depth: int) -> None:
        self.items.append(node.type)

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

    def _test(self, node: Node, _depth: int) -> None:
        self.items.append(Simple(tuple(_words_of_test(node))))

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
        if operator.type in {"<>", "<&", "<&-", ">&-"}:
            raise NotPlainError("it redirects in an unusual way")
        if operator.type == ">&" and text_of(target) not in {"1", "2"}:
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
                (*last.words, *words),
                (*last.assigned, *assigned),
                (*last.redirects, *redirects),
            )
        elif words or assigned:
            raise NotPlainError("it can be read in more than one way")
        else:
            self.items += redirects


def _between(node: Node, start: int, end: int) -> bytes:
    return (node.text or b"")[start - node.start_byte : end - node.start_byte].strip()


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
