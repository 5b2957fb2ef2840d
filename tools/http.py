"""Requests to the web."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from tools.core.context import RequestContext
from tools.core.model import ToolModel
from tools.core.result import Media
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, tool
from tools.sandbox.web.form import Form
from tools.sandbox.web.site import followed_by

if TYPE_CHECKING:
    from tools.sandbox.web.client import WebResponse
    from tools.sandbox.web.reading import Body

__all__ = ["HttpAnswer", "http_request"]

MAX_BODY = 2_000_000
"""Characters that one request sends."""

MAX_HEADER_VALUE = 1_000
"""Characters of an answer's header that are shown."""

TELLING = ("location", "retry-after", "allow", "www-authenticate", "link")
"""Headers that tell what to do next."""


class HttpAnswer(ToolModel):
    """An answer.

    Attributes:
        status: Its status code; 404 is an answer too.
        url: Where it came from, after redirects.
        redirect_to: Where it leads on to, where that was not followed.
        content_type: What it says that it is.
        headers: Its headers, in lower case; repeated ones joined by commas.
        form: The form that its content is in; empty where it has none.
        content: Text, Markdown or Base64.
        parsed: The value, of JSON.
        media: The image or sound.
        bytes: Bytes of its body that were read, unpacked.
        truncated: Whether less is shown than there is.
        elapsed: Seconds that it took.
        note: What to know besides; empty if nothing.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    status: int
    url: str
    redirect_to: str | None
    content_type: str
    headers: dict[str, str]
    form: Literal["text", "markdown", "json", "base64", "media", ""]
    content: str
    parsed: Any
    media: Media | None
    bytes: int
    truncated: bool
    elapsed: float
    note: str

    def to_text(self) -> str:
        """A line about the answer, the headers that tell what to do, and the content."""
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


@tool(
    scope=ToolScope.SYSTEM,
    # No write, although POST may be one: it changes nothing here, and needs no turn among writes.
    effects={Effect.EXTERNAL},
    destructive=True,
    tags=("system", "web"),
    capabilities=("make an HTTP request", "call a web API", "download from a URL"),
    subject=Subject(SubjectKind.URL, "url"),
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
    form: Annotated[
        Form, Field(alias="as", description="Form of the content; auto goes by its type")
    ] = "auto",
) -> HttpAnswer:
    """Makes an HTTP request to a public address; redirects to other sites are answers."""
    from tools.sandbox.web.reading import read_body

    content = None if body is None else body.encode("utf-8", "surrogatepass")
    response = await context.machine.web.request(
        method, url, headers=headers, body=content, follows=followed_by(context)
    )
    return _answer(response, await read_body(response, form))


def _answer(response: WebResponse, body: Body) -> HttpAnswer:
    onward = response.redirect_to
    notes = [body.note]
    if onward:
        notes.append(f"The redirect was not followed; to go there, ask for {onward}.")
    return HttpAnswer(
        status=response.status,
        url=response.url,
        redirect_to=onward,
        content_type=response.header("content-type")[:MAX_HEADER_VALUE],
        headers={
            name.lower(): response.header(name)[:MAX_HEADER_VALUE] for name, _ in response.headers
        },
        form=body.form,
        content=body.content,
        parsed=body.parsed,
        media=body.media,
        bytes=len(response.content),
        truncated=body.is_cut or response.truncated,
        elapsed=round(response.elapsed, 3),
        note=" ".join(filter(None, notes)),
    )
