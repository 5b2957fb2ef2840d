"""Adds the expected arguments to validation errors, for callers without the schema."""

from __future__ import annotations

from dataclasses import replace

from tools.answers.tool_cards import parameters
from tools.conversion.arguments.validation_errors import schema_errors
from tools.core.calling.nested import ToolCall
from tools.core.registry import ToolRegistry
from tools.core.result import ToolFailure, ToolResult


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
