"""Results of calls: combines several into one, and adds what arguments were expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from pydantic import PrivateAttr, WithJsonSchema
from typing_extensions import TypedDict

from tools.answers.tool_cards import parameters
from tools.conversion.arguments.validation_errors import schema_errors
from tools.core.calling.nested import ToolCall
from tools.core.registry import ToolRegistry
from tools.core.result import ToolFailure, ToolModel, ToolResult


class Answer(TypedDict):
    """The result of one call.

    Attributes:
        name: The name of the tool, as called.
        is_error: Whether the call failed.
        result: Its structured result, or its error.
        media: Its images and sounds, which are not part of the result.
    """

    name: str
    is_error: bool
    result: dict[str, Any]
    media: NotRequired[list[Annotated[Any, WithJsonSchema({"type": "object"})]]]


class Answers(ToolModel):
    """The results of calls, in order.

    Attributes:
        answers: One result per call.
    """

    answers: list[Answer]
    _texts: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> Answers:
        """Combines results."""
        answers = cls(answers=[])
        heads = [
            f"{number}. {call.name}{' failed' if result.is_error else ''}:"
            for number, (call, result) in enumerate(zip(calls, results, strict=True), start=1)
        ]
        texts = [f"{result.text}\n{result.added}".strip() for result in results]
        for call, result, head, text in zip(calls, results, heads, texts, strict=True):
            answer = Answer(name=call.name, is_error=result.is_error, result=result.structured)
            if result.media:
                answer["media"] = list(result.media)
            answers.answers.append(answer)
            answers._texts.append(f"{head}\n{text}")
        return answers

    def to_text(self) -> str:
        """Joins the texts, each under its number and tool."""
        return "\n".join(self._texts)


def advised(result: ToolResult, registry: ToolRegistry, call: ToolCall) -> ToolResult:
    """Returns the result; a validation error also lists the expected arguments.

    Other servers word their errors in their own ways, so their failed calls are validated here.
    """
    spec = registry.get(call.name)
    if spec is None or not result.is_error:
        return result
    wrong = schema_errors(spec.input_schema, call.arguments) if spec.server else []
    if not wrong and result.structured.get("error_type") != "invalid_arguments":
        return result
    advice = [*wrong, f"Its parameters are {parameters(spec)}."]
    if result.verbatim is not None:
        return replace(result, added="\n".join(advice))
    failure = ToolFailure.model_validate(result.structured)
    failure.next_actions += advice
    return replace(result, structured=failure.model_dump(mode="json"), text=failure.to_text())
