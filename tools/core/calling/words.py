"""What is said to do next, in the words of its reader: a model that calls tools, or a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

_ASK = "Ask the user to "


class Action(str):
    """What to do next, which speaks of parameters or tools; as a text it calls them by their names.

    Args:
        sentence: A sentence with `{}` for each of them.
        mentions: What they are: the name of a tool or a parameter, or `name=value`.

    Attributes:
        sentence: The sentence.
        mentions: What they are.
    """

    __slots__ = ("mentions", "sentence")
    sentence: str
    mentions: tuple[str, ...]

    def __new__(cls, sentence: str, *mentions: str) -> Self:
        """Makes it."""
        action = super().__new__(cls, sentence.format(*mentions))
        action.sentence, action.mentions = sentence, mentions
        return action


@dataclass(frozen=True, slots=True)
class Words:
    """How a reader names what he can do.

    Attributes:
        command: What is typed for `toolcrib`.
        typed: What a person types for what actions mention, of which he is told nothing else; None
            for a model, which calls it all by its names.
    """

    command: str = "toolcrib"
    typed: Mapping[str, str] | None = None

    def text(self, text: str) -> str:
        """Returns a text with each command `toolcrib …` as it is typed on the user's machine."""
        return text.replace("`toolcrib ", f"`{self.command} ")

    def actions(self, actions: Iterable[str]) -> list[str]:
        """Returns what to do next, without what a person has no words for."""
        told = actions if self.typed is None else (_told(each, self.typed) for each in actions)
        return [self.text(each) for each in told if each]


def _told(action: str, typed: Mapping[str, str]) -> str:
    """What a person is told; nothing where it is not for him."""
    if isinstance(action, Action):
        if not typed.keys() >= set(action.mentions):
            return ""
        action = action.sentence.format(*(typed[each] for each in action.mentions))
    asked = action.removeprefix(_ASK)
    return action if asked == action else f"{asked[0].upper()}{asked[1:]}"
