"""Pages and documents of the web, as text."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import anyio.to_thread
from pydantic import BaseModel, Field

from storage.errors import UnreadableDocumentError
from storage.reading.isolated import run_isolated
from storage.reading.parse import parse_isolated
from tools.core.context import RequestContext
from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    RateLimitedError,
    UpstreamError,
)
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, tool
from tools.core.web.charsets import charset_of, decoded, media_type_of
from tools.core.web.page import Page, read_page
from tools.core.web.reading import is_html, is_text
from tools.core.web.site import followed_by

if TYPE_CHECKING:
    from tools.core.web.client import WebResponse

__all__ = ["WebPage", "read_web_page"]

READ_SECONDS = 30.0
ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain, application/pdf, */*;q=0.5"
SHOWN = 20_000
"""Characters that one call returns unless it asks for another number."""

_SUFFIXES = {"application/pdf": ".pdf", "text/markdown": ".md"}
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_DOCUMENTS = {"application/pdf", "application/x-pdf", _DOCX}
_UNTOLD = {"", "application/octet-stream", "binary/octet-stream"}


class WebPage(BaseModel):
    """A page or document, or a part of it.

    Attributes:
        url: Where it is, after redirects.
        title: Its title; empty if it has none.
        site: Name of the site, empty if the page says none; so are the next two.
        author: Who wrote it.
        date: When it was published, YYYY-MM-DD.
        text: The text as Markdown, from `offset` on.
        offset: Where in the whole text it begins, in characters.
        total: Characters of the whole text.
        next_offset: Where the rest begins; absent if there is none.
        truncated: Whether the page was too large to be read whole.
    """

    url: str
    title: str
    site: str
    author: str
    date: str
    text: str
    offset: int
    total: int
    next_offset: int | None
    truncated: bool

    def to_text(self) -> str:
        """What it is, its text, and how to have the rest."""
        about = [self.title, self.site, self.author, self.date, self.url]
        lines = [f"[{' | '.join(filter(None, about))}]", self.text]
        if self.next_offset is not None:
            lines.append(
                f"[Characters {self.offset}-{self.next_offset} of {self.total}; for the rest, call "
                f"again with offset {self.next_offset}.]"
            )
        if self.truncated:
            lines.append("[The page is too large; only its beginning was read.]")
        return "\n".join(lines)


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.READ, Effect.EXTERNAL},
    idempotent=True,
    tags=("system", "web"),
    capabilities=("read a web page or article", "read a PDF from the web"),
    subject=Subject(SubjectKind.URL, "url"),
    timeout=660.0,  # the setting requests.timeout ends the request before
)
async def read_web_page(
    context: RequestContext,
    url: Annotated[str, Field(max_length=8_000, description="http or https")],
    offset: Annotated[int, Field(ge=0, description="Characters to skip")] = 0,
    max_characters: Annotated[
        int, Field(ge=500, le=100_000, description="Characters to return")
    ] = SHOWN,
) -> WebPage:
    """Reads a web page, or a PDF or text on the web, as Markdown without menus."""
    response = await context.machine.web.request(
        "GET", url, headers={"Accept": ACCEPT}, follows=followed_by(context)
    )
    _check(url, response)
    try:
        page = await _read(response)
    except UnreadableDocumentError as error:
        raise UpstreamError(
            f"What {response.url} answered cannot be read as text: {error.message}",
            next_actions=["Use http_request with as text or base64 to see it as it is."],
        ) from error
    return _part(page, response, offset, max_characters)


def _check(url: str, response: WebResponse) -> None:
    """Sees that an answer is a page."""
    status = response.status
    if response.redirect_to:
        raise UpstreamError(
            f"{url} leads on to another site.",
            suggestions=[response.redirect_to],
            next_actions=[f"To go there, call read_web_page with {response.redirect_to}."],
        )
    if 200 <= status < 300:  # noqa: PLR2004  # the protocol's successes
        return
    answered = f"{response.url} answered {status}"
    if status in {404, 410}:
        raise NotFoundError(f"{answered}: there is no such page.", next_actions=["Check the URL."])
    if status == 429:  # noqa: PLR2004  # RFC 6585
        wait = response.header("retry-after")[:50]
        raise RateLimitedError(
            f"{answered}: too many requests.",
            next_actions=[f"Wait{f' ({wait})' if wait else ''} before the next."],
        )
    raise UpstreamError(
        f"{answered}.", next_actions=["Use http_request to see what it says, or try later."]
    )


async def _read(response: WebResponse) -> Page:
    kind = media_type_of(response.header("content-type"))
    if is_html(response):
        text = await anyio.to_thread.run_sync(_decoded, response)
        read = partial(read_page, text, response.url)
        return await run_isolated(read, name=response.url, timeout=READ_SECONDS)
    if is_text(response) and kind not in _SUFFIXES:
        return Page("", await anyio.to_thread.run_sync(_decoded, response))
    if is_text(response) or kind in _DOCUMENTS or kind in _UNTOLD:
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


def _part(page: Page, response: WebResponse, offset: int, size: int) -> WebPage:
    total = len(page.text)
    if offset > total:
        raise InvalidArgumentsError(
            f"offset {offset} is beyond the text, which has {total} characters.",
            next_actions=[f"Give an offset from 0 to {total}."],
        )
    end = min(offset + size, total)
    return WebPage(
        url=response.url,
        title=page.title,
        site=page.site,
        author=page.author,
        date=page.date,
        text=page.text[offset:end],
        offset=offset,
        total=total,
        next_offset=end if end < total else None,
        truncated=response.truncated,
    )
