"""Snippets: selects the best sentences of a found text; Markdown becomes plain text.

Sentences are scored by the question's words, and by a static embedder's approximate similarity,
because answers often use other words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from storage.errors import StorageUnavailableError
from storage.index.embedders.bundled import StaticEmbedder
from storage.index.embedding_models import understands
from storage.reading.plain_text import (
    Piece,
    is_markdown,
    is_note,
    is_prose,
    is_unspaced,
    pieces_of,
    plain_line,
)
from storage.tokenize import is_spaceless, terms_of, tokenize

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

AROUND = 0.4  # the weight of a word that only the heading, or the line before the list, contains
MEANING = 5.0  # the weight of semantic similarity; a rare word weighs about 3
UNRELATED = 0.1  # cosine similarity of the static embedder up to which it means nothing
# The bonus of a sentence next to a chosen one, as a share of the best score.
AFTER, BEFORE = 0.3, 0.2
LEAST = 0.2  # minimum score of further sentences, as a share of the best one
USUAL = 120  # characters of a usual sentence; longer ones match words by chance
LEFT_OUT = "…"
LEAD_IN = 6  # a long sentence is cut a sixth of the room before the first matching word
LONG_WORD = 24  # characters within which to look for a word boundary
PREFIX = 2  # characters that the stemmer keeps, because it only removes endings
_WORD = r"(\S+)"
_PAIR = r"(?=(\w\w))"


@dataclass(frozen=True, slots=True)
class Passage:
    """A found text."""

    text: str
    # The title and headings shown next to it, and therefore not within it.
    place: tuple[str, ...] = ()
    prose: bool = True  # whether it is prose, not code or data
    markdown: bool = True  # whether it is Markdown, whose syntax is not shown
    note: bool = True  # whether it may be a note, whose wiki links are replaced by their names

    @classmethod
    def of(cls, text: str, title: str, heading: str, file: str = "") -> Passage:
        """Builds it from a stored chunk, and the name of its file if it has one."""
        markdown, note = is_markdown(file), is_note(file)
        place = tuple(
            plain_line(each, note=note) if markdown else each
            for each in (title, *heading.split(" > "))
        )
        return cls(text, place, is_prose(file), markdown, note)


def snippets(question: str, passages: Sequence[Passage], characters: int) -> list[str]:
    """Returns the best sentences of each passage in order, with "…" for omissions.

    A passage that fits is shown whole, and unchanged if it is not Markdown. A word weighs more the
    rarer it is among the sentences of all passages (inverse document frequency). For an empty
    question the beginnings are shown. In scripts without spaces, whose characters carry more, a
    passage gets half as many `characters`.
    """
    wanted = _Wanted(question)
    texts = [_Text(each, wanted) for each in passages]
    present = (
        own | around for each in texts for own, around in zip(each.terms, each.around, strict=True)
    )
    counts = Counter(term for terms in present for term in terms)
    pieces = sum(len(each.pieces) for each in texts)
    weights = {term: math.log1p(pieces / count) for term, count in counts.items()}
    return [_Choice(each, weights, characters).text() for each in texts]


class _Wanted:
    def __init__(self, question: str) -> None:
        self._question = question
        self._embedder = StaticEmbedder()
        self._terms = frozenset(terms_of(question))
        self._begin = {term[:PREFIX] for term in self._terms}

    def in_text(self, text: str) -> frozenset[str]:
        """Returns the wanted terms in a text; words with other prefixes are not analysed."""
        words = []
        for word in text.split():
            bare = word.rstrip(".,;:!?")
            is_plain = bare.isascii() and bare.isalpha() and (bare.islower() or bare.istitle())
            if not is_plain or bare[:PREFIX].lower() in self._begin:
                words.append(word)
        return self._terms.intersection(tokenize(" ".join(words))) if words else frozenset()

    def nearness(self, texts: Sequence[str]) -> list[float]:
        """Returns the semantic nearness of each text, 0 and up; 0 if unknown."""
        unknown = [0.0] * len(texts)
        if not self._terms or not understands(self._embedder, self._question):
            return unknown
        try:
            similarities = self._embedder.embed_passages(texts) @ self._vector
        except StorageUnavailableError:
            return unknown  # words still count
        return [max(float(each) - UNRELATED, 0.0) for each in similarities]

    @cached_property
    def _vector(self) -> Vectors:
        return self._embedder.embed_query(self._question)


class _Text:
    """A passage's pieces, with the wanted terms in and around each."""

    def __init__(self, passage: Passage, wanted: _Wanted) -> None:
        self.pieces = pieces_of(
            passage.text, prose=passage.prose, markdown=passage.markdown, note=passage.note
        )
        self.verbatim = "" if passage.markdown else passage.text.strip("\n").rstrip()
        self.place = passage.place
        self._wanted = wanted
        self.spaceless = not passage.text.isascii() and is_spaceless(passage.text)
        self.terms = [wanted.in_text(piece.text) for piece in self.pieces]
        context = [f"{piece.heading}\n{piece.lead}" for piece in self.pieces]
        terms = {text: wanted.in_text(text) for text in set(context)}
        self.around = [terms[text] for text in context]

    def nearness(self) -> list[float]:
        """Returns the semantic nearness of each piece."""
        return self._wanted.nearness([piece.text for piece in self.pieces])


