"""What is shown of what was found: the sentences that fit best, those of Markdown as plain text.

They fit by the question's words, and by a static embedder's rough idea of their meaning: what
answers is often said in other words.
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
from storage.index.embedders.base import understands
from storage.index.embedders.static import StaticEmbedder
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

AROUND = 0.4
"""What a word counts that only the heading, or the line before the list, has."""

MEANING = 5.0
"""What nearness in meaning counts, beside words of which a rare one counts about 3."""

UNRELATED = 0.1
"""Cosine similarity of the static embedder up to which it says nothing."""

AFTER, BEFORE = 0.3, 0.2
"""What standing beside a chosen sentence counts, as a share of the best score."""

LEAST = 0.2
"""What a sentence beside the best has to tell, as a share of that one."""

USUAL = 120
"""Characters of a sentence; a longer one has words by chance."""

LEFT_OUT = "…"

LEAD_IN = 6
"""A long sentence is cut a sixth of the room before the first word that counts."""

LONG_WORD = 24
"""Characters within which the edge of a word is looked for."""

PREFIX = 2
"""Characters that the stemmer leaves as they are: it takes endings away."""

_WORD = r"(\S+)"
_PAIR = r"(?=(\w\w))"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that was found.

    Attributes:
        text: The text.
        place: The title and headings that are shown beside it, and so not within it.
        prose: Whether it is written to be read, and not code or data.
        markdown: Whether it is Markdown, whose signs are not shown.
        note: Whether it may be a note, whose wiki links are shown by their names.
    """

    text: str
    place: tuple[str, ...] = ()
    prose: bool = True
    markdown: bool = True
    note: bool = True

    @classmethod
    def of(cls, text: str, title: str, heading: str, file: str = "") -> Passage:
        """Makes it of a stored chunk.

        Args:
            text: Its content.
            title: The title of its context.
            heading: The headings that it stands under, joined by " > ".
            file: The name of the file that it is from; empty where it is from none.
        """
        markdown, note = is_markdown(file), is_note(file)
        place = tuple(
            plain_line(each, note=note) if markdown else each
            for each in (title, *heading.split(" > "))
        )
        return cls(text, place, is_prose(file), markdown, note)


def snippets(question: str, passages: Sequence[Passage], characters: int) -> list[str]:
    """What to show of each passage: its best sentences in their order, "…" where some are left out.

    A passage that fits is shown whole, and as it is where it is not Markdown. A word counts the
    more the rarer it is among the sentences of all passages (inverse document frequency).

    Args:
        question: What was asked; of an empty one the beginnings are shown.
        passages: What was found.
        characters: The most that is shown of one; half as many in a script without spaces, whose
            characters say more.
    """
    wanted = _Wanted(question)
    texts = [_Text(each, wanted) for each in passages]
    told = (
        own | around for each in texts for own, around in zip(each.terms, each.around, strict=True)
    )
    counts = Counter(term for terms in told for term in terms)
    pieces = sum(len(each.pieces) for each in texts)
    weights = {term: math.log1p(pieces / count) for term, count in counts.items()}
    return [_Choice(each, weights, characters).text() for each in texts]


class _Wanted:
    """The terms of a question, and its meaning."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._embedder = StaticEmbedder()
        self._terms = frozenset(terms_of(question))
        self._begin = {term[:PREFIX] for term in self._terms}

    def in_text(self, text: str) -> frozenset[str]:
        """Returns those that a text has; a plain word that begins like none is not analysed."""
        words = [word for word in text.split() if self._may_have(word.rstrip(".,;:!?"))]
        return self._terms.intersection(tokenize(" ".join(words))) if words else frozenset()

    def nearness(self, texts: Sequence[str]) -> list[float]:
        """How near each text is in meaning, 0 and up; 0 where that cannot be told."""
        unknown = [0.0] * len(texts)
        if not self._terms or not understands(self._embedder, self._question):
            return unknown
        try:
            similarities = self._embedder.embed_passages(texts) @ self._vector
        except StorageUnavailableError:
            return unknown  # words still tell
        return [max(float(each) - UNRELATED, 0.0) for each in similarities]

    @cached_property
    def _vector(self) -> Vectors:
        return self._embedder.embed_query(self._question)

    def _may_have(self, word: str) -> bool:
        is_plain = word.isascii() and word.isalpha() and (word.islower() or word.istitle())
        return not is_plain or word[:PREFIX].lower() in self._begin


class _Text:
    """A passage's pieces, with those of the wanted terms that each has, and has around it."""

    def __init__(self, passage: Passage, wanted: _Wanted) -> None:
        self.pieces = pieces_of(
            passage.text, prose=passage.prose, markdown=passage.markdown, note=passage.note
        )
        self.verbatim = "" if passage.markdown else passage.text.strip("\n").rstrip()
        self.place = passage.place
        self._wanted = wanted
        self.spaceless = not passage.text.isascii() and is_spaceless(passage.text)
        self.terms = [wanted.in_text(piece.text) for piece in self.pieces]
        beside = [f"{piece.heading}\n{piece.lead}" for piece in self.pieces]
        terms = {said: wanted.in_text(said) for said in set(beside)}
        self.around = [terms[said] for said in beside]

    def nearness(self) -> list[float]:
        """Returns how near each piece is in meaning."""
        return self._wanted.nearness([piece.text for piece in self.pieces])


