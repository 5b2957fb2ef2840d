"""Splits text into chunks that are stored, embedded and found.

Chunks are spans of the source, so that together they lose and change nothing. There are three
steps: sections by heading (`outline.py`); joining of small neighbours; splitting of large ones at
the best boundary that fits: blocks, then sentences or lines, then words, then characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from storage.reading.outline import Block, Section, sections_of

_WIDE = re.compile(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u2e80-\ud7ff\uf900-\ufaff\uff01-\uffee\U00020000-\U0003ffff]+"  # Han, Kana, Hangul
)
_WIDE_WEIGHT = 3
_TINY_SHARE = 5  # a section under a fifth of a chunk is too small on its own

_SENTENCE = re.compile(
    r"(?<![.!?…])[.!?…]++[\"')\]”\u2019]*+\s++(?![a-z])"
    r"|(?<![。\uff01\uff1f｡])[。\uff01\uff1f｡]++[」』”\u2019\uff09]*+\s*+"
    r"|\n(?:[^\S\n]*\n)+"
)
_LINE = re.compile(r"\n+")
_WORD = re.compile(r"\s+")
_ITEM = re.compile(r"\n(?=[^\S\n]*(?:[-*+|]|\d{1,9}[.)])\s)")
_PROSE = (_SENTENCE, _LINE, _WORD)
_LINES = (_LINE, _SENTENCE, _WORD)
_LINES_PER_SENTENCE = 4  # fewer sentence ends than this are code, data or a log


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of a text."""

    # The headings above it, outermost first, joined by " > "; for joined sections the headings they
    # share.
    heading: str
    content: str  # the source's text, heading lines included
    start: int  # its offset in the text; it may overlap the previous piece


def weigh(text: str) -> int:
    """Returns the size of a text in characters; a Chinese, Japanese, Korean or Thai one counts 3.

    An embedder reads about 256 tokens: four Latin characters are about one token, but each of these
    is one.
    """
    if text.isascii():
        return len(text)
    return len(text) + (_WIDE_WEIGHT - 1) * sum(map(len, _WIDE.findall(text)))


def chunk(
    text: str, *, markdown: bool, max_chars: int = 1500, overlap: int = 200
) -> list[TextChunk]:
    """Splits a text into pieces along its structure, in linear time.

    A piece has text of one section only. Exceptions: neighbouring sections under a fifth of
    `max_chars` (a weight, see `weigh`) are joined, and a heading without text stays with the
    following text. Paragraphs, lists, tables and fenced code are kept together if they fit. A piece
    begins with up to `overlap` of the previous one of its section, from the start of a sentence.
    """
    if max_chars < _WIDE_WEIGHT:
        raise ValueError(f"max_chars is {max_chars}; it must be at least {_WIDE_WEIGHT}.")
    if not 0 <= overlap < max_chars:
        raise ValueError(f"overlap is {overlap}; it must be from 0 to {max_chars - 1}.")
    chunks: list[TextChunk] = []
    for section in _join_tiny(text, sections_of(text, markdown=markdown), max_chars):
        heading = " > ".join(section.path)
        for start, end in _cut(text, section, max_chars, overlap):
            skipped, content = _without_blank_lines(text[start:end])
            if content:
                chunks.append(TextChunk(heading, content, start + skipped))
    return chunks


def sentences(text: str) -> list[str]:
    """Splits a text into stripped sentences; a line end also ends a sentence."""
    found: list[str] = []
    for line in _LINE.split(text):
        cuts = [0, *(match.end() for match in _SENTENCE.finditer(line)), len(line)]
        found.extend(line[start:end].strip() for start, end in pairwise(cuts))
    return [sentence for sentence in found if sentence]


def _without_blank_lines(text: str) -> tuple[int, str]:
    """Strips blank lines but keeps the first line's indentation."""
    text = text.rstrip()
    indent = len(text) - len(text.lstrip())
    first = text.rfind("\n", 0, indent) + 1
    return first, text[first:]


def _join_tiny(text: str, sections: list[Section], max_chars: int) -> Iterator[Section]:
    """Joins neighbouring tiny sections that are siblings, or parent and child."""
    tiny = max_chars // _TINY_SHARE
    held: Section | None = None
    held_weight = 0
    for section in sections:
        weight = weigh(text[section.start : section.end])
        if held and held_weight < tiny and weight < tiny and held.is_next_to(section):
            held = held.joined(section)
            held_weight += weight
            continue
        if held:
            yield held
        held, held_weight = section, weight
    if held:
        yield held


def _cut(text: str, section: Section, max_chars: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yields the spans of a section's pieces, each within the limit, filled from the front."""
    if weigh(text[section.start : section.end]) <= max_chars:
        yield section.start, section.end
        return
    begin = fresh = section.start  # from fresh on, the piece repeats nothing
    weight = 0
    for start, end in _atoms_of(text, section, max_chars):
        added = weigh(text[start:end])
        if weight + added > max_chars and start > fresh:
            yield begin, start
            begin = _overlap_start(text, fresh, start, min(overlap, max_chars - added))
            fresh = start
            weight = weigh(text[begin:start])
        weight += added
    yield begin, section.end


def _overlap_start(text: str, earliest: int, end: int, budget: int) -> int:
    """Returns the start of the overlap before `end`: the first sentence or item that fits."""
    earliest = max(earliest + 1, end - budget)
    tail = text[earliest:end]
    starts = sorted(
        {match.end() for pattern in (_SENTENCE, _ITEM) for match in pattern.finditer(tail)}
    )
    for at in starts:
        if weigh(tail[at:]) <= budget:
            return earliest + at
    return end


def _atoms_of(text: str, section: Section, max_chars: int) -> Iterator[tuple[int, int]]:
    """Yields spans that tile the section, each within the limit and at most one block."""
    for block in section.blocks:
        levels = _levels_for(text, block) if block.end - block.start > max_chars else _PROSE
        yield from _atoms(text, block.start, block.end, max_chars, levels)


def _levels_for(text: str, block: Block) -> tuple[re.Pattern[str], ...]:
    if not block.prose:
        return _LINES
    lines = text.count("\n", block.start, block.end) + 1
    sentences = sum(1 for _ in _SENTENCE.finditer(text, block.start, block.end)) + 1
    return _PROSE if sentences * _LINES_PER_SENTENCE >= lines else _LINES


def _atoms(
    text: str, start: int, end: int, max_chars: int, levels: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    if weigh(part) <= max_chars:
        yield start, end
        return
    if not levels:
        step = max_chars if part.isascii() else max_chars // _WIDE_WEIGHT
        for at in range(start, end, step):
            yield at, min(at + step, end)
        return
    at = start
    for match in levels[0].finditer(part):
        yield from _atoms(text, at, start + match.end(), max_chars, levels[1:])
        at = start + match.end()
    if at < end:
        yield from _atoms(text, at, end, max_chars, levels[1:])
