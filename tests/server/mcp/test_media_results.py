"""What a real client receives of images, sounds and generators."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import AudioContent, ImageContent, TextContent
from PIL import Image

from tools.core.content import Media
from tools.core.spec import Effect, ToolScope, tool

SOUND = Media("audio", b"RIFF....WAVE", "audio/wav")
ServerOf = Callable[..., Server[Any]]


@tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
def draw(width: int) -> Image.Image:
    """Draws a picture."""
    return Image.new("RGB", (width, 2))


@tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
def report() -> dict[str, Any]:
    """Reports in words, a picture and a sound."""
    return {"title": "One \udce9", "picture": draw(3), "sound": SOUND}


@tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
def frames(count: int) -> Iterator[Image.Image]:
    """Draws pictures one by one."""
    for width in range(1, count + 1):
        yield draw(width)


async def test_a_picture_alone_is_a_result(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(draw), mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool("draw", {"width": 3})
    (image,) = result.content
    assert isinstance(image, ImageContent)
    assert image.mime_type == "image/png"
    assert Image.open(BytesIO(b64decode(image.data))).size == (3, 2)
    size = len(b64decode(image.data))
    assert result.structured_content == {"media": 0, "mime_type": "image/png", "bytes": size}
    jsonschema.validate(result.structured_content, listed.output_schema)


async def test_pictures_and_sounds_keep_their_order(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(report), mode=mode) as client:
        result = await client.call_tool("report", {})
    text, image, sound = result.content
    assert isinstance(text, TextContent)
    assert isinstance(image, ImageContent)
    assert isinstance(sound, AudioContent)
    assert (b64decode(sound.data), sound.mime_type) == (SOUND.data, "audio/wav")
    assert image.data not in text.text
    structured = result.structured_content
    assert (structured["title"], structured["sound"]["media"]) == ("One ?", 1)


async def test_a_generator_is_heard_item_by_item(server_of: ServerOf, mode: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with Client(server_of(frames), mode=mode) as client:
        result = await client.call_tool("frames", {"count": 3}, progress_callback=listen)
        silent = await client.call_tool("frames", {"count": 2})
    assert heard == [(done, None, "Image") for done in (1, 2, 3)]
    assert [note["media"] for note in result.structured_content["result"]] == [0, 1, 2]
    assert [type(block) for block in result.content] == 3 * [ImageContent]
    assert len(silent.content) == 2
