"""Images and sounds as authors make them."""

from pathlib import Path

import pytest

from tools.core.content import Media

FORMATS = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"\x00\x00\x00\x1cftypavif", "image/avif"),
    (b"<svg xmlns=''>", "image/svg+xml"),
    (b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg>", "image/svg+xml"),
    (b"RIFF\x00\x00\x00\x00WAVE", "audio/wav"),
    (b"FORM\x00\x00\x00\x00AIFF", "audio/aiff"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\x00\x00\x00\x1cftypM4A ", "audio/mp4"),
]


@pytest.mark.parametrize(("start", "mime_type"), FORMATS, ids=lambda each: str(each)[:12])
def test_the_first_bytes_tell_the_format(start: bytes, mime_type: str) -> None:
    media = Media.of(start.ljust(64, b"\x00"))
    assert (media.mime_type, media.kind) == (mime_type, mime_type.split("/", maxsplit=1)[0])
    assert media.data.startswith(start)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"%PDF-1.7 and so on", b"x" * 64])
def test_data_that_are_no_image_or_sound_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="in a known format; name the kind"):
        Media.of(data)


def test_a_file_is_read_and_named_where_it_is_wrong(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.bin", tmp_path / "b.png"
    good.write_bytes(b"GIF89a".ljust(64, b"\x00"))
    bad.write_bytes(b"no picture at all")
    assert Media.read(good) == Media.of(good.read_bytes())
    with pytest.raises(ValueError, match=r"b\.png: Data that begin with b'no picture a'"):
        Media.read(str(bad))
    with pytest.raises(FileNotFoundError):
        Media.read(tmp_path / "c.png")


def test_any_format_can_be_named_but_of_the_right_kind() -> None:
    assert Media("image", b"?", "image/x-pcx").mime_type == "image/x-pcx"
    with pytest.raises(ValueError, match="'audio/wav' is not the format of an image"):
        Media("image", b"?", "audio/wav")
    with pytest.raises(ValueError, match="This image/png is empty"):
        Media("image", b"", "image/png")


def test_media_are_values_and_show_no_data() -> None:
    one, same, other = (Media("audio", data, "audio/wav") for data in (b"a", b"a", b"b"))
    assert one == same != other
    assert len({one, same, other}) == 2
    assert repr(one) == "<audio/wav, 1 bytes>"
