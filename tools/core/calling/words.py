"""Words suggested actions for their reader: a model that calls tools, or a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

_ASK = "Ask the user to "


class Action(str):
    """A suggested action that mentions parameters or tools; as a string it uses their names.

    Args:
        sentence: A sentence with `{}` for each mention.
        mentions: The mentions: the name of a tool or a parameter, or `name=value`.
    """

    __slots__ = ("mentions", "sentence")
    sentence: str
    mentions: tuple[str, ...]

    def __new__(cls, sentence: str, *mentions: str) -> Self:
        """Formats the sentence with its mentions."""
        action = super().__new__(cls, sentence.format(*mentions))
        action.sentence, action.mentions = sentence, mentions
        return action


@dataclass(frozen=True, slots=True)
class Words:
    """A reader's words for commands, parameters and tools.

    Attributes:
        command: The command to type for `toolcrib`.
        typed: The command-line form of mentions; a person sees only actions whose mentions have
            one. None for a model, which uses the names.
    """

    command: str = "toolcrib"
    typed: Mapping[str, str] | None = None

    def text(self, text: str) -> str:
        """Returns a text with each command `toolcrib …` as the user types it."""
        return text.replace("`toolcrib ", f"`{self.command} ")

    def actions(self, actions: Iterable[str]) -> list[str]:
        """Returns the actions in the reader's words, without those that a person cannot take."""
        told = actions if self.typed is None else (_reword(each, self.typed) for each in actions)
        return [self.text(each) for each in told if each]


def _reword(action: str, typed: Mapping[str, str]) -> str:
    """Rewords an action for a person; returns "" if it does not apply."""
    if isinstance(action, Action):
        if not typed.keys() >= set(action.mentions):
            return ""
        action = action.sentence.format(*(typed[each] for each in action.mentions))
    asked = action.removeprefix(_ASK)
    return action if asked == action else f"{asked[0].upper()}{asked[1:]}"
