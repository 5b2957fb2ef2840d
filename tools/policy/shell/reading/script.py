"""What a line of a shell says: its commands in their order, and what joins and surrounds them.

Both readings of a line (`reader` and `tree_script`) are compared in this form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.policy.shell.words import OPERATORS, Word

CLOSING = frozenset({")", "}", "fi", "done"})
"""What ends a command that is made of others."""

BETWEEN = frozenset({"then", "elif", "else", "do"})
GLOB = re.compile(r"[*?\[]")
UNSPLIT = re.compile(r"[\w./:@%+=,-]+", re.ASCII)
"""Values that stay one word, and the same, where a variable stands without quotes."""


class NotPlainError(ValueError):
    """A line that is not plain; says what in it is not."""


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable of a loop within a word, or `?`, a number that is not known.

    Attributes:
        name: Its name.
        is_quoted: Whether it stands in double quotes.
    """

    name: str
    is_quoted: bool


@dataclass(frozen=True, slots=True)
class Document:
    """A here-document that `"$(cat <<'EOF' …)"` puts into a word.

    Attributes:
        text: What is put there.
    """

    text: str


Piece = str | Variable | Document


@dataclass(frozen=True, slots=True)
class Template:
    """A word whose variables are not yet known.

    Attributes:
        pieces: What it is made of; texts that follow each other are one.
        is_glob: Whether the shell replaces it by the names of files that fit it.
    """

    pieces: tuple[Piece, ...]
    is_glob: bool = False

    @classmethod
    def of(cls, pieces: Iterable[Piece], bare: str) -> Template:
        """Joins pieces.

        Args:
            pieces: What it is made of.
            bare: Its text with NUL in place of all that is quoted.
        """
        joined: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, str) and joined and isinstance(joined[-1], str):
                joined[-1] += piece
            elif piece != "":
                joined.append(piece)
        return cls(tuple(joined), GLOB.search(bare) is not None and bare != "[")

    @property
    def literal(self) -> str | None:
        """Its text where it has no variable."""
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
        """The word, where its variables have these values.

        Raises:
            NotPlainError: If the shell may split what it becomes, or replace it.
        """
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
    """A redirection.

    Attributes:
        operator: Such as `>`.
        target: The path, or the text of a here-document or here-string.
    """

    operator: str
    target: Template


@dataclass(frozen=True, slots=True)
class Simple:
    """A command.

    Attributes:
        words: Its words.
        assigned: Variables that are set for it alone, each as name and value.
        redirects: What is opened for it.
    """

    words: tuple[Template, ...]
    assigned: tuple[tuple[str, Template], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """The head of `for`, up to its `do`.

    Attributes:
        name: The variable.
        values: What it becomes, one after the other.
    """

    name: str
    values: tuple[Template, ...]


Item = Simple | Loop | Redirect | str
"""A command, the head of a loop, what is opened for the command made of others that has just been
closed, an operator, or a word of the grammar such as `then`."""


def normal_script(items: Iterable[Item]) -> tuple[Item, ...]:
    """The items with `;` where two commands follow each other, and nowhere else."""
    found: list[Item] = []
    for item in items:
        if item in {";", "\n"}:
            continue
        if found and ends_command(found[-1]) and _begins_command(item):
            found.append(";")
        found.append(item)
    return tuple(found)


def ends_command(item: Item) -> bool:
    """Whether a command is whole behind it."""
    return isinstance(item, Simple | Redirect) or item in CLOSING


def is_literal_body(body: str) -> bool:
    r"""Whether a here-document without quotes stands for itself: nothing in it is expanded."""
    return not set(body) & set("$`\\")


def _begins_command(item: Item) -> bool:
    if isinstance(item, Redirect):
        return False
    return not isinstance(item, str) or item not in {*CLOSING, *BETWEEN, *OPERATORS}
