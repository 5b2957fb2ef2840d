"""Tokens of a command line: quotes, variables, operators and here-documents."""

from __future__ import annotations

import re
import sys

from tools.policy.shell.reading.script import (
    Document,
    NotPlainError,
    Piece,
    Variable,
    is_literal_body,
)

LONGEST = 5_000
"""Limit on the characters of a line."""

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
EXPANSIONS = (
    ("$", "it expands something ($)"),
    ("`", "it runs a command within a word (`)"),
    ("(", "it has parentheses"),
    (")", "it has parentheses"),
    ("<", "it redirects"),
    (">", "it redirects"),
    ("&", "it runs something in the background, or redirects"),
    (";", "it has ;; or ;&"),
)
ENDS_EARLY = sys.platform == "darwin"
"""Whether bash may be version 3.2, which ends `$(` at a `)` inside a here-document."""


def check_characters(line: str) -> None:
    """Raises a NotPlainError for invisible characters, and for a line that is too long."""
    if len(line) > LONGEST:
        raise NotPlainError(f"it has more than {LONGEST} characters")
    odd = INVISIBLE.search(line)
    found = odd[0] if odd else next((one for one in line if not _is_seen(one)), None)
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


def _is_seen(character: str) -> bool:
    return character.isprintable() or character in "\n\t"


def reason_at(character: str) -> str:
    """Explains why a line cannot be parsed at a character."""
    for wanted, reason in EXPANSIONS:
        if character == wanted:
            return reason
    return f"it cannot be read at {character!r}"
