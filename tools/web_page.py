"""Pages and documents of the web, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from storage.errors import UnreadableDocumentError
from tools.core.context import RequestContext
from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    RateLimitedError,
    UpstreamError,
)
from tools.core.model import ToolModel
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, tool
from tools.sandbox.web.site import followed_by

if TYPE_CHECKING:
    from tools.sandbox.web.client import WebResponse
    from tools.sandbox.web.page import Page

__all__ = ["WebPage", "read_web_page"]

ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain, application/pdf, */*;q=0.5"
SHOWN = 20_000
"""Characters that one call returns unless it asks for another number."""


class WebPage(ToolModel):
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
    from tools.sandbox.web.pages import page_of

    response = await context.machine.web.request(
        "GET", url, headers={"Accept": ACCEPT}, follows=followed_by(context)
    )
    _check(url, response)
    try:
        page = await page_of(response)
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
