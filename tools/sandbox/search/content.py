r"""Decodes files to lines, decides which need matching line by line, and ranks files by words.

Plain text is searched in the bytes of a file. Any other pattern that cannot match a line feed is
tried on the whole text, with `^` and `$` at every line (MULTILINE): if it does not match the text,
it matches no line, and trying it costs no more than trying each line.
"""

from __future__ import annotations

import codecs
import heapq
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

MAX_FILE_BYTES = 50_000_000  # limit on the files searched; larger ones are listed in the answer
MAX_SHOWN = 400  # limit on the characters of a line
_LOOKED_AT = 8192  # bytes in which a NUL marks a file as binary, as in grep and git
WIDE_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""The byte order marks of UTF-16, with the codecs."""

_MAY_LEAVE = re.compile(
    r"\\[^dwSbtfv\W_]"  # classes with a line feed, ends of the text, `\B`, numeric escapes
    r"|\[\^"  # negated sets
    r"|\(\?(?!:|P[<=]|i[:)])"  # lookarounds, flags, atomic groups
    r"|[*+?}]\+"  # possessive repetitions: they do not backtrack out of another line
    r"|[\0-\x1f]"
)
_PLAIN = re.compile(r"(\(\?i\))?([\w !\"#%&',/:;<=>@`~-]+)", re.ASCII)
_FOLDED_BEYOND_ASCII = re.compile("[kKsSiI]")
"""Letters that match non-ASCII characters, such as the Kelvin sign, if case is ignored."""


def text_of(data: bytes) -> str | None:
    """Decodes the text of a file; None if it is binary.

    UTF-16 is detected by its byte order mark. Everything else is UTF-8, except that invalid lines
    are Latin-1.
    """
    wide = WIDE_MARKS.get(data[:2])
    if wide is None and b"\0" in data[:_LOOKED_AT]:
        return None
    try:
        return data[2:].decode(wide, "replace") if wide else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "\n".join(map(_line, data.removeprefix(codecs.BOM_UTF8).split(b"\n")))


def lines_of(text: str) -> list[str]:
    r"""Splits a text into lines without their ends, numbered as in read_file.

    Lines end at `
    ` or `\r
    `; only in a text without any, they end at `\r`.
    """
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    lines = text.split(end)
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def cut(line: str, start: int, end: int) -> str:
    """Cuts a line to the part around a match."""
    if len(line) <= MAX_SHOWN:
        return line
    room = max(MAX_SHOWN - (end - start), 0)
    first = max(min(start - room // 2, len(line) - MAX_SHOWN), 0)
    last = min(first + MAX_SHOWN, len(line))
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


class PlainText(NamedTuple):
    """A text that occurs in every line matched by a pattern."""

    text: bytes  # ASCII text; in lower case if case is ignored
    ignores_case: bool

    @classmethod
    def of(cls, pattern: str, *, ignore_case: bool) -> Self | None:
        """Returns the text of a literal pattern; None for any other pattern."""
        match = _PLAIN.fullmatch(pattern)
        if match is None:
            return None
        text, ignores_case = match[2], ignore_case or match[1] is not None
        if ignores_case:
            text = max(_FOLDED_BEYOND_ASCII.split(text), key=len).lower()
        return cls(text.encode(), ignores_case)

    def is_in(self, data: bytes) -> bool:
        """Returns whether the bytes of a file, in UTF-8 or Latin-1, contain it."""
        return self.text in (data.lower() if self.ignores_case else data)


def stays_in_line(pattern: str) -> bool:
    """Returns whether a pattern can neither match a line feed nor refer to the ends of the text.

    The pattern is valid for Python's `re`. If in doubt, the answer is False.
    """
    return _MAY_LEAVE.search(pattern) is None


def _line(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


NAME_WEIGHT = 3.0
DIRECTORY_WEIGHT = 1.0
BEST_LINE_WEIGHT = 0.5
SATURATION = 1.2  # k1 of BM25: repeated occurrences of a word count less than the first
MAX_LINES = 3  # limit on the lines shown of a file
_BOUNDARY = r"(?:(?<![^\W_])|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
"""The start of a word, or of a part of an identifier."""


@dataclass(slots=True)
class _Seen:
    """The words found in a file; a set of words is a number with a bit for each.

    `lines` has the first lines with each set of words, by that set.
    """

    path: str
    name: int  # words in its name
    directories: int  # words in the names of its directories
    counts: list[int]
    lines: dict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    def has(self, word: int) -> bool:
        """Returns whether the word with this number occurs anywhere in it."""
        return bool((self.name | self.directories) >> word & 1 or self.counts[word])


@dataclass(frozen=True, slots=True)
class Scored:
    """A file with its score."""

    path: str
    score: float  # how well it matches; comparable within one search only
    in_name: list[int]  # numbers of the words in its name
    in_directories: list[int]  # numbers of the words in its directories' names
    counts: list[int]
    lines: list[tuple[int, str]]  # its best lines with their numbers, in order


class WordRanking:
    """Scores files by words: the sum of each word's weight times a factor for where it occurs.

    A word has its BM25 weight, log(1 + (N - n + 0.5) / (n + 0.5)), if n of N files contain it
    (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework"). The factor is 3 in a
    file's name, 1 in the name of a directory, and f / (f + 1.2) for f occurrences in the lines.
    Half the weights of the words on the best single line are added.
    """

    def __init__(self, words: Sequence[str]) -> None:
        # Words begin anywhere in scripts without spaces.
        self._words = [
            re.compile((_BOUNDARY if word[0].isascii() else "") + re.escape(word), re.IGNORECASE)
            for word in words
        ]
        pattern = "|".join(each.pattern for each in self._words)
        self.search = re.compile(pattern, re.IGNORECASE).search
        self._seen: list[_Seen] = []

    def see(self, path: str, lines: Iterable[str]) -> None:
        """Records a file."""
        directories, _, name = path.rpartition("/")
        seen = _Seen(path, self._in(name), self._in(directories), [0] * len(self._words))
        for number, line in enumerate(lines, 1):
            if self.search(line):
                self._see_line(seen, number, line)
        if seen.name or seen.directories or seen.lines:
            self._seen.append(seen)

    def best(self, total: int) -> Iterator[Scored]:
        """Yields the matching files, best first; equal ones in the order they were recorded.

        `total` counts all files, recorded or not.
        """
        weights = []
        for word in range(len(self._words)):
            having = sum(seen.has(word) for seen in self._seen)
            weights.append(math.log1p((total - having + 0.5) / (having + 0.5)))
        ranked = [(-self._score(seen, weights), at) for at, seen in enumerate(self._seen)]
        heapq.heapify(ranked)
        while ranked:
            score, at = heapq.heappop(ranked)
            yield self._scored(self._seen[at], -score, weights)

    def _in(self, text: str) -> int:
        return sum(1 << at for at, word in enumerate(self._words) if word.search(text))

    def _see_line(self, seen: _Seen, number: int, line: str) -> None:
        words = 0
        first: re.Match[str] | None = None
        for at, word in enumerate(self._words):
            found = list(word.finditer(line))
            if found:
                words |= 1 << at
                seen.counts[at] += len(found)
                first = min(first or found[0], found[0], key=lambda each: each.start())
        if first and len(seen.lines[words]) < MAX_LINES:
            seen.lines[words].append((number, cut(line, *first.span())))

    def _score(self, seen: _Seen, weights: Sequence[float]) -> float:
        score = BEST_LINE_WEIGHT * max((_weight(each, weights) for each in seen.lines), default=0.0)
        score += NAME_WEIGHT * _weight(seen.name, weights)
        score += DIRECTORY_WEIGHT * _weight(seen.directories, weights)
        for weight, count in zip(weights, seen.counts, strict=True):
            score += weight * count / (count + SATURATION)
        return score

    def _scored(self, seen: _Seen, score: float, weights: Sequence[float]) -> Scored:
        order = sorted(seen.lines, key=lambda words: -_weight(words, weights))
        lines = [line for words in order for line in seen.lines[words]][:MAX_LINES]
        numbers = range(len(self._words))
        return Scored(
            seen.path,
            round(score, 3),
            [at for at in numbers if seen.name >> at & 1],
            [at for at in numbers if seen.directories >> at & 1],
            seen.counts,
            sorted(lines),
        )


def _weight(words: int, weights: Sequence[float]) -> float:
    return sum(weight for at, weight in enumerate(weights) if words >> at & 1)
