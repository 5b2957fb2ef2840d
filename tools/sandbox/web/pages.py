"""An answer as a page: HTML by its article, documents by their parsers, text as it is."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio.to_thread

from storage.reading.formats import FORMATS, MARKDOWN
from storage.reading.isolated import run_isolated
from storage.reading.parse import parse_isolated
from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.charsets import charset_of, decoded, media_type_of
from tools.sandbox.web.page import Page, read_page
from tools.sandbox.web.reading import is_html, is_text

if TYPE_CHECKING:
    from tools.sandbox.web.client import WebResponse

__all__ = ["page_of"]

READ_SECONDS = 30.0

_SUFFIXES = {
    each.media_type: each.suffixes[0] for each in FORMATS if each.isolated or each is MARKDOWN
}
_PDF_TOO = "application/x-pdf"
_UNTOLD = {"", "application/octet-stream", "binary/octet-stream"}


async def page_of(response: WebResponse) -> Page:
    """What an answer has to read.

    Raises:
        InvalidArgumentsError: If it is no text.
        UnreadableDocumentError: If it cannot be read as what it says that it is.
    """
    kind = media_type_of(response.header("content-type"))
    if is_html(response):
        text = await anyio.to_thread.run_sync(_decoded, response)
        read = partial(read_page, text, response.url)
        return await run_isolated(read, name=response.url, timeout=READ_SECONDS)
    if is_text(response) and kind not in _SUFFIXES:
        return Page("", await anyio.to_thread.run_sync(_decoded, response))
    if is_text(response) or kind in {*_SUFFIXES, _PDF_TOO, *_UNTOLD}:
        name = _name(response, kind)
        parsed = await parse_isolated(response.content, name=name, timeout=READ_SECONDS)
        return Page(parsed.title, parsed.text)
    raise _no_text(response, kind)


def _no_text(response: WebResponse, kind: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"{response.url} is of the type {kind[:100]!r}, not text.",
        next_actions=["Use http_request, which shows images and gives other data as base64."],
    )


def _decoded(response: WebResponse) -> str:
    charset = charset_of(response.header("content-type"))
    found = decoded(response.content, charset, partial=response.truncated)
    if found is None:
        raise _no_text(response, media_type_of(response.header("content-type")))
    return found[0]


def _name(response: WebResponse, kind: str) -> str:
    """A file's name for a document, whose suffix is that of its type."""
    path = PurePosixPath(urlsplit(response.url).path)
    suffix = _SUFFIXES.get(kind)
    return path.with_suffix(suffix).name if suffix and path.name else path.name or "document"
