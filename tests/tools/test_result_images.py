"""Images of results: scaled, kept whole, and left out where no client could show them."""

import base64
import os
import re
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from itertools import count
from typing import Any

import mcp_types as types
import pytest
from PIL import Image

from storage.reading.images import EDGE, MOST_BYTES, PNG, is_small_png, scale_image
from tests.tools.conftest import Crib
from tools.authoring import Media
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.spec import Effect, ToolScope

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("workers")]


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def bomb(wide: int, high: int) -> bytes:
    """A PNG whose header tells of more pixels than it has."""
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    packed = zlib.compress(bytes(1_000_000))
    return PNG + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


WIDE = (4_000, 3_000)
FRAMES = [Image.new("P", (2_000, 100), color) for color in range(3)]
SCALED: dict[str, Callable[[], tuple[bytes, str, tuple[int, int]]]] = {
    "PNG": lambda: (encoded(Image.new("RGB", WIDE), "PNG"), "image/png", (1_568, 1_176)),
    "grey of 16 bits": lambda: (
        encoded(Image.new("I;16", WIDE, 40_000), "PNG"), "image/png", (1_568, 1_176)
    ),
    "JPEG in CMYK": lambda: (
        encoded(Image.new("CMYK", WIDE), "JPEG"), "image/jpeg", (1_568, 1_176)
    ),
    "turned JPEG": lambda: (
        encoded(Image.new("RGB", WIDE), "JPEG", exif=turned()), "image/jpeg", (1_176, 1_568)
    ),
    "WebP": lambda: (encoded(Image.new("RGB", WIDE), "WEBP"), "image/png", (1_568, 1_176)),
    "animated GIF": lambda: (
        encoded(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]), "image/png", (1_568, 78)
    ),
    "small TIFF": lambda: (encoded(Image.new("RGB", (40, 30)), "TIFF"), "image/png", (40, 30)),
    "noise of many bytes": lambda: (
        encoded(Image.frombytes("RGB", (1_500, 1_500), os.urandom(6_750_000)), "PNG"),
        "image/jpeg",
        (1_500, 1_500),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALED)
async def test_an_image_is_scaled_to_what_clients_show(name: str) -> None:
    data, mime_type, size = SCALED[name]()
    scaled = await scale_image(data, EDGE)
    assert (scaled.mime_type, scaled.size) == (mime_type, size)
    assert len(scaled.data) <= MOST_BYTES
    with Image.open(BytesIO(scaled.data)) as image:
        assert (image.size, image.mode) == (size, "RGB")
        shades = {"grey of 16 bits": (156,) * 3, "JPEG in CMYK": (255,) * 3}
        if name in shades:
            assert image.getpixel((5, 5)) == shades[name]


async def test_transparency_stays() -> None:
    scaled = await scale_image(encoded(Image.new("RGBA", WIDE, (0, 0, 9, 100)), "PNG"), EDGE)
    with Image.open(BytesIO(scaled.data)) as image:
        assert image.convert("RGBA").getchannel("A").getextrema() == (100, 100)


def show(data: bytes, mime_type: str = "image/png") -> Callable[[], list[Any]]:
    def take_picture() -> list[Any]:
        """Takes a picture."""
        return ["a picture", Media("image", data, mime_type)]

    return take_picture


@pytest.fixture
def pictured(crib: Crib) -> Callable[..., Any]:
    """Calls a function that returns a picture, and returns its text and image."""

    numbers = count()

    async def pictured(*given: Any) -> tuple[str, types.ImageContent | None]:
        reads = frozenset({Effect.READ})
        function = show(*given)
        function.__name__ = f"take_picture_{next(numbers)}"
        spec = FunctionToMCP.convert(function, scope=ToolScope.SANDBOXED, effects=reads)
        crib.app.registry.add(spec)
        return parts(await crib.client.call_tool(spec.name, {}))

    return pictured


def parts(result: types.CallToolResult) -> tuple[str, types.ImageContent | None]:
    texts = [each.text for each in result.content if isinstance(each, types.TextContent)]
    images = [each for each in result.content if isinstance(each, types.ImageContent)]
    return "\n".join(texts), images[0] if images else None


def size_of(image: types.ImageContent | None) -> tuple[int, int]:
    assert image is not None
    with Image.open(BytesIO(base64.b64decode(image.data))) as opened:
        return opened.size


async def test_the_original_and_parts_of_it_can_be_had(crib: Crib, pictured: Any) -> None:
    text, image = await pictured(encoded(Image.new("RGB", WIDE, "red"), "PNG"))
    assert size_of(image) == (1_568, 1_176)
    assert "Image 1 of 4000 x 3000 pixels" in text
    assert "is shown as 1568 x 1176" in text
    calls = [{"name": "take_picture_0", "arguments": {}}]
    batch = parts(await crib.client.call_tool("call_tools", {"calls": calls}))
    assert (size_of(batch[1]), batch[0].count("[Image 1 of ")) == ((1_568, 1_176), 1)
    handle = re.search(r"handle='(r[0-9a-f]{16})'", text)
    assert handle is not None
    whole = await crib.client.call_tool("read_result", {"handle": handle[1]})
    assert size_of(parts(whole)[1]) == WIDE
    region = {"handle": handle[1], "region": [3_900, 0, 9_000, 50]}
    assert size_of(parts(await crib.client.call_tool("read_result", region))[1]) == (100, 50)
    _, told = await crib.failure("read_result", handle=handle[1], grep="x")
    assert "for an image, only region or nothing" in told
    _, told = await crib.failure("read_result", handle=handle[1], region=[5, 5, 5, 5])
    assert "The image cannot be shown" in told


async def test_small_images_and_unknown_formats_are_passed_on_as_they_are(pictured: Any) -> None:
    small = encoded(Image.new("RGB", (40, 30)), "JPEG")
    for data, mime_type, told_type in [
        (small, "image/jpeg", "image/jpeg"),
        (small, "image/png", "image/jpeg"),  # a wrong name is mended
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "image/svg+xml"),
    ]:
        text, image = await pictured(data, mime_type)
        assert "[Image" not in text
        assert image is not None
        assert image.mime_type == told_type


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (bomb(20_000, 20_000), "It has 20000 x 20000 pixels"),
        (bomb(9_000, 9_000), "It cannot be read"),
        (encoded(Image.new("RGB", WIDE), "PNG")[:2_000], "It cannot be read"),
        (b"<svg>" + b" " * 4_000_000, "It has more than 3,750,000 bytes"),
    ],
    ids=["a bomb", "one that ends too early", "a torn file", "a large unknown one"],
)
async def test_what_no_client_could_show_is_left_out_and_said(
    pictured: Any, data: bytes, told: str
) -> None:
    text, image = await pictured(data)
    assert image is None
    assert "is left out. " in text
    assert told in text


async def test_only_a_header_that_is_whole_makes_a_small_png() -> None:
    small = encoded(Image.new("RGB", (40, 30)), "PNG")
    assert is_small_png(small, 40)
    assert not is_small_png(small, 39)
    assert not is_small_png(small[:20], 40)


async def test_a_setting_passes_images_on_as_they_are(open_crib: Any) -> None:
    async with open_crib(limits__image_pixels=0) as crib:
        data = encoded(Image.new("RGB", WIDE), "PNG")
        crib.app.registry.add(
            FunctionToMCP.convert(
                show(data), scope=ToolScope.SANDBOXED, effects=frozenset({Effect.READ})
            )
        )
        text, image = parts(await crib.client.call_tool("take_picture", {}))
    assert (size_of(image), "[Image" in text) == (WIDE, False)
