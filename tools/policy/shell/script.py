"""A parsed command line: its tokens, and its commands with operators and reserved words.

The results of both parsers (`reader` and `tree`) are compared in this form.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.policy.shell.words import OPERATORS, Word

CLOSING = frozenset({")", "}", "fi", "done"})  # words that end a compound command
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
        begins = not isinstance(item, Redirect) and item not in {*CLOSING, *BETWEEN, *OPERATORS}
        if found and ends_command(found[-1]) and begins:
            found.append(";")
        found.append(item)
    return tuple(found)


def ends_command(item: Item) -> bool:
    """Returns whether a command is complete after it."""
    return isinstance(item, Simple | Redirect) or item in CLOSING


def is_literal_body(body: str) -> bool:
    r"""Returns whether an unquoted here-document is literal, without expansions."""
    return not set(body) & set("$`\\")


LONGEST = 5_000  # limit on the characters of a line

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Unicode calls printable but that are invisible."""

NAME = r"[a-z][a-z0-9]*"
"""Names allowed for loop variables: no program reads such environment variables."""

START, END = r"(?<![^ \t\n;&|(])", r"(?![^ \t\n;&|)])"
VARIABLE = rf"\$(?:\?|{NAME}(?!\w)|\{{{NAME}\}})"
DELIMITER = r"""(?:'\w+'|"\w+"|\\?\w+)"""
PIECE = re.compile(
    rf"""(?P<blank>[ \t]+|\\\n(?!\#))|(?P<comment>{START}\#[^\n]*)"""
    rf"""|(?P<join>(?:{START}[0-9])?>&[12]{END})"""
    rf"""|(?P<document><<[ \t]*{DELIMITER}{END})"""
    rf"""|(?P<redirect><<<|(?:{START}[0-9])?(?:>>|>\||>(?![&(])|<(?![<>&(]))|{START}&>>?(?!\())"""
    rf"""|(?P<operator>&&|\|\||\|&|[|;](?![;&])|\n)|(?P<parenthesis>\((?!\()|\))"""
    rf"""|(?P<single>'[^']*')|(?P<double>")|(?P<variable>{VARIABLE})"""
    rf"""|(?P<escape>\\[^\n])|(?P<bare>[^ \t\n;&|<>()$`'"\\]+)""",
    re.ASCII,
)
WITHIN_DOUBLE = re.compile(
    rf"""(?P<text>[^"\\$`]+)|(?P<escape>\\(?:.|\n))|(?P<variable>{VARIABLE})|(?P<end>")"""
    rf"""|\$\(cat[ \t]+<<[ \t]*(?P<start>{DELIMITER})[ \t]*\n(?P<body>(?:.*\n)*?)(?P<stop>\w+)"""
    r"""\n[ \t\n]*\)""",
    re.ASCII,
)
QUOTES = "'\"\\"
EXPANSIONS = {
    "$": "it expands something ($)",
    "`": "it runs a command within a word (`)",
    **dict.fromkeys("()", "it has parentheses"),
    **dict.fromkeys("<>", "it redirects"),
    "&": "it runs something in the background, or redirects",
    ";": "it has ;; or ;&",
}
ENDS_EARLY = sys.platform == "darwin"
"""Whether bash may be version 3.2, which ends `$(` at a `)` inside a here-document."""


def check_characters(line: str) -> None:
    """Raises a NotPlainError for invisible characters, and for a line that is too long."""
    if len(line) > LONGEST:
        raise NotPlainError(f"it has more than {LONGEST} characters")
    odd = INVISIBLE.search(line)
    unseen = (one for one in line if not (one.isprintable() or one in "\n\t"))
    found = odd[0] if odd else next(unseen, None)
    if found is not None:
        raise NotPlainError(f"it has an invisible character (U+{ord(found):04X})")


def within_double(line: str, position: int) -> tuple[list[Piece], int]:
    r"""Tokenizes the inside of double quotes, where `\` escapes only a few characters.

    Takes the position after the opening quote, and returns the one after the closing quote.
    """
    pieces: list[Piece] = []
    while True:
        found = WITHIN_DOUBLE.match(line, position)
        if found is None:
            raise NotPlainError(reason_at(line[position : position + 1] or '"'))
        position, text = found.end(), found[0]
        match found.lastgroup:
            case "text":
                pieces.append(text)
            case "escape":
                pieces.append(text[1].strip("\n") if text[1] in '\n$`"\\' else text)
            case "variable":
                pieces.append(Variable(text.strip("${}"), is_quoted=True))
            case "end":
                return pieces, position
            case _:
                pieces.append(_document(found["start"], found["body"], found["stop"]))


def _document(start: str, body: str, stop: str) -> Document:
    delimiter = start.strip(QUOTES)
    is_expanded = start == delimiter and not is_literal_body(body)
    if stop != delimiter or delimiter in body.split("\n") or is_expanded:
        raise NotPlainError(reason_at("$"))
    if ENDS_EARLY and set(body) & set("()'\"`\\"):
        raise NotPlainError("a here-document in a word has quotes or parentheses")
    return Document(body.rstrip("\n"))


def document_behind(line: str, position: int, piece: str) -> tuple[str, int, int]:
    """Reads a here-document, whose text begins on the line after its operator `piece`.

    Returns its text, the position of the line break before it, and its end.
    """
    start = piece.removeprefix("<<").strip(" \t")
    newline = line.find("\n", position)
    end = re.compile(rf"^{start.strip(QUOTES)}$", re.MULTILINE).search(line, newline + 1)
    if newline < 0 or end is None:
        raise NotPlainError("a here-document has no end")
    text = line[newline + 1 : end.start()]
    if start[0] not in QUOTES and not is_literal_body(text):
        raise NotPlainError("a here-document expands something")
    return text, newline, end.end()


def reason_at(character: str) -> str:
    """Explains why a line cannot be parsed at a character."""
    return EXPANSIONS.get(character, f"it cannot be read at {character!r}")
