r"""Parses a command line with a small grammar, exactly as bash does.

The grammar covers literal words and loop variables in them, lists, pipelines, loops, conditions,
groups, assignments before a command, redirections, here-documents and comments, and rejects all
other syntax. A line is plain only if this parser and the tree parser (`tree`) agree on it
(POSIX.1-2024, 2.2, 2.3, 2.7, 2.9 and 2.10).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tools.policy.shell.script import (
    CLOSING,
    NAME,
    PIECE,
    Item,
    Loop,
    NotPlainError,
    Piece,
    Redirect,
    Simple,
    Template,
    Variable,
    check_characters,
    document_behind,
    ends_command,
    normal_script,
    reason_at,
    within_double,
)
from tools.policy.shell.words import OPERATORS

MOST_WORDS = 400  # limit on the words of a plain line, over all its commands

FOLLOWS: dict[str, tuple[str, ...]] = {
    "then": ("if", "elif"),
    "elif": ("then",),
    "else": ("then",),
    "fi": ("then", "else"),
    "do": ("while", "until", "for"),
    "done": ("do",),
    "}": ("{",),
    ")": ("(",),
}
"""For each reserved word, the constructs that it closes or continues."""

OPENING = frozenset({"if", "while", "until", "{"})
UNREAD = frozenset({"[[", "]]", "case", "coproc", "esac", "function", "in", "select"})
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
UNREAD_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=", re.DOTALL)
TILDE = re.compile(r"(^|[=:])~")


def read_script(line: str) -> tuple[Item, ...]:
    """Parses a line; a NotPlainError if any part of it is not plain."""
    check_characters(line)
    reader = _Reader(line)
    while reader.position < len(line):
        found = PIECE.match(line, reader.position)
        if found is None:
            raise NotPlainError(reason_at(line[reader.position]))
        reader.position = found.end()
        reader.take(str(found.lastgroup), found[0])
    return reader.finished()


class _Reader:
    """The state of the parser."""

    def __init__(self, line: str) -> None:
        self.position = 0
        self._line = line
        self._items: list[Item] = []
        self._open: list[str] = []
        self._words: list[Template] = []
        self._assigned: list[tuple[str, Template]] = []
        self._redirects: list[Redirect] = []
        self._loop: list[Template] | None = None
        self._is_separated = True
        self._count = 0
        self._pieces: list[Piece] | None = None
        self._bare = ""
        self._operator = ""
        self._body: tuple[int, int] | None = None
        self._take: dict[str, Callable[[str], None]] = {
            "join": self._join,
            "document": self._begin_document,
            "redirect": self._begin_redirect,
            "operator": self._separate,
            "parenthesis": self._nest,
            "single": lambda piece: self._add(piece[1:-1]),
            "double": self._add_double,
            "variable": lambda piece: self._add(Variable(piece.strip("${}"), is_quoted=False)),
            "escape": lambda piece: self._add(piece[1:]),
            "bare": self._add_bare,
        }

    def take(self, kind: str, piece: str) -> None:
        """Processes a token."""
        if kind == "blank" and piece == "\\\n":
            if self._body is not None:
                raise NotPlainError("a line continues before a here-document")
            return
        if kind in {"blank", "comment"}:
            self._end_word()
            return
        self._take[kind](piece)

    def finished(self) -> tuple[Item, ...]:
        """Returns the parsed line."""
        self._end_command()
        if self._body is not None or self._open or self._loop is not None:
            raise NotPlainError("something in it is not closed")
        if not self._items or not ends_command(self._items[-1]):
            raise NotPlainError("a command is missing")
        return normal_script(self._items)

    def _add(self, piece: Piece) -> None:
        """Adds quoted text, which the shell does not interpret."""
        self._pieces = [*(self._pieces or ()), piece]
        self._bare += "\0"

    def _add_bare(self, piece: str) -> None:
        self._pieces = [*(self._pieces or ()), piece]
        self._bare += piece

    def _add_double(self, _quote: str) -> None:
        pieces, self.position = within_double(self._line, self.position)
        for piece in ("", *pieces):
            self._add(piece)

    def _end_word(self) -> None:
        if self._pieces is None:
            return
        template, bare = Template.of(self._pieces, self._bare), self._bare
        self._pieces, self._bare = None, ""
        self._count += 1
        if self._count > MOST_WORDS:
            raise NotPlainError(f"it has more than {MOST_WORDS} words")
        _check_word(template, bare)
        if self._operator:
            self._redirects.append(Redirect(self._operator, template))
            self._operator = ""
        elif self._loop is not None:
            self._loop.append(template)
        elif not self._takes_front(template, bare):
            self._check_begins()
            self._words.append(template)

    def _takes_front(self, template: Template, bare: str) -> bool:
        """Processes a word before the command name; returns whether it is a reserved word."""
        before = [word.literal for word in self._words]
        if before and not (before[0] == "time" and set(before) <= {"time", "-p", "--"}):
            return False
        if bare in UNREAD:
            raise NotPlainError(f"{bare!r} begins more than a simple command")
        if bare in {*FOLLOWS, *OPENING, "for", "!"}:
            self._take_keyword(bare)
            return True
        assignment, value = ASSIGNMENT.match(bare), template.literal
        if assignment is None or self._words:
            if UNREAD_ASSIGNMENT.match(value or bare):
                raise NotPlainError(f"{value or bare!r} sets a variable")
            if template.is_glob:
                raise NotPlainError(f"the name of the command is a glob ({value or bare!r})")
            return False
        if value is None:
            raise NotPlainError(f"{assignment[1]} is set to what a variable is")
        self._check_begins()
        self._assigned.append((assignment[1], Template.of([value.removeprefix(assignment[0])], "")))
        return True

    def _check_begins(self) -> None:
        """Rejects a command where none may begin."""
        if not self._is_separated or (self._items and isinstance(self._items[-1], Loop)):
            raise NotPlainError("something is missing before a command")

    def _take_keyword(self, keyword: str) -> None:
        if self._words or self._assigned or self._redirects:
            raise NotPlainError(f"{keyword!r} begins more than a simple command")
        last = self._items[-1] if self._items else ";"
        if keyword in FOLLOWS:
            is_head = keyword == "do" and self._open[-1:] == ["for"]
            is_ready = isinstance(last, Loop) if is_head else ends_command(last)
            is_ready = is_ready and (self._is_separated or keyword == ")")
            if not (is_ready and self._open and self._open[-1] in FOLLOWS[keyword]):
                raise NotPlainError(f"{keyword!r} does not belong there")
            self._open.pop()
            if keyword not in CLOSING:
                self._open.append(keyword)
            self._is_separated = keyword not in CLOSING
        else:
            self._check_begins()
            if keyword == "!" and last in {"!", "|", "|&"}:
                raise NotPlainError("'!' does not belong there")
            if keyword == "for":
                self._loop = []
            if keyword != "!":
                self._open.append(keyword)
        if keyword != "for":
            self._items.append(keyword)

    def _nest(self, parenthesis: str) -> None:
        self._end_command()
        if parenthesis == ")":
            self._take_keyword(")")
            return
        self._check_begins()
        self._items.append("(")
        self._open.append("(")

    def _separate(self, operator: str) -> None:
        self._end_command()
        if operator == "\n" and self._body is not None:
            newline, end = self._body
            if self.position != newline + 1:
                raise NotPlainError("a line breaks in quotes before a here-document")
            self.position, self._body = end, None
        if self._loop is not None and operator in {";", "\n"}:
            self._end_head()
        elif not self._is_separated:
            self._is_separated = True
            if operator in OPERATORS and operator != ";":
                self._items.append(operator)
        elif operator != "\n" or self._items[-1:] == ["!"] or self._loop is not None:
            raise NotPlainError(f"a command is missing before {operator}")

    def _end_head(self) -> None:
        name, *rest = self._loop or [Template(())]
        text = name.literal or ""
        if len(rest) < 2 or rest[0].pieces != ("in",) or not re.fullmatch(NAME, text):  # noqa: PLR2004  # in, and a value
            raise NotPlainError("the head of a loop is not 'for x in a b'")
        self._items.append(Loop(text, tuple(rest[1:])))
        self._loop = None

    def _end_command(self) -> None:
        self._end_word()
        if self._operator:
            raise NotPlainError("a redirection leads nowhere")
        if self._words:
            words, assigned = tuple(self._words), tuple(self._assigned)
            self._items.append(Simple(words, assigned, tuple(self._redirects)))
            self._is_separated = False
        elif self._assigned:
            raise NotPlainError(f"it sets {self._assigned[0][0]} for what follows")
        elif self._redirects:
            if not self._items or self._items[-1] not in CLOSING or self._is_separated:
                raise NotPlainError("it redirects without a command")
            self._items += self._redirects
        self._words, self._assigned, self._redirects = [], [], []

    def _join(self, piece: str) -> None:
        """Joins output and errors, which opens no file."""
        self._begin_redirect(piece[:-1])
        self._add_bare(piece[-1])

    def _begin_redirect(self, operator: str) -> None:
        if self._pieces is not None:
            raise NotPlainError("a redirection touches a word")
        if self._operator or self._loop is not None:
            raise NotPlainError("a redirection leads nowhere")
        self._operator = operator.lstrip("0123456789")

    def _begin_document(self, piece: str) -> None:
        if self._body is not None:
            raise NotPlainError("it has two here-documents in one line")
        self._begin_redirect("<<")
        text, newline, end = document_behind(self._line, self.position, piece)
        self._redirects.append(Redirect("<<", Template.of([text], "")))
        self._operator, self._body = "", (newline, end)


def _check_word(template: Template, bare: str) -> None:
    """Rejects words that the shell expands."""
    text = template.literal
    if TILDE.search(bare):
        raise NotPlainError(f"{text or bare!r} expands to a home directory (~)")
    if "{" in bare and (text is None or "," in text or ".." in text):
        raise NotPlainError(f"{text or bare!r} stands for several words (braces)")
