"""The web: requests, pages as text, and search."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import anyio.to_thread
from pydantic import ConfigDict, Field, FiniteFloat

from storage.errors import UnreadableDocumentError
from tools.answers.customization import with_enum, without
from tools.answers.redirects import stays_within
from tools.core.collections import Collections
from tools.core.content import Media
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError, RateLimitedError, UpstreamError
from tools.core.result import AnyJson, OmitNone, ToolModel
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, ToolSpec, tool
from tools.sandbox.web.reading import Body, Form, Page, page_of, read_body
from tools.sandbox.web.response import WebResponse

MAX_BODY = 2_000_000  # limit on the characters of a request body
MAX_HEADER_VALUE = 1_000  # limit on the characters of a response header

TELLING = ("location", "retry-after", "allow", "www-authenticate", "link")
"""Headers that tell the client what to do next."""


class HttpAnswer(ToolModel):
    """An HTTP response.

    Attributes:
        status: Its status code; 404 is a response too.
        url: Its URL, after redirects.
        redirect_to: The target of a redirect that was not followed.
        content_type: Its declared type.
        headers: Its headers, in lower case; repeated ones joined by commas.
        form: The form of its content; empty if it has none.
        content: Text, Markdown or Base64.
        parsed: The parsed value of JSON.
        media: The image or sound.
        bytes: Decompressed bytes that were read.
        truncated: Whether the content was not read to its end.
        elapsed: Seconds it took.
        note: Further remarks; may be empty.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    status: int
    url: str
    redirect_to: OmitNone[str]
    content_type: str
    headers: dict[str, str]
    form: Literal["text", "markdown", "json", "base64", "media", ""]
    content: str
    parsed: AnyJson
    media: OmitNone[Media]
    bytes: int
    truncated: bool
    elapsed: FiniteFloat
    note: str

    def to_text(self) -> str:
        """Formats a header line, the headers that tell what to do next, and the content."""
        about = [str(self.status), self.content_type or "no type", f"{self.bytes} bytes", self.form]
        lines = [f"[{self.url}: {', '.join(filter(None, about))}]"]
        names = (
            self.headers if not self.bytes else (each for each in TELLING if each in self.headers)
        )
        lines += [f"{name}: {self.headers[name]}" for name in names]
        lines += [f"[{self.note}]"] if self.note else []
        if self.form == "json":
            lines.append(json.dumps(self.parsed, ensure_ascii=False))
        elif self.content:
            lines.append(self.content)
        return "\n".join(lines)


def _customize(spec: ToolSpec, collections: Collections) -> ToolSpec:
    """Lists the configured secrets that a request may name."""
    if not collections.secrets:
        return without(spec, "secret")
    told = "; ".join(f"{name} for {', '.join(of)}" for name, of in collections.secrets.items())
    return with_enum(
        spec, "secret", list(collections.secrets), f"Put in for you, and never shown: {told}"
    )


@tool(
    scope=ToolScope.SYSTEM,
    # Not a write, although POST may be one: it changes nothing here, so it need not wait its turn.
    effects={Effect.EXTERNAL},
    destructive=True,
    tags=("system", "web"),
    capabilities=("make an HTTP request", "call a web API", "download from a URL"),
    customize=_customize,
    subject=Subject(SubjectKind.URL, "url", "secret"),
    timeout=620.0,  # the setting requests.timeout ends a request before
)
async def http_request(
    context: RequestContext,
    url: Annotated[str, Field(max_length=8_000, description="http or https")],
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"],
        Field(description="What is done to it"),
    ] = "GET",
    headers: Annotated[
        dict[str, str] | None, Field(max_length=64, description='Such as {"Accept": "text/csv"}')
    ] = None,
    body: Annotated[
        str | None, Field(max_length=MAX_BODY, description="Sent in UTF-8; set Content-Type")
    ] = None,
    secret: Annotated[
        str | None, Field(max_length=64, description="Name of a secret of the settings")
    ] = None,
    form: Annotated[
        Form, Field(alias="as", description="Form of the content; auto goes by its type")
    ] = "auto",
) -> HttpAnswer:
    """Makes an HTTP request to a public address; redirects to other sites are answers."""
    content = None if body is None else body.encode("utf-8", "surrogatepass")
    response = await context.machine.web.request(
        method, url, headers=headers, body=content, secret=secret, follows=stays_within(context)
    )
    return _http_answer(response, await read_body(response, form))


