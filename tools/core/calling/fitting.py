"""Replaces results that are too large for a model by a preview and a handle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage.keeping.kept_results import KeptResults, Owner
from tools.core.calling.call import Call, ResultLimits
from tools.core.calling.result_views import View, abridged
from tools.core.content import Block, EmbeddedResource
from tools.core.result import Preview, ToolFailure, ToolResult
from tools.core.spec import Effect

NOTE_KEY = "toolcrib_note"
"""The key of the note in abridged structured content, where its schema allows one."""

ABRIDGED_TEXT = 300
"""Maximum characters of a text in abridged structured content."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Keeps large results, and gives models a preview of them.

    Attributes:
        kept: Where they are kept; None keeps nothing, so that only a preview is left.
    """

    limits: ResultLimits
    kept: KeptResults | None = None

    def fit(self, result: ToolResult, call: Call) -> ToolResult:
        """Returns a preview of a result that exceeds the limit of its tool."""
        return self._fit(result, call, self.limits.of(call.spec.name, call.context.tool_set))

    def share(self, results: Sequence[ToolResult], caller: Call) -> list[ToolResult]:
        """Fits several results into the limit of one: what small ones leave goes to large ones."""
        room = self.limits.of(caller.spec.name, caller.context.tool_set)
        if not room:
            return list(results)
        fitted = list(results)
        sizes = [each.size(both=False) for each in results]
        order = sorted(range(len(sizes)), key=sizes.__getitem__)
        for position, which in enumerate(order):
            share = max(room // (len(order) - position) - 80, 1)
            fitted[which] = self._fit(results[which], caller, share)
            room -= min(sizes[which], share)
        return fitted

    def _fit(self, result: ToolResult, call: Call, limit: int) -> ToolResult:
        if not limit or result.size(both=call.spec.source != "builtin") <= limit:
            return result
        view = View.of(result.whole_text, {} if result.is_error else result.structured)
        note = self._note(view, call)
        # A program's error may be anywhere in its output, often at its end.
        parts, tail = (1, 0.5) if Effect.EXECUTE in call.spec.effects else (4, 0.25)
        preview = view.preview(max(min(limit // parts, limit - len(note) - 50), 200), tail)
        text = f"{note}\n{preview}"
        media = tuple(each for each in result.media if not isinstance(each, EmbeddedResource))
        blocks: tuple[Block, ...] = (text, *media) if result.blocks else ()
        fitted = replace(result, text=text, media=media, blocks=blocks, verbatim=None, added="")
        if result.is_error:
            failure = ToolFailure.model_validate(result.structured)
            failure = failure.model_copy(update={"message": text})
            return replace(fitted, structured=failure.model_dump(mode="json"))
        structured, form = _structured(result.structured, note, call)
        return replace(fitted, structured=structured, preview=form)

    def _note(self, view: View, call: Call) -> str:
        size = f"[Large result ({view.measure()})"
        handle = ""
        if self.kept is not None:
            owner = Owner(call.context.identity.user_id, call.context.session_id)
            content = {"text": view.text if view.value is None else "", "value": view.value}
            try:
                handle = self.kept.put(owner, content)
            except OSError:
                handle = ""
        if not handle:
            return f"{size}; it could not be kept: ask for less. A preview follows.]"
        verbs = "grep, lines" if view.value is None else "path, grep, lines"
        verbs += ", rows" if view.tables() else ""
        return (
            f"{size}, kept whole: read_result(handle={handle!r}) with {verbs} finds what you need"
            " (through call_tool if it is not listed). A preview follows.]"
        )


def _structured(whole: dict[str, Any], note: str, call: Call) -> tuple[dict[str, Any], Preview]:
    """Returns the structured result in short, if that fits the declared schema."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # loaded on first use

    schema = call.spec.output_schema
    if schema is None or call.spec.is_proxy:
        return {NOTE_KEY: note}, "text"
    check = Draft202012Validator(schema)
    short = abridged(whole, ABRIDGED_TEXT)
    for candidate in ({NOTE_KEY: note, **short}, short):
        if check.is_valid(candidate):
            return candidate, "valid"
    return {NOTE_KEY: note}, "unfit"