class _Choice:
    """Chooses what is shown of one passage."""

    def __init__(self, text: _Text, weights: Mapping[str, float], characters: int) -> None:
        self._text = text
        self._pieces = text.pieces
        self._weights = weights
        self._characters = characters // 2 if text.spaceless else characters

    def text(self) -> str:
        """Returns what is shown."""
        whole = self._text.verbatim or self._shown(range(len(self._pieces)))
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
            if len(self._shown(more)) <= self._characters:
                chosen = more
                for beside, share in ((best + 1, AFTER), (best - 1, BEFORE)):
                    if beside in left:
                        left[beside] += share * top
            elif not chosen:
                return self._clipped(self._pieces[best].text)
        return self._shown(chosen)

    def _scores(self) -> dict[int, float]:
        """What each piece would tell, in the order of the text."""
        text, near = self._text, self._text.nearness()
        scores = {}
        for index, (own, around) in enumerate(zip(text.terms, text.around, strict=True)):
            words = self._sum(own) + AROUND * self._sum(around - own)
            scores[index] = words / self._discount(index) + MEANING * near[index]
        return scores

    def _sum(self, terms: Iterable[str]) -> float:
        return sum([self._weights.get(term, 0.0) for term in terms])

    def _discount(self, index: int) -> float:
        return math.sqrt(max(len(self._pieces[index].text) / USUAL, 1.0))

    def _shown(self, indices: Sequence[int]) -> str:
        """The pieces as one text."""
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
                text += f"{piece.heading}:{_blank(piece)}"
            if piece.lead not in {"", lead, self._pieces[last].text if text else ""}:
                text += f"{piece.lead}\n"
            text += piece.text
            last, heading, lead = index, piece.heading, piece.lead
        return f"{text} {LEFT_OUT}" if last < len(self._pieces) - 1 else text

    def _clipped(self, text: str) -> str:
        """The part of a long piece that has most of the question, at whole words."""
        room = self._characters - 2 * len(f"{LEFT_OUT} ")
        words = re.finditer(_PAIR if is_spaceless(text) else _WORD, text)
        values = ((each.start(), self._sum(set(tokenize(each[1])))) for each in words)
        told = [(at, value) for at, value in values if value]
        starts = [max(at - room // LEAD_IN, 0) for at, _ in told]
        sums = [sum(value for at, value in told if start <= at < start + room) for start in starts]
        start = starts[sums.index(max(sums))] if sums else 0
        start = max(min(start, len(text) - room), 0)
        end = start + room
        if start:
            start = text.find(" ", start, start + LONG_WORD) + 1 or start
        if end < len(text):
            end = max(text.rfind(" ", end - LONG_WORD, end + 1), 0) or end
        before = f"{LEFT_OUT} " if start else ""
        return before + text[start:end].strip() + (f" {LEFT_OUT}" if end < len(text) else "")


def _between(one: Piece, other: Piece) -> str:
    if other.is_line or one.is_line or one.block != other.block:
        return "\n"
    return "" if is_unspaced(one.text, other.text) else " "


def _gap(text: str, one: Piece, other: Piece) -> str:
    if not text:
        return f"{LEFT_OUT} "
    return f"\n{LEFT_OUT}\n" if one.is_line and other.is_line else f" {LEFT_OUT} "


def _blank(piece: Piece) -> str:
    return "\n" if piece.is_line else " "
