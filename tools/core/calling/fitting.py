"""Replaces results that are too large for a model by a preview and a handle, and scales images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread

from storage.errors import UnreadableDocumentError
from storage.keeping.kept_results import KeptResults, Owner
from storage.reading.images import is_small_png, scale_image
from tools.core.calling.call import Call, ResultLimits
from tools.core.calling.result_views import View, abridged
from tools.core.content import Block, EmbeddedResource, Media, encode_block
from tools.core.result import Preview, ToolFailure, ToolResult
from tools.core.spec import Effect

NOTE_KEY = "toolcrib_note"
"""The key of the note in abridged structured content, where its schema allows one."""

ABRIDGED_TEXT = 300
"""Maximum characters of a text in abridged structured content."""

MOST_IMAGES = 50
"""Maximum images of one result that are examined; more are passed on as they are."""

READER = "read_result"
"""The tool that reads what is kept, and shows original images."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Keeps large results, and gives models a preview of them, and scaled images.

    Attributes:
        kept: Where they are kept; None keeps nothing, so that only a preview is left.
        image_pixels: Maximum pixels of an image's longer edge; 0 sets no limit.
    """

    limits: ResultLimits
    kept: KeptResults | None = None
    image_pixels: int = 0

    async def fit(self, result: ToolResult, call: Call, limit: int) -> ToolResult:
        """Returns a preview of a result that exceeds a limit, if it is not 0, and scaled images."""
        if limit:
            result = await anyio.to_thread.run_sync(self._preview, result, call, limit)
        return result if call.spec.is_proxy else await self._with_images(result, call)

    async def share(self, results: Sequence[ToolResult], caller: Call) -> list[ToolResult]:
        """Fits several results into the limit of one: what small ones leave goes to large ones."""
        fitted = list(results)
        room = self.limits.of(caller.spec.name, caller.context.tool_set)
        sizes = [each.size(both=False) for each in fitted]
        order = sorted(range(len(sizes)), key=sizes.__getitem__)
        for position, which in enumerate(order if room else ()):
            share = max(room // (len(order) - position) - 80, 1)
            if sizes[which] > share:
                fit = partial(self._preview, fitted[which], caller, share)
                fitted[which] = await anyio.to_thread.run_sync(fit)
            room -= min(sizes[which], share)
        return [await self._with_images(each, caller) for each in fitted]

    async def _with_images(self, result: ToolResult, call: Call) -> ToolResult:
        """Returns a result with images that clients show, and notes on those it replaced."""
        parts = (*result.media, *result.blocks)
        images = {each: None for each in parts if isinstance(each, Media) and each.kind == "image"}
        if not self.image_pixels or not images or call.spec.name == READER:
            return result
        found = [await self._image(each, at, call) for at, each in enumerate(images, start=1)]
        replaced = {
            whole: part for whole, (part, _) in zip(images, found, strict=True) if part is not whole
        }
        if not replaced:
            return result
        shown = cast("Mapping[object, Any]", replaced)
        media, blocks = (
            tuple(filter(None, (shown.get(each, each) for each in some)))
            for some in (result.media, result.blocks)
        )
        notes = "\n".join(note for _, note in found if note)
        blocks = (*blocks, notes) if blocks and notes else blocks
        fitted = replace(result, media=media, blocks=blocks, replaced=replaced)
        if result.verbatim is not None:
            return replace(fitted, added=f"{result.added}\n{notes}".strip("\n"))
        return replace(fitted, text=f"{result.text}\n{notes}".strip("\n"))

    async def _image(self, image: Media, number: int, call: Call) -> tuple[Media | None, str]:
        """Returns what is shown of an image, and a note if that is not the image itself."""
        is_fine = image.mime_type == "image/png" and is_small_png(image.data, self.image_pixels)
        if is_fine or number > MOST_IMAGES:
            return image, ""
        size, shown = f"{len(image.data):,} bytes", None
        try:
            scaled = await scale_image(image.data, self.image_pixels)
        except (UnreadableDocumentError, OSError) as error:  # or no process could be started
            told = f"[Image {number} ({image.mime_type}, {size}) is left out. {error}"
        else:
            if not scaled.data:  # some servers call a JPEG a PNG, which clients refuse
                is_right = scaled.mime_type in {"", image.mime_type}
                return image if is_right else Media("image", image.data, scaled.mime_type), ""
            (wide, high), now = scaled.original, f"{scaled.size[0]} x {scaled.size[1]}"
            first = f", the first of {scaled.frames} frames" if scaled.frames > 1 else ""
            told = f"[Image {number} of {wide} x {high} pixels ({size}) is shown as {now}{first}."
            shown = Media("image", scaled.data, scaled.mime_type)
        keep = partial(self._keep, {"image": encode_block(image)}, call)
        if handle := await anyio.to_thread.run_sync(keep):
            told += f" {READER}({handle=!r}) gives the original, with region a part of it."
        return shown, f"{told}]"

    def _preview(self, result: ToolResult, call: Call, limit: int) -> ToolResult:
        view = View.of(result.whole_text, {} if result.is_error else result.structured)
        note = self._note(view, call)
        # A program's error may be anywhere in its output, often at its end.
        is_program = call.spec.source == "builtin" and Effect.EXECUTE in call.spec.effects
        parts, tail = (1, 0.5) if is_program else (4, 0.25)
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
        content = {"text": view.text if view.value is None else "", "value": view.value}
        handle = self._keep(content, call)
        if not handle:
            return f"{size}; it could not be kept: ask for less. A preview follows.]"
        verbs = "grep, lines" if view.value is None else "path, grep, lines"
        verbs += ", rows" if view.tables else ""
        return (
            f"{size}, kept whole: {READER}(handle={handle!r}) with {verbs} finds what you need"
            " (through call_tool if it is not listed). A preview follows.]"
        )

    def _keep(self, content: dict[str, Any], call: Call) -> str:
        """Keeps a result and returns its handle; empty if it cannot be kept."""
        owner = Owner(call.context.identity.user_id, call.context.session_id)
        try:
            return "" if self.kept is None else self.kept.put(owner, content)
        except OSError:
            return ""


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
