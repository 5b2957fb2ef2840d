"""Scales images, in a process that can be killed, because they may be hostile."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

from storage.errors import UnreadableDocumentError
from storage.reading.isolated import run_isolated

if TYPE_CHECKING:  # loaded in the process that reads the image
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

SHOWN = {each: f"image/{each.lower()}" for each in ("PNG", "JPEG", "GIF", "WEBP")}
"""Formats that clients pass to models, and their media types."""

READ = (*SHOWN, "BMP", "TIFF")  # others, such as EPS, would start further programs
SHOWN |= {"MPO": "image/jpeg"}  # several JPEGs in one file, of which the first is shown

EDGE = 1_568  # pixels of the longer edge that Claude uses; it scales what has more
MOST_BYTES = 3_750_000  # limit on the bytes of an image, so that its Base64 has at most 5 MB
MOST_PIXELS = 100_000_000  # limit on the pixels that are decoded
SECONDS = 20.0
LEAST_EDGE = 64
PNG = b"\x89PNG\r\n\x1a\n"

Region = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels."""


@dataclass(frozen=True, slots=True)
class ScaledImage:
    """An image within the limits.

    Attributes:
        mime_type: Its actual type; empty if unknown.
        data: Its file; empty if the original is within the limits.
        size: Its width and height.
        original: Those of the original, turned by its EXIF data.
        frames: Frames of the original, of which this is the first.
    """

    mime_type: str
    data: bytes = b""
    size: tuple[int, int] = (0, 0)
    original: tuple[int, int] = (0, 0)
    frames: int = 1


def is_small_png(data: bytes, edge: int) -> bool:
    """Returns whether a file is a PNG within the limits, by its first bytes."""
    is_png = data.startswith(PNG) and len(PNG) + 16 <= len(data) <= MOST_BYTES
    return is_png and max(struct.unpack_from(">II", data, len(PNG) + 8)) <= int(edge)


async def scale_image(data: bytes, edge: int, region: Region | None = None) -> ScaledImage:
    """Returns an image, or a region of it, whose longer edge has at most `edge` pixels.

    Raises:
        UnreadableDocumentError: If it is damaged or too large.
    """
    return await run_isolated(partial(_scaled, data, edge, region), name="It", timeout=SECONDS)


def _scaled(data: bytes, edge: int, region: Region | None) -> ScaledImage:
    import PIL.Image

    PIL.Image.MAX_IMAGE_PIXELS = None  # MOST_PIXELS counts what is decoded
    try:
        with PIL.Image.open(BytesIO(data), formats=READ) as image:
            return _within_limits(image, len(data), edge, region)
    except PIL.UnidentifiedImageError:
        if len(data) <= MOST_BYTES:
            return ScaledImage("")
        raise UnreadableDocumentError(f"It has more than {MOST_BYTES:,} bytes.") from None
    except (UnreadableDocumentError, MemoryError):
        raise
    except Exception as error:  # decoders raise any kind of exception
        raise UnreadableDocumentError(f"It cannot be read: {str(error)[:200]}.") from error


def _within_limits(image: ImageFile, size: int, edge: int, region: Region | None) -> ScaledImage:
    from PIL import Image, ImageOps

    kind, whole, frames = str(image.format), image.size, int(getattr(image, "n_frames", 1))
    if max(*whole) <= edge and size <= MOST_BYTES and kind in SHOWN and region is None:
        return ScaledImage(SHOWN[kind], b"", whole, whole, frames)
    if region is None:
        image.draft("RGB", (edge, edge))  # a JPEG is decoded smaller
    stored = image.size
    if stored[0] * stored[1] > MOST_PIXELS:
        told = f"It has {whole[0]} x {whole[1]} pixels; {MOST_PIXELS:,} can be read."
        raise UnreadableDocumentError(told)
    ImageOps.exif_transpose(image, in_place=True)
    whole = whole if image.size == stored else (whole[1], whole[0])
    shown: Image.Image = image
    if region is not None:
        (left, top, right, bottom), (wide, high) = region, image.size
        shown = image.crop((max(left, 0), max(top, 0), min(right, wide), min(bottom, high)))
    if shown.mode.startswith("I;16"):
        shown = shown.point(lambda value: value / 256).convert("L")
    shown = shown.convert("RGBA" if shown.has_transparency_data else "RGB")
    shown.thumbnail((edge, edge), Image.Resampling.LANCZOS)
    encoded, mime_type = _encoded(shown, is_photo=kind in {"JPEG", "MPO"})
    return ScaledImage(mime_type, encoded, shown.size, whole, frames)


def _encoded(image: Image, *, is_photo: bool) -> tuple[bytes, str]:
    """Encodes a photo as JPEG, others as PNG if that is small enough; shrinks it if need be."""
    import PIL.Image

    while True:
        for kind in ("JPEG",) if is_photo else ("PNG", "JPEG"):
            file, plain = BytesIO(), image
            if kind == "JPEG" and image.mode == "RGBA":
                white = PIL.Image.new("RGBA", image.size, "white")
                plain = PIL.Image.alpha_composite(white, image).convert("RGB")
            plain.save(file, kind)
            if file.tell() <= MOST_BYTES or max(image.size) <= LEAST_EDGE:
                return file.getvalue(), SHOWN[kind]
        image.thumbnail((max(image.size) * 3 // 4,) * 2)
