"""Reads parts of large results, which are kept whole while the model gets a preview."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, cast

from anyio import from_thread
from pydantic import ConfigDict, Field

from storage.errors import UnreadableDocumentError
from storage.keeping.kept_results import Owner
from tools.core.calling.result_views import PIECE, View
from tools.core.content import Media, decode_block
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.result import OmitNone, ToolModel, compact
from tools.core.spec import Effect, ToolScope, tool

RESERVED = 300
"""Characters of an answer besides the parts it shows."""

MOST_EDGE = 8_000
"""Pixels of the longer edge of a whole image; models refuse more."""

MOST_MATCHES = 100_000
MOST_DESCENTS = 2
"""Limits on the work of one path: matches, and steps of the kind `..`."""

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


class Rows(ToolModel):
    """Rows of a table: of a list of objects, or of CSV.

    Attributes:
        path: The list, as the preview names it; by default the longest.
        where: Conditions such as `state = open`, `size > 10` or `title contains word`; all apply.
        columns: Columns to show, a.b for nested ones; by default all.
        sort: A column; with - in front from high to low.
        limit: Most rows of a page; the answer counts all.
    """

    path: str = ""
    where: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=10)
    columns: list[str] = Field(default_factory=list, max_length=50)
    sort: str = ""
    limit: int = Field(1_000_000, ge=1)


class ResultPart(ToolModel):
    """A part of a large result.

    Attributes:
        parts: Lines, matches or rows, in order.
        found: How many there are in all.
        next_offset: The offset of the next page; 0 if this is the last.
        media: The image, or a region of it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    parts: list[str]
    found: int
    next_offset: int
    media: OmitNone[Media] = None

    def to_text(self) -> str:
        """Formats one part a line, and how to go on."""
        if self.media is not None:
            return self.parts[0]
        more = f"; for more, offset={self.next_offset}" if self.next_offset else ""
        return "\n".join([*self.parts, f"[{len(self.parts)} shown, {self.found} in all{more}]"])


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    idempotent=True,
    tags=("toolsearch",),
    capabilities=("read a part of a large result by its handle",),
)
def read_result(
    context: RequestContext,
    handle: Annotated[str, Field(max_length=64, description="As the preview names it")],
    lines: Annotated[
        list[int] | None,
        Field(
            min_length=2, max_length=2, description="[first, last] from 1; negative from the end"
        ),
    ] = None,
    grep: Annotated[
        str | None, Field(min_length=1, max_length=1_000, description="Text; | between several")
    ] = None,
    match_case: Annotated[bool, Field(description="Whether grep distinguishes a from A")] = False,
    before_after: Annotated[int, Field(ge=0, le=50, description="Lines around matches")] = 0,
    path: Annotated[str | None, Field(max_length=1_000, description="JSONPath (RFC 9535)")] = None,
    rows: Rows | None = None,
    region: Annotated[
        list[int] | None,
        Field(min_length=4, max_length=4, description="[left, top, right, bottom] of an image"),
    ] = None,
    offset: Annotated[int, Field(ge=0, description="Parts to leave out")] = 0,
) -> ResultPart:
    """Reads a part of a large result that was kept: lines, matches of grep, a JSONPath, or rows."""
    content = _content(context, handle)
    verbs = sum(each is not None for each in (lines, grep, path, rows))
    if "image" in content and not verbs:
        return _image(content["image"], region)
    if "image" in content or verbs != 1 or region is not None:
        raise InvalidArgumentsError(
            "Give exactly one of lines, grep, path and rows; for an image, only region or nothing.",
            next_actions=["Start with grep for a word that the answer contains."],
        )
    value = content["value"]
    view = View(content["text"]) if value is None else View.of_value(value)
    if rows is not None:
        found = _rows(view, rows)
    elif path is not None:
        found = _matches(view, path)
    elif grep is not None:
        found = _grep(view.lines(), grep, before_after, str if match_case else str.casefold)
    else:
        found = _lines(view.lines(), lines or [])
    limit = len(found) if rows is None else rows.limit
    return _page(found, offset, limit, context.text_budget - RESERVED)


def _content(context: RequestContext, handle: str) -> dict[str, Any]:
    owner = Owner(context.identity.user_id, context.session_id)
    kept = None if context.grant.calls is None else context.grant.calls.kept
    content: dict[str, Any] | None = None if kept is None else kept.get(handle, owner)
    if content is None:
        raise NotFoundError(
            f"handle: no result {handle!r} is kept for this session; results expire after a day.",
            next_actions=["Call the tool again, and use the handle of its new result."],
        )
    return content


