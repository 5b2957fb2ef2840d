"""Images and sounds that functions return, alone and inside other values."""

from __future__ import annotations

import json
import wave
from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import mcp_types
import pytest
from fastmcp.utilities.types import Audio as FastMCPAudio
from fastmcp.utilities.types import Image as FastMCPImage
from mcp.server.mcpserver import Audio, Image
from PIL import Image as Pillow
from pydantic import BaseModel, ConfigDict

from tools.conversion.callables.callables import NOTHING
from tools.conversion.results.attachments import NOTE
from tools.conversion.results.output import Output
from tools.core.content import EmbeddedResource, Media, ResourceLink


def _drawn(mode: str, form: str = "PNG") -> bytes:
    file = BytesIO()
    Pillow.new(mode, (3, 2)).save(file, form)
    return file.getvalue()


def _recorded() -> bytes:
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(bytes(80))
    return file.getvalue()


PNG, JPEG, WAV = _drawn("RGB"), _drawn("RGB", "JPEG"), _recorded()
PICTURE, SOUND = Media.of(PNG), Media.of(WAV)
IMAGE = mcp_types.ImageContent(data=b64encode(PNG).decode(), mime_type="image/png")
AUDIO = mcp_types.AudioContent(data=b64encode(WAV).decode(), mime_type="audio/wav")
TEXT = mcp_types.TextContent(text="A caption.")
LINK = mcp_types.ResourceLink(uri="https://a.example/b", name="b")


class Figure:
    """As matplotlib has it."""

    def savefig(self, file: BytesIO, *, format: str) -> None:  # noqa: A002  # as matplotlib has it
        assert format == "png"
        file.write(PNG)


