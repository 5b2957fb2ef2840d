"""The results of several calls as one, whose texts share what one may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from pydantic import PrivateAttr, WithJsonSchema
from typing_extensions import TypedDict

from tools.core.calling.nested import ToolCall
from tools.core.result import ToolModel, ToolResult


class Answer(TypedDict):
    """What one call answered.

    Attributes:
        name: The tool, as it was called.
        is_error: Whether the call failed.
        result: Its structured result, or what a failure says.
        media: Its images and sounds, which stand beside the result.
    """

    name: str
    is_error: bool
    result: dict[str, Any]
    media: NotRequired[list[Annotated[Any, WithJsonSchema({"type": "object"})]]]


class Answers(ToolModel):
    """What the calls answered, in their order.

    Attributes:
        answers: One for each call.
    """

    answers: list[Answer]
    _texts: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, calls: Sequence[ToolCall], results: Sequence[ToolResult], room: int) -> Answers:
        """The results of calls, whose texts share a number of characters."""
        answers = cls(answers=[])
        heads = [
            f"{number}. {call.name}{' failed' if result.is_error else ''}:"
            for number, (call, result) in enumerate(zip(calls, results, strict=True), start=1)
        ]
        texts = [f"{result.text}\n{result.added}".strip() for result in results]
        shares = _shares([len(text) for text in texts], room - sum(len(head) + 2 for head in heads))
        for call, result, head, text, share in zip(
            calls, results, heads, texts, shares, strict=True
        ):
            answer = Answer(name=call.name, is_error=result.is_error, result=result.structured)
            if result.media:
                answer["media"] = list(result.media)
            answers.answers.append(answer)
            answers._texts.append(f"{head}\n{_cut(text, share)}")
        return answers

    def to_text(self) -> str:
        """The texts of all, each under its number and its tool."""
        return "\n".join(self._texts)


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """What each of several texts may have of a room: what the short ones leave, the long ones get.

    Args:
        sizes: Characters of each.
        room: Characters of all together.
    """
    shares = [0] * len(sizes)
    left = room
    waiting = sorted(range(len(sizes)), key=sizes.__getitem__)
    for position, which in enumerate(waiting):
        shares[which] = min(sizes[which], left // (len(sizes) - position))
        left -= shares[which]
    return shares


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    note = f"… [{len(text)} characters in all; call it alone for the rest]"
    return text[: max(room - len(note), 0)] + note
