r"""Words of commands, in command lines and in rules, and the wildcards of all rules.

In a rule a lone `*` matches any number of words, and `*` within a word any characters. Quoted or
escaped characters match literally: `bash(grep "a b" *)`, `bash(echo \*)`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TypeVar

OPERATORS = ("&&", "||", "|&", "|", ";")
PIECE = re.compile(
    r"""(?P<blank>\s+)|(?P<operator>&&|\|\||\|&|\||;)|(?P<single>'[^']*')"""
    r"""|(?P<double>"(?:[^"\\]|\\.)*")|(?P<escape>\\.)|(?P<plain>[^\s'"\\|;&]+|&)""",
    re.DOTALL,
)
ACTIVE = re.compile(r"[*?\[]")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL | re.ASCII)
PLAIN_TEXT = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")

Piece = str | tuple[str | None, ...]
PatternT = TypeVar("PatternT")
PartT = TypeVar("PartT")


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A text pattern with wildcards."""

    # The texts between the wildcards; one with `?` is a tuple of characters, where None matches
    # any single character.
    pieces: tuple[Piece, ...]

    @classmethod
    def parse(cls, text: str, *, single: bool = False) -> Wildcard:
        r"""Parses `*` as any characters and, with `single`, `?` as one; a backslash escapes."""
        pieces: list[list[str | None]] = [[]]
        position = 0
        while position < len(text):
            character = text[position]
            if character == "*":
                pieces.append([])
            elif character == "?" and single:
                pieces[-1].append(None)
            else:
                position += character == "\\" and position + 1 < len(text)
                pieces[-1].append(text[position])
            position += 1
        return cls(
            tuple(tuple(each) if None in each else "".join(map(str, each)) for each in pieces)
        )

    @property
    def is_literal(self) -> bool:
        """True if it matches exactly one text."""
        return self.literal is not None

    @property
    def literal(self) -> str | None:
        """The only text it matches; None if there are several."""
        piece = self.pieces[0]
        return piece if len(self.pieces) == 1 and isinstance(piece, str) else None

    def matches(self, text: str) -> bool:
        """Returns whether it matches a text."""
        first, *others = self.pieces
        if not others and isinstance(first, str):
            return text == first
        if not _fits(first, text, 0):
            return False
        if not others:
            return len(text) == len(first)
        position = len(first)
        *middle, last = others
        for piece in middle:
            if isinstance(piece, str):
                found = text.find(piece, position)
            else:
                places = range(position, len(text))
                found = next((at for at in places if _fits(piece, text, at)), -1)
            if found < 0:
                return False
            position = found + len(piece)
        end = len(text) - len(last)
        return end >= position and _fits(last, text, end)


def _fits(piece: Piece, text: str, at: int) -> bool:
    if isinstance(piece, str):
        return text.startswith(piece, at)
    there = text[at : at + len(piece)]
    return len(there) == len(piece) and all(
        wanted is None or wanted == found for wanted, found in zip(piece, there, strict=True)
    )


def matches_sequence(
    pattern: Sequence[PatternT | None],
    parts: Sequence[PartT],
    fits: Callable[[PatternT, PartT], bool],
    *,
    beneath: bool = False,  # whether it is enough to match the first parts
) -> bool:
    """Matches parts with patterns, of which None stands for any number of parts.

    It goes back to the last None only, which is enough for globs.
    """
    at = place = 0
    back: tuple[int, int] | None = None
    while place < len(parts):
        if at < len(pattern):
            wanted = pattern[at]
            if wanted is None:
                back = (at, place)
                at += 1
                continue
            if fits(wanted, parts[place]):
                at, place = at + 1, place + 1
                continue
        elif beneath:
            return True
        if back is None:
            return False
        back = (back[0], back[1] + 1)
        at, place = back[0] + 1, back[1]
    return all(rest is None for rest in pattern[at:])


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command."""

    # The argument that the program gets; None if it cannot be seen, and may be any number of
    # words.
    text: str | None
    is_glob: bool = False  # whether the shell replaces it by matching file names


@dataclass(frozen=True, slots=True)
class WordPattern:
    """A word pattern in a rule."""

    wildcard: Wildcard
    text: str  # its text without quotes
    is_active: bool  # whether it also matches a glob with the same text

    @property
    def is_literal(self) -> bool:
        """True if it matches exactly one text."""
        return self.wildcard.is_literal

    def matches(self, word: Word) -> bool:
        """Returns whether it certainly matches the word."""
        if word.text is None:
            return False
        if word.is_glob:
            return self.is_active and self.text == word.text
        return self.wildcard.matches(word.text)

    def permits(self, word: Word) -> bool:
        """Returns whether it matches the word, and options only if it begins like one."""
        is_option = (word.text or "").startswith("-") and not self.text.startswith("-")
        return not is_option and self.matches(word)