def _image(kept: dict[str, Any], region: list[int] | None) -> ResultPart:
    from storage.reading.images import EDGE, Region, scale_image  # loaded on first use

    whole = cast("Media", decode_block(kept))
    edge, box = (MOST_EDGE, None) if region is None else (EDGE, cast("Region", tuple(region)))
    try:
        scaled = from_thread.run(scale_image, whole.data, edge, box)
    except UnreadableDocumentError as error:
        raise InvalidArgumentsError(
            f"The image cannot be shown. {error}",
            next_actions=["Give a region of the size that the result named, or smaller."],
        ) from error
    told = f"{scaled.size[0]} x {scaled.size[1]} pixels"
    shown = Media("image", scaled.data or whole.data, scaled.mime_type or whole.mime_type)
    return ResultPart(parts=[told], found=1, next_offset=0, media=shown)


def _page(found: list[str], offset: int, limit: int, room: int) -> ResultPart:
    shown: list[str] = []
    for part in found[offset : offset + limit]:
        cut = (
            part if len(part) <= room or shown else f"{part[: room - 40]}… [{len(part)} characters]"
        )
        room -= len(cut) + 1
        if room < 0 and shown:
            break
        shown.append(cut)
    after = offset + len(shown)
    return ResultPart(parts=shown, found=len(found), next_offset=after if after < len(found) else 0)


def _lines(lines: list[str], span: list[int]) -> list[str]:
    first, last = (each if each >= 0 else len(lines) + 1 + each for each in span)
    return [f"{at}: {lines[at - 1]}" for at in range(max(first, 1), min(last, len(lines)) + 1)]


def _grep(lines: list[str], grep: str, around: int, folded: Callable[[str], str]) -> list[str]:
    words = [word for word in folded(grep).split("|") if word]
    shown: dict[int, str] = {}
    for at, line in enumerate(lines):
        # A word may be cut between two pieces of a long line.
        rest = lines[at + 1][: len(grep)] if len(line) == PIECE and at + 1 < len(lines) else ""
        if any(word in folded(f"{line}{rest}") for word in words):
            for near in range(max(at - around, 0), min(at + around + 1, len(lines))):
                shown[near] = shown.get(near, "-")
            shown[at] = ":"
    return [f"{at + 1}{sign} {lines[at]}" for at, sign in sorted(shown.items())]


def _matches(view: View, path: str) -> list[str]:
    from jsonpath import JSONPathEnvironment, JSONPathError  # loaded on first use

    if view.value is None:
        raise InvalidArgumentsError(
            "path: the result is not JSON.", next_actions=["Use grep or lines."]
        )
    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):  # a regular expression could run forever
        environment.function_extensions.pop(name, None)
    if path.count("..") > MOST_DESCENTS:
        raise InvalidArgumentsError(
            f"path: at most {MOST_DESCENTS} steps may be '..'.",
            next_actions=["Name the keys between, as the preview does, or use grep."],
        )
    try:
        found = environment.finditer(path, view.value)
        return [_written(match.value) for match in islice(found, MOST_MATCHES)]
    except (JSONPathError, RecursionError) as error:
        raise InvalidArgumentsError(
            f"path: {path!r} is not a JSONPath: {str(error).splitlines()[0]}.",
            next_actions=["Write it as the preview names paths, such as $.items[0].name."],
        ) from error


def _rows(view: View, asked: Rows) -> list[str]:
    tables = view.tables
    name = asked.path or max(tables, key=lambda path: len(tables[path]), default="")
    if name not in tables:
        raise InvalidArgumentsError(
            f"rows: there is no list of objects at {name!r}.",
            suggestions=list(tables)[:10],
            next_actions=["Name one of these as path, or use grep, lines or path."],
        )
    rows = [row for row in tables[name] if all(_meets(row, each) for each in asked.where)]
    if asked.sort:
        column = asked.sort.removeprefix("-")
        rows.sort(key=lambda row: _order(_cell(row, column)), reverse=asked.sort.startswith("-"))
    named = asked.columns
    return [_written({each: _cell(row, each) for each in named} if named else row) for row in rows]


def _meets(row: dict[str, Any], condition: str) -> bool:
    column, contains, wanted = condition.partition(" contains ")
    if contains:
        return wanted.strip().casefold() in _written(_cell(row, column.strip())).casefold()
    sign = next((sign for sign in _SIGNS if sign in condition), "")
    if not sign:
        raise InvalidArgumentsError(
            f"where: {condition!r} is not COLUMN = VALUE.",
            next_actions=[f"Compare with one of {', '.join(_SIGNS)} and contains."],
        )
    column, _, wanted = condition.partition(sign)
    value = _order(_cell(row, column.strip()))
    return _SIGNS[sign](value, _order(wanted.strip().strip("'\"")))


def _order(value: Any) -> tuple[int, float, str]:  # noqa: ANN401  # any JSON value
    """Returns a key by which numbers, also written as text, come before other values."""
    text = _written(value)
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def _cell(row: dict[str, Any], column: str) -> Any:  # noqa: ANN401  # any JSON value
    if column in row:
        return row[column]
    value: Any = row
    for key in column.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _written(value: Any) -> str:  # noqa: ANN401  # any JSON value
    return value if isinstance(value, str) else compact(value)
