r"""Plain lines: the part of the shell's language that is read here exactly as bash reads it.

Words of literal text, lists, pipelines, comments, and redirections from and to /dev/null or between
standard output and error. Whatever else a shell knows is not plain. Read with a grammar of its own,
beside the parser's, so that a line is plain only where both agree (POSIX.1-2024, 2.2 and 2.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tools.policy.shell.words import Word

__all__ = ["LONGEST", "NotPlainError", "PlainLine", "check_characters", "read_plain"]

LONGEST = 5_000
"""Characters of a line that are looked at."""

MOST_WORDS = 400
"""Words of a plain line, over all its commands."""

RESERVED = frozenset(
    {"!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for"}
    | {"function", "if", "in", "select", "then", "until", "while"}
)
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Printable as Unicode has it, and yet nothing is seen of them."""

PIECE = re.compile(
    r"""(?P<blank>[ \t]+|\\\n(?!\#))|(?P<comment>(?<![^ \t\n;&|])\#[^\n]*)"""
    r"""|(?P<redirect>(?:(?<![^ \t\n;&|])[0-9])?(?:(?:>>?|<)[ \t]*/dev/null(?![^ \t\n;&|])"""
    r"""|>&[12](?![^ \t\n;&|]))|(?<![^ \t\n;&|])&>>?[ \t]*/dev/null(?![^ \t\n;&|]))"""
    r"""|(?P<operator>&&|\|\||\|&|[|;](?![;&])|\n)"""
    r"""|(?P<single>'[^']*')|(?P<double>"(?:[^"\\$`]|\\[^\n]|\\\n)*")"""
    r"""|(?P<escape>\\[^\n])|(?P<bare>[^ \t\n;&|<>()$`'"\\]+)"""
)
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=", re.DOTALL)
TILDE = re.compile(r"(^|[=:])~")
GLOB = re.compile(r"[*?\[]")
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


class NotPlainError(ValueError):
    """A line that is not plain; says what in it is not."""


@dataclass(frozen=True, slots=True)
class PlainLine:
    """Commands and what joins them.

    Attributes:
        commands: The words of each.
        operators: What stands between them, one fewer; a line break is `;`.
    """

    commands: tuple[tuple[Word, ...], ...]
    operators: tuple[str, ...]


def read_plain(line: str) -> PlainLine:
    """Reads a line.

    Raises:
        NotPlainError: If anything in it is not plain.
    """
    check_characters(line)
    reader = _Reader()
    position = 0
    while position < len(line):
        found = PIECE.match(line, position)
        if found is None:
            raise NotPlainError(_reason(line[position]))
        position = found.end()
        reader.take(str(found.lastgroup), found[0])
    return reader.finished()


class _Reader:
    """What was read so far."""

    def __init__(self) -> None:
        self._commands: list[tuple[Word, ...]] = []
        self._operators: list[str] = []
        self._words: list[Word] = []
        self._count = 0
        self._text: list[str] | None = None
        self._bare = ""
        self._take: dict[str, Callable[[str], None]] = {
            "operator": self._join,
            "single": lambda piece: self._add(piece[1:-1]),
            "double": lambda piece: self._add(_within_double(piece[1:-1])),
            "escape": lambda piece: self._add(piece[1:]),
            "bare": self._add_bare,
        }

    def take(self, kind: str, piece: str) -> None:
        """Takes a piece."""
        if kind == "blank" and piece == "\\\n":
            return
        if kind in {"blank", "comment", "redirect"}:
            if kind == "redirect" and self._text is not None:
                raise NotPlainError("a redirection touches a word")
            self._end_word()
            return
        self._take[kind](piece)

    def finished(self) -> PlainLine:
        """The line."""
        self._end_word()
        if self._words:
            self._end_command()
        elif self._operators and self._operators[-1] == ";":
            self._operators.pop()  # a line may end so
        if not self._commands or len(self._operators) != len(self._commands) - 1:
            raise NotPlainError("a command is missing")
        return PlainLine(tuple(self._commands), tuple(self._operators))

    def _join(self, piece: str) -> None:
        self._end_word()
        if self._words:
            self._end_command()
        elif piece == "\n":  # an empty line, or one that goes on after && or |
            return
        else:
            raise NotPlainError(f"a command is missing before {piece}")
        self._operators.append(";" if piece == "\n" else piece)

    def _add(self, text: str) -> None:
        self._text = [*(self._text or ()), text]
        self._bare += "\0"  # keeps what is quoted out of what the shell looks at

    def _add_bare(self, piece: str) -> None:
        self._text = [*(self._text or ()), piece]
        self._bare += piece

    def _end_word(self) -> None:
        if self._text is None:
            return
        text, bare = "".join(self._text), self._bare
        self._text, self._bare = None, ""
        _check_word(text, bare, is_first=self._is_in_front())
        self._count += 1
        if self._count > MOST_WORDS:
            raise NotPlainError(f"it has more than {MOST_WORDS} words")
        self._words.append(Word(text, GLOB.search(bare) is not None and bare != "["))

    def _is_in_front(self) -> bool:
        """Whether the next word may still begin more than a simple command, also after `time`."""
        texts = [word.text for word in self._words]
        return not texts or (texts[0] == "time" and set(texts) <= {"time", "-p", "--"})

    def _end_command(self) -> None:
        self._commands.append(tuple(self._words))
        self._words = []


def check_characters(line: str) -> None:
    """Refuses what cannot be seen, and what is too long to be looked at.

    Raises:
        NotPlainError: If the line has it.
    """
    if len(line) > LONGEST:
        raise NotPlainError(f"it has more than {LONGEST} characters")
    odd = INVISIBLE.search(line)
    found = odd[0] if odd else next((one for one in line if not _is_seen(one)), None)
    if found is not None:
        raise NotPlainError(f"it has an invisible character (U+{ord(found):04X})")


def _is_seen(character: str) -> bool:
    return character.isprintable() or character in "\n\t"


def _check_word(text: str, bare: str, *, is_first: bool) -> None:
    """Refuses words that the shell changes, or takes for more than a word."""
    if TILDE.search(bare):
        raise NotPlainError(f"{text!r} stands for a home directory (~)")
    if "{" in bare and ("," in text or ".." in text):
        raise NotPlainError(f"{text!r} stands for several words (braces)")
    if not is_first:
        return
    if bare in RESERVED:
        raise NotPlainError(f"{text!r} begins more than a simple command")
    if ASSIGNMENT.match(text):
        raise NotPlainError(f"{text!r} sets a variable")
    if GLOB.search(bare) and bare != "[":
        raise NotPlainError(f"the name of the command is a glob ({text!r})")


def _within_double(text: str) -> str:
    r"""What a double-quoted text without expansions stands for: `\` escapes few characters."""
    return re.sub(r'\\(\n|[$`"\\])', lambda found: found[1].strip("\n"), text)


def _reason(character: str) -> str:
    for wanted, reason in EXPANSIONS:
        if character == wanted:
            return reason
    return f"it cannot be read at {character!r}"
