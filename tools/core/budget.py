"""The text budget: how much a model is made to read, and what it is told of the rest."""

from __future__ import annotations

from dataclasses import replace

from tools.core.result import ToolResult
from tools.core.spec import ToolSpec

__all__ = ["fit_text"]

NARROWING = ("ranges", "top_k", "limit", "max_results", "depth", "return_chunks", "cursor")
"""Arguments that ask for less, as the catalogue names them."""


def fit_text(result: ToolResult, spec: ToolSpec, budget: int) -> ToolResult:
    """The result with a text of at most `budget` characters.

    A longer text is cut at its last line end that fits and closed by a note that says how much is
    shown and how to get the rest. The structured result stays whole.

    Args:
        result: What the tool answered.
        spec: The tool, whose arguments the note names.
        budget: Characters, at least 1,000, so that the note always fits.
    """
    if len(result.text) <= budget:
        return result
    note = _note(result, spec)
    room = budget - len(note.format(shown=len(result.text)))
    shown = _cut_at_line(result.text, room)
    return replace(result, text=shown + note.format(shown=len(shown)))


def _note(result: ToolResult, spec: ToolSpec) -> str:
    properties = spec.input_schema.get("properties", {})
    narrowing = [name for name in NARROWING if name in properties]
    ask = f"ask for a part with {' or '.join(narrowing)}" if narrowing else "ask for less"
    return (
        f"\n[Cut here: {{shown}} of {len(result.text)} characters are shown. "
        f"For the rest, {ask}, or read the structured result, which is whole.]"
    )


def _cut_at_line(text: str, room: int) -> str:
    """The first `room` characters, without a last line that would be cut in its middle."""
    line_end = text.rfind("\n", 0, room + 1)
    return text[: line_end if line_end > room // 2 else room]