class Plot:
    """As notebooks want it."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return PNG, {"width": 3}


class Photo:
    def _repr_png_(self) -> None:
        return None

    def _repr_jpeg_(self) -> str:
        return b64encode(JPEG).decode()


class NotDrawn:
    def _repr_png_(self) -> None:
        return None

    def __str__(self) -> str:
        return "not drawn"


@dataclass
class Card:
    title: str
    picture: Pillow.Image
    sound: Media | None = None


class Album(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    cover: mcp_types.ImageContent
    extra: Any = None
    drawing: Pillow.Image | None = None


def _note(place: int, mime_type: str, size: int) -> dict[str, Any]:
    return {"media": place, "mime_type": mime_type, "bytes": size}


def _pillow(data: bytes) -> Pillow.Image:
    return Pillow.open(BytesIO(data))


ALONE: list[tuple[Any, Any, str, bytes | None]] = [
    (Media, PICTURE, "image/png", PNG),
    (Media, SOUND, "audio/wav", WAV),
    (Pillow.Image, Pillow.new("RGB", (3, 2)), "image/png", PNG),
    (Pillow.Image, _pillow(JPEG), "image/jpeg", None),
    (Figure, Figure(), "image/png", PNG),
    (Image, Image(data=PNG, format="png"), "image/png", PNG),
    (Audio, Audio(data=WAV, format="wav"), "audio/wav", WAV),
    (FastMCPImage, FastMCPImage(data=PNG), "image/png", PNG),
    (FastMCPAudio, FastMCPAudio(data=WAV), "audio/wav", WAV),
]


@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize(
    ("returns", "value", "mime_type", "data"), ALONE, ids=lambda each: type(each).__name__
)
def test_an_image_or_sound_is_taken_out_and_noted(
    returns: object, value: object, mime_type: str, data: bytes | None, promised: bool
) -> None:
    output = Output("tool", returns if promised else NOTHING)
    result = output.result(value)
    (media,) = result.media
    assert isinstance(media, Media)
    assert media.mime_type == mime_type
    assert data is None or media.data == data
    assert Media.of(media.data).mime_type == mime_type
    assert result.structured == _note(0, mime_type, len(media.data))
    assert json.loads(result.text) == result.structured
    assert (output.schema is not None) is promised
    jsonschema.validate(result.structured, output.schema or NOTE)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "F"])
def test_a_picture_of_any_mode_can_be_drawn(mode: str) -> None:
    (media,) = Output("tool", Pillow.Image).result(Pillow.new(mode, (3, 2))).media
    assert isinstance(media, Media)
    drawn = _pillow(media.data)
    drawn.load()
    assert (media.mime_type, drawn.size) == ("image/png", (3, 2))


def test_what_shows_itself_in_a_notebook_is_shown_if_it_does() -> None:
    assert Output("tool", NOTHING).result(Plot()).media == (PICTURE,)
    assert Output("tool", NOTHING).result(Photo()).media == (Media.of(JPEG),)
    result = Output("tool", NotDrawn).result(NotDrawn())
    assert (result.text, result.media) == ("not drawn", ())


PNG_NOTE, WAV_NOTE = (0, "image/png", len(PNG)), (1, "audio/wav", len(WAV))

INSIDE: list[tuple[Any, Any, Any]] = [
    (list[Media], [PICTURE, SOUND], [_note(*PNG_NOTE), _note(*WAV_NOTE)]),
    (tuple[Media, Media], (PICTURE, SOUND), [_note(*PNG_NOTE), _note(*WAV_NOTE)]),
    (list[Any], ["a", PICTURE, {"b": SOUND}], ["a", _note(*PNG_NOTE), {"b": _note(*WAV_NOTE)}]),
    (NOTHING, ["a", PICTURE, (SOUND,)], ["a", _note(*PNG_NOTE), [_note(*WAV_NOTE)]]),
    (list[Media | str], [PICTURE, "a", SOUND], [_note(*PNG_NOTE), "a", _note(*WAV_NOTE)]),
]


@pytest.mark.parametrize(("returns", "value", "form"), INSIDE)
def test_images_and_sounds_inside_other_values_keep_their_order(
    returns: object, value: object, form: object
) -> None:
    output = Output("tool", returns)
    result = output.result(value)
    assert result.structured == {"result": form}
    assert result.media == (PICTURE, SOUND)
    jsonschema.validate(result.structured, output.schema or {})


@pytest.mark.parametrize("returns", [Card, NOTHING, Card | None])
def test_they_are_found_in_dataclasses(returns: object) -> None:
    output = Output("tool", returns)
    result = output.result(Card("a", Pillow.new("RGB", (3, 2)), SOUND))
    form = {"title": "a", "picture": _note(*PNG_NOTE), "sound": _note(*WAV_NOTE)}
    assert result.structured in (form, {"result": form})
    assert result.media == (PICTURE, SOUND)
    jsonschema.validate(result.structured, output.schema or {})


@pytest.mark.parametrize("returns", [Album, NOTHING, dict[str, Album], dict])
def test_content_blocks_inside_models_lose_their_data_and_stay_such_models(returns: object) -> None:
    album = Album(cover=IMAGE, extra=[AUDIO], drawing=Pillow.new("RGB", (3, 2)))
    output = Output("tool", returns)
    result = output.result(album if returns in (Album, NOTHING) else {"a": album})
    whole = result.structured.get("a", result.structured)
    assert (whole["cover"]["data"], whole["extra"][0]["data"]) == ("media 0", "media 1")
    assert whole["drawing"] == _note(2, "image/png", len(PNG))
    assert result.media == (PICTURE, SOUND, PICTURE)
    assert album.cover.data == IMAGE.data
    jsonschema.validate(result.structured, output.schema or {})


@pytest.mark.parametrize(
    "returns", [NOTHING, list[mcp_types.ContentBlock], list, list[mcp_types.TextContent | Any]]
)
def test_a_list_of_content_blocks_is_its_text_and_its_media(returns: object) -> None:
    output = Output("tool", returns)
    result = output.result([TEXT, IMAGE, AUDIO, LINK])
    first, second, third, fourth = result.text.split("\n")
    assert first == "A caption."
    assert json.loads(second) == {"type": "image", "data": "media 0", "mimeType": "image/png"}
    assert json.loads(third) == {"type": "audio", "data": "media 1", "mimeType": "audio/wav"}
    assert json.loads(fourth)["uri"] == "https://a.example/b"
    assert result.media == (PICTURE, SOUND)
    jsonschema.validate(result.structured, output.schema or {})


def test_one_content_block_is_a_result_too() -> None:
    assert Output("tool", mcp_types.TextContent).result(TEXT).text == "A caption."
    assert Output("tool", mcp_types.ImageContent).result(IMAGE).media == (PICTURE,)
    assert Output("tool", NOTHING).result(AUDIO).media == (SOUND,)


@pytest.mark.parametrize(
    ("contents", "media", "value"),
    [
        (
            mcp_types.BlobResourceContents(uri="a://b", blob=IMAGE.data, mime_type="image/png"),
            (PICTURE,),
            {"blob": "media 0"},
        ),
        (
            mcp_types.BlobResourceContents(uri="a://b", blob="JVBERg==", mime_type="x/pdf"),
            (),
            {"blob": "JVBERg=="},
        ),
        (mcp_types.TextResourceContents(uri="a://b", text="words"), (), {"text": "words"}),
    ],
)
def test_an_embedded_resource_is_itself_and_shown_if_it_is_an_image(
    contents: Any, media: tuple[Media, ...], value: dict[str, str]
) -> None:
    output = Output("tool", mcp_types.EmbeddedResource)
    result = output.result(mcp_types.EmbeddedResource(resource=contents))
    assert value.items() <= result.structured["resource"].items()
    assert result.structured["resource"]["uri"] == "a://b"
    assert result.media == media
    jsonschema.validate(result.structured, output.schema)


def test_bytes_stay_base64_whatever_they_hold() -> None:
    result = Output("tool", bytes).result(PNG)
    assert result.structured == {"result": b64encode(PNG).decode()}
    assert result.media == ()


def test_a_model_that_only_looks_like_a_block_is_left_alone() -> None:
    class Entry(BaseModel):
        type: str = "image"
        data: str = "no Base64!"
        mime_type: str = "image/png"

    result = Output("tool", Entry).result(Entry())
    assert result.structured["data"] == "no Base64!"
    assert result.media == ()


FOUND = EmbeddedResource("a://b", b"data", "x/y")
LINKED = ResourceLink("a://c", "c", size=3)


@pytest.mark.parametrize("returns", [NOTHING, list[Any], list[str | Media | EmbeddedResource]])
def test_a_list_of_content_keeps_its_order(returns: object) -> None:
    output = Output("tool", returns)
    result = output.result(["a", PICTURE, FOUND, "b"])
    assert result.blocks == ("a", PICTURE, FOUND, "b")
    _, _, found, _ = result.structured["result"]
    assert found == {"media": 1, "mime_type": "x/y", "bytes": 4, "uri": "a://b"}
    assert result.media == (PICTURE, FOUND)
    jsonschema.validate(result.structured, output.schema or {})


@pytest.mark.parametrize("value", [PICTURE, FOUND, LINKED])
def test_content_alone_is_the_only_part(value: Any) -> None:
    output = Output("tool", type(value))
    result = output.result(value)
    assert result.blocks == (value,)
    jsonschema.validate(result.structured, output.schema)


@pytest.mark.parametrize("returns", [NOTHING, dict[str, EmbeddedResource]])
def test_a_resource_inside_another_value_stands_beside_it(returns: object) -> None:
    output = Output("tool", returns)
    result = output.result({"a": FOUND})
    assert (result.media, result.blocks) == ((FOUND,), ())
    assert result.structured["a"]["uri"] == "a://b"
    jsonschema.validate(result.structured, output.schema or {})


def test_content_of_the_protocol_is_what_it_says() -> None:
    contents = mcp_types.TextResourceContents(uri="a://b", text="words", mime_type="x/y")
    embedded = mcp_types.EmbeddedResource(resource=contents)
    result = Output("tool", NOTHING).result([TEXT, IMAGE, embedded, LINK, AUDIO])
    link = ResourceLink(str(LINK.uri), LINK.name)
    embedded_here = EmbeddedResource("a://b", "words", "x/y")
    assert result.blocks == (TEXT.text, PICTURE, embedded_here, link, SOUND)


@pytest.mark.parametrize("value", ["a", ["a", "b"], [PICTURE, 1], {"a": PICTURE}, [], [FOUND, {}]])
def test_anything_else_has_no_parts(value: Any) -> None:
    assert Output("tool", NOTHING).result(value).blocks == ()