def _http_answer(response: WebResponse, body: Body) -> HttpAnswer:
    onward = response.redirect_to
    notes = [body.note]
    if onward:
        notes.append(f"The redirect was not followed; to go there, ask for {onward}.")
    return HttpAnswer.from_attributes(
        body,
        status=response.status,
        url=response.url,
        redirect_to=onward,
        content_type=response.header("content-type")[:MAX_HEADER_VALUE],
        headers={
            name.lower(): response.header(name)[:MAX_HEADER_VALUE] for name, _ in response.headers
        },
        bytes=len(response.content),
        truncated=response.truncated,
        elapsed=round(response.elapsed, 3),
        note=" ".join(filter(None, notes)),
    )


ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain, application/pdf, */*;q=0.5"
SHOWN = 20_000  # default limit on the characters that one call returns


class WebPage(ToolModel):
    """A page or document, or a part of it.

    Attributes:
        url: Its URL, after redirects.
        title: Its title; empty if it has none.
        site: Name of the site; empty if unknown, as are the next two.
        author: Who wrote it.
        date: Publication date, YYYY-MM-DD.
        text: The text as Markdown, from `offset` on.
        offset: Its start in the whole text, in characters.
        total: Characters of the whole text.
        next_offset: Where the rest begins; absent if this is the end.
        truncated: Whether the page was too large to read whole.
    """

    url: str
    title: str
    site: str
    author: str
    date: str
    text: str
    offset: int
    total: int
    next_offset: OmitNone[int]
    truncated: bool

    def to_text(self) -> str:
        """Formats a header, the text, and how to get the rest."""
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
    aliases_elsewhere=("web_fetch",),
    ignored=("prompt",),  # a question about the page, which is returned whole
    subject=Subject(SubjectKind.URL, "url"),
    timeout=660.0,  # the setting requests.timeout ends a request earlier
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
        "GET", url, headers={"Accept": ACCEPT}, follows=stays_within(context)
    )
    _check_page(url, response)
    try:
        page = await page_of(response)
    except UnreadableDocumentError as error:
        raise UpstreamError(
            f"What {response.url} answered cannot be read as text: {error.message}",
            next_actions=["Use http_request with as text or base64 to see it as it is."],
        ) from error
    return _page_part(page, response, offset, max_characters)


def _check_page(url: str, response: WebResponse) -> None:
    """Raises an error unless the response is a page."""
    status = response.status
    if response.redirect_to:
        raise UpstreamError(
            f"{url} redirects to another site.",
            suggestions=[response.redirect_to],
            next_actions=[f"To go there, call read_web_page with {response.redirect_to}."],
        )
    if 200 <= status < 300:  # noqa: PLR2004  # the protocol's successes
        return
    answered = f"{response.url} answered {status}"
    if status in {404, 410}:
        raise NotFoundError(f"{answered}: page not found.", next_actions=["Check the URL."])
    if status == 429:  # noqa: PLR2004  # RFC 6585
        wait = response.header("retry-after")[:50]
        raise RateLimitedError(
            f"{answered}: too many requests.",
            next_actions=[f"Wait{f' ({wait})' if wait else ''} before the next."],
        )
    raise UpstreamError(
        f"{answered}.", next_actions=["Use http_request to see the response, or try later."]
    )


def _page_part(page: Page, response: WebResponse, offset: int, size: int) -> WebPage:
    total = len(page.text)
    if offset > total:
        raise InvalidArgumentsError(
            f"offset {offset} is beyond the text, which has {total} characters.",
            next_actions=[f"Give an offset from 0 to {total}."],
        )
    end = min(offset + size, total)
    return WebPage.from_attributes(
        page,
        url=response.url,
        text=page.text[offset:end],
        offset=offset,
        total=total,
        next_offset=end if end < total else None,
        truncated=response.truncated,
    )


QUERY_CHARACTERS = 500
MOST_PAGES = 50


class FoundPage(ToolModel):
    """A page of the web.

    Attributes:
        title: Its title.
        snippet: An excerpt about the query.
        url: Its URL.
        source: The engine that found it.
    """

    title: str
    snippet: str
    url: str
    source: str

    def to_text(self, number: int) -> str:
        """Formats it as two or three lines."""
        return "\n".join(filter(None, [f"{number}. {self.title}", self.url, self.snippet]))


class FoundPages(ToolModel):
    """The result of a search.

    Attributes:
        query: The query.
        results: Best first, each page once; may be empty.
        engine: The engine that answered.
    """

    query: str
    results: list[FoundPage]
    engine: str

    def to_text(self) -> str:
        """Formats the results, or a note that nothing was found."""
        if not self.results:
            return (
                f"{self.engine} found nothing for {self.query!r}."
                " Ask in other words, or without timelimit and lang."
            )
        shown = [each.to_text(number) for number, each in enumerate(self.results, start=1)]
        return "\n\n".join(shown)


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.READ, Effect.EXTERNAL},
    tags=("system", "web"),
    capabilities=("search the web", "find current information and documentation on the internet"),
    aliases_elsewhere=("google_web_search",),
)
async def web_search(
    context: RequestContext,
    query: Annotated[
        str, Field(max_length=QUERY_CHARACTERS, pattern=r"\S", description="What to look for")
    ],
    max_results: Annotated[int, Field(ge=1, le=20, description="Most results")] = 5,
    lang: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z]{2}([-_][A-Za-z]{2})?$",
            description="Language, with a country if it matters: de, pt-BR",
        ),
    ] = None,
    timelimit: Annotated[
        Literal["d", "w", "m", "y"] | None,
        Field(description="Only what is at most a day, week, month or year old"),
    ] = None,
    page: Annotated[int, Field(ge=1, le=MOST_PAGES, description="Further results: 2, 3 …")] = 1,
) -> FoundPages:
    """Searches the web: the query leaves this machine. read_web_page reads what it finds."""
    query = " ".join(query.split())
    search = await anyio.to_thread.run_sync(getattr, context.machine, "search")  # loads it
    found = await search.search(
        query, max_results=max_results, lang=lang or "", timelimit=timelimit, page=page
    )
    return FoundPages(
        query=query,
        results=[FoundPage.from_attributes(each) for each in found.results],
        engine=found.engine,
    )
