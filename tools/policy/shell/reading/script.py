"""A parsed command line: its commands in order, with operators and reserved words.

The results of both parsers (`reader` and `tree_script`) are compared in this form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.policy.shell.words import OPERATORS, Word

CLOSING = frozenset({")", "}", "fi", "done"})
"""Words that end a compound command."""

BETWEEN = frozenset({"then", "elif", "else", "do"})
GLOB = re.compile(r"[*?\[]")
UNSPLIT = re.compile(r"[\w./:@%+=,-]+", re.ASCII)
"""Values that an unquoted variable expands to unchanged, as one word."""


class NotPlainError(ValueError):
    """A line that is not plain; the message says why."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A loop variable within a word, or `?`, which is an unknown number."""

    name: str
    is_quoted: bool  # whether it is in double quotes


@dataclass(frozen=True, slots=True)
class Document:
    """A here-document that `"$(cat <<'EOF' …)"` inserts into a word."""

    text: str


Piece = str | Variable | Document


@dataclass(frozen=True, slots=True)
class Template:
    """A word whose variables are not yet known."""

    pieces: tuple[Piece, ...]  # its parts; adjacent texts are joined
    is_glob: bool = False  # whether the shell replaces it by matching file names

    @classmethod
    def of(cls, pieces: Iterable[Piece], bare: str) -> Template:
        """Joins pieces; `bare` is the text, with NUL for everything that is quoted."""
        joined: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, str) and joined and isinstance(joined[-1], str):
                joined[-1] += piece
            elif piece != "":
                joined.append(piece)
        return cls(tuple(joined), GLOB.search(bare) is not None and bare != "[")

    @property
    def literal(self) -> str | None:
        """Its text, if it has no variable."""
        if any(isinstance(piece, Variable) for piece in self.pieces):
            return None
        return "".join(
            each.text if isinstance(each, Document) else str(each) for each in self.pieces
        )

    @property
    def variables(self) -> frozenset[str]:
        """The names of its variables."""
        return frozenset(each.name for each in self.pieces if isinstance(each, Variable))

    def filled(self, values: Mapping[str, Word]) -> Word:
        """Fills in its variables; a NotPlainError if the shell may split or replace the result."""
        if self.is_glob and self.variables:
            raise NotPlainError("it expands a variable in a glob")
        text, is_glob = "", self.is_glob
        for piece in self.pieces:
            if not isinstance(piece, Variable):
                text += piece if isinstance(piece, str) else piece.text
                continue
            value = values[piece.name]
            is_glob = is_glob or value.is_glob
            stays = piece.is_quoted or piece.name == "?"
            if not stays and (value.is_glob or not UNSPLIT.fullmatch(value.text or "")):
                raise NotPlainError(f"${piece.name} stands without double quotes")
            text += value.text or ""
        return Word(text, is_glob)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection."""

    operator: str  # such as `>`
    target: Template  # the path, or the text of a here-document or here-string


@dataclass(frozen=True, slots=True)
class Simple:
    """A command."""

    words: tuple[Template, ...]
    # Variables set only for it, each as name and value
    assigned: tuple[tuple[str, Template], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """The head of `for`, up to its `do`."""

    name: str
    values: tuple[Template, ...]


Item = Simple | Loop | Redirect | str
"""A command, the head of a loop, a redirection of the compound command just closed, an operator,
or a reserved word such as `then`."""


def normal_script(items: Iterable[Item]) -> tuple[Item, ...]:
    """Normalizes separators: `;` between consecutive commands, and nowhere else."""
    found: list[Item] = []
    for item in items:
        if item in {";", "\n"}:
            continue
        if found and ends_command(found[-1]) and _begins_command(item):
            found.append(";")
        found.append(item)
    return tuple(found)


def ends_command(item: Item) -> bool:
    """Returns whether a command is complete after it."""
    return isinstance(item, Simple | Redirect) or item in CLOSING


def is_literal_body(body: str) -> bool:
    r"""Returns whether an unquoted here-document is literal, without expansions."""
    return not set(body) & set("$`\\")


def _begins_command(item: Item) -> bool:
    if isinstance(item, Redirect):
        return False
    return not isinstance(item, str) or item not in {*CLOSING, *BETWEEN, *OPERATORS}