@dataclass(frozen=True)
class CommandPattern:
    """A command pattern in a rule."""

    words: tuple[WordPattern | None, ...]  # its word patterns; None matches any number of words
    assigned: tuple[WordPattern, ...] = ()  # patterns of the variables set before it

    @classmethod
    def of(cls, words: Sequence[WordPattern | None]) -> CommandPattern:
        """Separates assignments from the words after them."""
        named = takewhile(lambda word: word and ASSIGNMENT.fullmatch(word.text), words)
        assigned = tuple(word for word in named if word is not None)
        return cls(tuple(words[len(assigned) :]), assigned)

    @property
    def name(self) -> str | None:
        """The base name of the commands it matches; None if they differ."""
        first = self.words[0]
        return base_name(first.text) if first is not None and first.is_literal else None

    @cached_property
    def needed(self) -> frozenset[str]:
        """Words, except options, that every matching command has after its name."""
        literals = (word.wildcard.literal for word in self.words[1:] if word is not None)
        return frozenset(text for text in literals if text and not text.startswith("-"))

    @property
    def fixed(self) -> int:
        """The number of leading words without a wildcard."""
        vague = (at for at, word in enumerate(self.words) if not word or not word.is_literal)
        return next(vague, len(self.words))

    def names(self, assigned: Sequence[str], harmless: Sequence[str]) -> bool:
        """Returns whether the assignments match its own, apart from harmless ones."""
        is_set = all(any(each.wildcard.matches(one) for one in assigned) for each in self.assigned)
        return is_set and all(
            one in harmless or any(each.wildcard.matches(one) for each in self.assigned)
            for one in assigned
        )

    def matches(self, words: Sequence[Word]) -> bool:
        """Returns whether it matches these words; unseen words are matched only by a lone `*`."""
        return matches_sequence(self.words, words, WordPattern.permits)


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A line pattern in a rule: one command, or several joined by operators."""

    commands: tuple[CommandPattern, ...]
    operators: tuple[str, ...]  # the operators between them

    @classmethod
    def parse(cls, text: str) -> LinePattern:
        """Parses words as a shell does, without expansions; a ValueError if one is missing."""
        commands: list[list[WordPattern | None]] = [[]]
        operators: list[str] = []
        pattern, shown, active, begun = "", "", False, False

        def end_word() -> None:
            nonlocal pattern, shown, active, begun
            if begun:
                lone = pattern == "*"
                wildcard = Wildcard.parse(pattern)
                commands[-1].append(None if lone else WordPattern(wildcard, shown, active))
            pattern, shown, active, begun = "", "", False, False

        position = 0
        while position < len(text):
            found = PIECE.match(text, position)
            if found is None:
                raise ValueError(f"{text!r} ends within a quote")
            position = found.end()
            piece = found[0]
            match found.lastgroup:
                case "blank":
                    end_word()
                    continue
                case "operator":
                    end_word()
                    operators.append(piece)
                    commands.append([])
                    continue
                case "plain":
                    pattern, shown = pattern + piece, shown + piece
                    active = active or ACTIVE.search(piece) is not None
                case kind:
                    literal = _unquote(piece, str(kind))
                    pattern += re.sub(r"[\\*]", r"\\\g<0>", literal)
                    shown += literal
            begun = True
        end_word()
        patterns = tuple(map(CommandPattern.of, commands))
        if not all(pattern.words for pattern in patterns):
            raise ValueError(f"{text!r} lacks a command, such as 'git status *'")
        return cls(patterns, tuple(operators))


def base_name(name: str) -> str:
    """Returns a command's name without its directory and case."""
    return name.rstrip("/").rpartition("/")[2].casefold()


def line_rule(commands: Sequence[Sequence[Word]], operators: Sequence[str]) -> str:
    """Returns the pattern for exactly one line; empty if there is none."""
    texts = [[word.text for word in words if not word.is_glob] for words in commands]
    if any(
        len(left) != len(words) or not all(text is not None and text.isprintable() for text in left)
        for left, words in zip(texts, commands, strict=True)
    ):
        return ""
    lines = [" ".join(_quote(text or "") for text in words) for words in texts]
    joined = lines[0]
    for operator, line in zip(operators, lines[1:], strict=True):
        joined += f" {operator} {line}"
    return joined


def _unquote(piece: str, kind: str) -> str:
    match kind:
        case "single":
            return piece[1:-1]
        case "double":
            return re.sub(r'\\(["\\])', r"\1", piece[1:-1])
        case _:
            return piece[1:]


def _quote(text: str) -> str:
    """Quotes a text as one literal word of a rule."""
    if PLAIN_TEXT.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


QUOTES = re.compile(r"""\\\n|['"\\]|\$(?=['"])""")  # quoting that a shell removes from a word
ESCAPES = re.compile(r"\\[abfnrtv]")
BETWEEN = re.compile(r"""[\s;|&<>(){}'"`$\\=:,!@%^~#]+""")
"""Separators of words in a text that a program runs."""

EXPANDED = re.compile(r"""`|\$[({\w'"@*]|\w\{[^{}\s,]*,[^{}\s]*\}|\{[^{}\s,]*,[^{}\s]*\}\w""")
"""Expansions that a shell would perform in a text."""

STDIN = re.compile(r"(.*/)?(stdin|stdout|stderr|tty|fd/\d+|pts/\d+)", re.DOTALL)
"""Files through which a program reads its open standard input."""


def names_stdin(text: str) -> bool:
    """Returns whether a word, or the value in an option, names the standard input."""
    values = (text, text.partition("=")[2], text[2:] if text.startswith("-") else "")
    return any(each == "-" or STDIN.fullmatch(posixpath.normpath(each)) for each in values)


def is_expanded(text: str) -> bool:
    """Returns whether a shell would expand a text."""
    return EXPANDED.search(text) is not None


def pieces_of(text: str) -> Iterator[str]:
    """Yields the words that a program may find in a text, however they are joined or quoted."""
    yield text
    for form in dict.fromkeys((text, QUOTES.sub("", text))):
        for piece in BETWEEN.split(ESCAPES.sub(" ", form)):
            yield piece
            yield piece.strip("[]*?")
            if piece.startswith("-"):  # the value of a short option, also in a cluster
                yield from (piece[2:], piece[3:])


@dataclass(frozen=True, slots=True)
class Inner:
    """Something a command runs."""

    # The last word of the outer command that a rule has to name in order to cover it; if that is
    # beyond the last word, only a rule without wildcards covers it.
    at: int
    words: tuple[Word, ...] = ()
    script: str | None = None
    unseen: str = ""  # why it cannot be seen; the other fields are then empty
    is_certain: bool = True  # whether it surely runs, or only may