class _Choice:
    def __init__(self, text: _Text, weights: Mapping[str, float], characters: int) -> None:
        self._text = text
        self._pieces = text.pieces
        self._weights = weights
        self._characters = characters // 2 if text.spaceless else characters

    def text(self) -> str:
        """Returns the text to show."""
        whole = self._text.verbatim or self._join_pieces(range(len(self._pieces)))
        if len(whole) <= self._characters:
            return whole
        chosen: list[int] = []
        left = self._scores()
        top = max(left.values()) or 1.0
        while left:
            best = max(left, key=left.__getitem__)
            value = left.pop(best)
            if chosen and value < LEAST * top:
                break
            more = sorted([*chosen, best])
            if len(self._join_pieces(more)) <= self._characters:
                chosen = more
                for neighbour, share in ((best + 1, AFTER), (best - 1, BEFORE)):
                    if neighbour in left:
                        left[neighbour] += share * top
            elif not chosen:
                return self._clip(self._pieces[best].text)
        return self._join_pieces(chosen)

    def _scores(self) -> dict[int, float]:
        text, near = self._text, self._text.nearness()
        scores = {}
        for index, (own, around) in enumerate(zip(text.terms, text.around, strict=True)):
            words = self._sum(own) + AROUND * self._sum(around - own)
            discount = math.sqrt(max(len(self._pieces[index].text) / USUAL, 1.0))
            scores[index] = words / discount + MEANING * near[index]
        return scores

    def _sum(self, terms: Iterable[str]) -> float:
        return sum([self._weights.get(term, 0.0) for term in terms])

    def _join_pieces(self, indices: Sequence[int]) -> str:
        text, last, heading, lead = "", -1, "", ""
        for index in indices:
            piece = self._pieces[index]
            if text and piece.lead == self._pieces[last].text:
                text += "\n"
            elif index > last + 1:
                text += _gap(text, self._pieces[last], piece)
            elif text:
                text += _between(self._pieces[last], piece)
            if piece.heading != heading and piece.heading not in self._text.place:
                text += piece.heading + (":\n" if piece.is_line else ": ")
            if piece.lead not in {"", lead, self._pieces[last].text if text else ""}:
                text += f"{piece.lead}\n"
            text += piece.text
            last, heading, lead = index, piece.heading, piece.lead
        return f"{text} {LEFT_OUT}" if last < len(self._pieces) - 1 else text

    def _clip(self, text: str) -> str:
        """Cuts the part of a long piece with most of the question, at word boundaries."""
        room = self._characters - 2 * len(f"{LEFT_OUT} ")
        words = re.finditer(_PAIR if is_spaceless(text) else _WORD, text)
        values = ((each.start(), self._sum(set(tokenize(each[1])))) for each in words)
        matches = [(at, value) for at, value in values if value]
        starts = [max(at - room // LEAD_IN, 0) for at, _ in matches]
        sums = [
            sum(value for at, value in matches if start <= at < start + room) for start in starts
        ]
        start = starts[sums.index(max(sums))] if sums else 0
        start = max(min(start, len(text) - room), 0)
        end = start + room
        if start:
            start = text.find(" ", start, start + LONG_WORD) + 1 or start
        if end < len(text):
            end = max(text.rfind(" ", end - LONG_WORD, end + 1), 0) or end
        before = f"{LEFT_OUT} " if start else ""
        return before + text[start:end].strip() + (f" {LEFT_OUT}" if end < len(text) else "")


def _gap(text: str, one: Piece, other: Piece) -> str:
    if not text:
        return f"{LEFT_OUT} "
    return f"\n{LEFT_OUT}\n" if one.is_line and other.is_line else f" {LEFT_OUT} "


def _between(one: Piece, other: Piece) -> str:
    if other.is_line or one.is_line or one.block != other.block:
        return "\n"
    return "" if is_unspaced(one.text, other.text) else " "
