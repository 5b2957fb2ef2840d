"""The tools that a search found, in few words whatever they are like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from pydantic import BaseModel, FiniteFloat
from typing_extensions import TypedDict

from tools.answers.cards import card, clipped_line
from tools.retrieval.catalogue import Found

__all__ = ["CARDS_CHARACTERS", "FoundTools", "ToolCard"]

FEW = 5
"""Cards whose lines have CARDS_CHARACTERS together; of more, each has a fifth of them."""

CARDS_CHARACTERS = 680
"""170 tokens at four characters each."""

MOST_ALSO = 3
"""Other servers with the same tool that are named."""

ALSO_CHARACTERS = 30
"""What a line says of them."""

NAME_CHARACTERS = 60
"""Of the name of a tool that only a file describes; who calls a tool needs all of its name."""

LEAST_SHOWN = 0.005
"""A score below would look like none at all."""

NONE = "No tool fits. Try other words, fewer tags or a lower min_score."


class ToolCard(TypedDict):
    """A tool in one line.

    Attributes:
        name: What it is called by.
        signature: Its parameters, required ones first; "?" follows what may be left out.
        summary: What it does.
        score: How well it fits, up to 1.
        server: The other server that has it.
        also: More servers that have the same tool.
        note: Why it cannot be called now.
    """

    name: str
    signature: str
    summary: str
    score: FiniteFloat
    server: NotRequired[str]
    also: NotRequired[list[str]]
    note: NotRequired[str]


class FoundTools(BaseModel):
    """The tools that fit, best first.

    Attributes:
        tools: One card a tool.
        available: What there is, where nothing fits.
    """

    tools: list[ToolCard]
    available: str = ""

    @classmethod
    def of(cls, found: Sequence[Found]) -> FoundTools:
        """The cards of what was found."""
        room = CARDS_CHARACTERS // max(min(len(found), FEW), 1) - 1
        return cls(tools=[_card(each, room) for each in found])

    def to_text(self) -> str:
        """One line a tool."""
        if not self.tools:
            return f"{NONE} There are: {self.available}."
        return "\n".join(map(_line, self.tools))


def _card(found: Found, room: int) -> ToolCard:
    """A card whose line has so many characters at most."""
    spec = found.spec
    name = clipped_line(found.record.name, NAME_CHARACTERS) if spec is None else spec.name
    made = ToolCard(name=name, signature="", summary="", score=round(found.score, 3))
    if spec is None:
        made["note"] = "found only: cannot be called here"
    elif spec.barred:
        made["note"] = "in quarantine"
    elif found.is_down:
        made["note"] = "its server is down"
    if spec is not None and spec.server:
        made["server"] = spec.server
    if found.also:
        made["also"] = list(found.also[:MOST_ALSO])
    if spec is not None and spec.barred:
        return made
    said = found.record if spec is None else spec
    schema = found.record.parameters or {} if spec is None else spec.input_schema
    left = room - len(_line(made)) - len(": ")
    made["signature"], made["summary"] = card(schema, said.description, left)
    return made


def _line(made: ToolCard) -> str:
    """A card as a line: what it says of a call, then whatever keeps from making it, its score."""
    named = f"also on {', '.join(made.get('also', ()))}"
    also = f" {clipped_line(named, ALSO_CHARACTERS)}" if "also" in made else ""
    note = f" ({made['note']})" if "note" in made else ""
    said = ": ".join(filter(None, (made["name"] + made["signature"], made["summary"])))
    score = f"{made['score']:.2f}" if made["score"] >= LEAST_SHOWN else "<0.01"
    return f"{said}{also}{note} {score}"
