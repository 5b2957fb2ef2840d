"""What some models were trained to read before a text, to tell questions from passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Prefixes"]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The words put before every text; part of a model's id, for they change its vectors.

    Attributes:
        query: Before a query, with its blank: "query: " for the E5 family.
        passage: Before a passage: "passage: " for the E5 family.
    """

    query: str = ""
    passage: str = ""

    def of_query(self, text: str) -> str:
        """A query as the model reads it."""
        return self.query + text

    def of_passages(self, texts: Sequence[str]) -> list[str]:
        """Passages as the model reads them."""
        return [self.passage + text for text in texts]

    def __str__(self) -> str:
        return f" {self.query!r} {self.passage!r}" if self.query or self.passage else ""
