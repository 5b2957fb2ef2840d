"""Results of other libraries: pictures, sounds, arrays, frames and the protocol's own content."""

import io
import struct
import wave
import zlib
from collections.abc import Callable
from typing import Any

from benchmarks.function_shapes.checks import answers, gets, shows
from benchmarks.function_shapes.shape import Kit, Theme

Function = Callable[..., Any]

RICH_RESULTS = Theme("results")

TOWNS = [f"town{number:03}" for number in range(100)]


def png() -> bytes:
    """A picture of one black point."""
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\x00\x00")),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def wav() -> bytes:
    """A moment of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 8)
    return file.getvalue()


@RICH_RESULTS.shape_for("an image", shows("image", "image/png", png()))
def image(kit: Kit) -> Function:
    def draw():  # type: ignore[no-untyped-def]  # noqa: ANN202  # each system has its own type
        return kit.image(png())

    return draw


@RICH_RESULTS.shape_for("an annotated image", shows("image", "image/png", png()))
def annotated_image(kit: Kit) -> Function:
    def draw() -> type(kit.image(png())):  # type: ignore[valid-type]  # each system has its own
        return kit.image(png())

    return draw


@RICH_RESULTS.shape_for("a sound", shows("audio", "audio/wav", wav()))
def audio(kit: Kit) -> Function:
    def play():  # type: ignore[no-untyped-def]  # noqa: ANN202  # each system has its own type
        return kit.audio(wav())

    return play


@RICH_RESULTS.shape_for(
    "a text and an image",
    shows("image", "image/png", png()),
    answers(lambda value: "here it is" in str(value)),
)
def text_and_image(kit: Kit) -> Function:
    def draw() -> list[Any]:
        return ["here it is", kit.image(png())]

    return draw


@RICH_RESULTS.shape("a picture of Pillow's", shows("image", "image/png", b""))
def pillow():  # type: ignore[no-untyped-def]  # Pillow may not be installed
    from PIL import Image

    return Image.new("RGB", (2, 2))


@RICH_RESULTS.shape("image content of the protocol", shows("image", "image/png", png()))
def image_content():  # type: ignore[no-untyped-def]  # imported where it is used
    import base64

    import mcp_types

    data = base64.b64encode(png()).decode()
    return mcp_types.ImageContent(data=data, mime_type="image/png")


@RICH_RESULTS.shape("numpy scalars", gets({}, {"a": 1, "b": 0.5, "c": True, "d": "x"}))
def numpy_scalars() -> dict[str, Any]:
    import numpy as np

    return {"a": np.int64(1), "b": np.float32(0.5), "c": np.bool_(1), "d": np.str_("x")}


@RICH_RESULTS.shape("a numpy scalar for a float", gets({}, 0.5))
def numpy_for_float() -> float:
    import numpy as np

    return np.float64(0.5)


@RICH_RESULTS.shape("a numpy scalar for an int", gets({}, 3))
def numpy_for_int() -> int:
    import numpy as np

    return np.int64(3)  # type: ignore[return-value]  # the shape


@RICH_RESULTS.shape_made("a numpy array", gets({}, [[1, 2], [3, 4]]))
def numpy_array() -> Function:
    import numpy as np

    def measure() -> np.ndarray:
        return np.array([[1, 2], [3, 4]])

    return measure


@RICH_RESULTS.shape("a numpy array in a dict", gets({}, {"a": [1.0, 2.0]}))
def numpy_array_in_dict() -> dict[str, Any]:
    import numpy as np

    return {"a": np.array([1.0, 2.0])}


@RICH_RESULTS.shape_made(
    "a frame of pandas",
    # Rows, columns, or a table: all of it is there.
    answers(lambda value: all(town in str(value) for town in TOWNS)),
)
def frame() -> Function:
    import pandas as pd

    def table() -> pd.DataFrame:
        return pd.DataFrame({"town": TOWNS, "people": range(len(TOWNS))})

    return table


@RICH_RESULTS.shape(
    "a frame of pandas with gaps and times",
    answers(lambda value: "2026-03-31" in str(value) and "nan" not in str(value).lower()),
)
def frame_with_gaps():  # type: ignore[no-untyped-def]  # pandas may not be installed
    import pandas as pd

    return pd.DataFrame({"a": [1.0, None], "day": [pd.Timestamp("2026-03-31"), None]})


@RICH_RESULTS.shape(
    "a series of pandas",
    answers(lambda value: all(word in str(value) for word in ("1", "2")) and value != ""),
)
def series():  # type: ignore[no-untyped-def]  # pandas may not be installed
    import pandas as pd

    return pd.Series([1, 2], name="people")


@RICH_RESULTS.shape_made(
    "contents of the protocol in a list",
    shows("image", "image/png", png()),
    answers(lambda value: "here it is" in str(value)),
)
def protocol_contents() -> Function:
    import base64

    import mcp_types

    def draw() -> list[mcp_types.TextContent | mcp_types.ImageContent]:
        data = base64.b64encode(png()).decode()
        return [
            mcp_types.TextContent(text="here it is"),
            mcp_types.ImageContent(data=data, mime_type="image/png"),
        ]

    return draw


@RICH_RESULTS.shape(
    "a timestamp of pandas and an array with gaps",
    answers(lambda value: value["at"][:19] == "2026-03-31T12:00:00" and value["gaps"][0] == 1.0),
)
def timestamp() -> dict[str, Any]:
    import numpy as np
    import pandas as pd

    return {"at": pd.Timestamp("2026-03-31 12:00"), "gaps": np.array([1.0, np.nan])}


@RICH_RESULTS.shape("a list of numpy numbers for a list of floats", gets({}, [0.5, 1.0]))
def numpy_list() -> list[float]:
    import numpy as np

    return list(np.array([0.5, 1.0]))
