"""Renders what addresses show: views of one identity's shelf as text. All functions block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from server.mcp.context_text import (
    Address,
    context_line,
    context_text,
    entity_line,
    entity_text,
    plan_uri,
    profile_text,
    title_of,
    truncate,
)
from storage.errors import ContextNotFoundError
from storage.events.buckets import DAY, MONTH, SECOND, WEEK, Bucket
from storage.library import Shelf
from storage.models import Context, ContextType, MemoryLayer, SearchFilter, TimeRange, whole_text
from storage.retrieval.routing import Source, UnifiedQuery
from tools.answers.dates import Period
from tools.answers.hits import Answer
from tools.answers.plans import PlanLine
from tools.core.errors import NotFoundError

PAGE = 100
"""Items on one page of a view."""

VIEW_CHARACTERS = 8_000
"""Length of an unpaged view."""

SAID_CHARACTERS = 600
"""Length of one context's text within a view."""

RELEVANT_HITS = 10
RELEVANT_ENTITIES = 3
NEWEST = 10
MOST_IMPORTANT = 5
LATEST_SESSIONS = 3
LOOKED_THROUGH = 200
"""Number of newest memories, or pieces of knowledge, searched for important ones."""

HAPPENINGS = 50
"""Maximum number of summaries and events of a period that are shown."""

SUMMARIES = 500
"""Maximum number of summaries of a period that are read: a year has 430."""

KINDS = {
    "documents": ContextType.DOCUMENT,
    "events": ContextType.EVENT,
    "knowledge": ContextType.KNOWLEDGE,
}

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Relevant:
    """Context that an agent should see unasked, with the contexts found for its topic."""

    text: str
    context_ids: tuple[str, ...] = ()


def view(shelf: Shelf, address: Address, sources: tuple[Source, ...]) -> str:
    """Renders the view at an address in Markdown."""
    match address.noun, address.parts:
        case ("documents" | "events" | "knowledge") as noun, ():
            criteria = SearchFilter(context_types=(KINDS[noun],))
            return _contexts(shelf, noun.capitalize(), criteria, address)
        case "time", (label,):
            return _time(shelf, label, address)
        case ("entities" | "plans") as noun, ():
            return _entities(shelf, address) if noun == "entities" else _plans(shelf, address)
        case "entities", (name,):
            return _entity(shelf, name, address)
        case "contexts", (context_id,):
            return context_text(*shelf.get(context_id))
        case "relevant", ():
            return relevant(shelf, address.options.get("topic", ""), sources).text
    raise NotFoundError(f"No view has the address {address.noun!r}, {address.parts!r}.")


def relevant(shelf: Shelf, topic: str, sources: tuple[Source, ...]) -> Relevant:
    """Returns context that an agent of the user should see unasked.

    Without a topic, that is the profile, the most important memories and knowledge, the latest
    sessions and the newest contexts.
    """
    if topic.strip():
        return _about(shelf, topic, sources)
    standing = "\n\n".join(_standing(shelf))
    return Relevant(truncate(standing or "Nothing is stored yet.", VIEW_CHARACTERS))


def happenings(shelf: Shelf, period: Period) -> str:
    """Renders the events of a period: summaries first, then events, each in order of time.

    Includes only summaries that lie mostly in the period: for a day, not that of its month.
    """
    times = TimeRange(period.start, period.end)
    of_events = partial(SearchFilter, context_types=(ContextType.EVENT,), time_range=times)
    summaries = shelf.contexts(of_events(levels=(DAY, WEEK, MONTH)), SUMMARIES)
    told = _in_time(each for each in summaries if _is_mostly_in(period, each))
    told += _in_time(shelf.contexts(of_events(levels=(SECOND,)), HAPPENINGS))
    count = shelf.count(of_events(levels=(SECOND,)))
    heading = f"# {period.title}: {count} event{'' if count == 1 else 's'}"
    parts = [heading, *(_format_context(shelf, each) for each in told[:HAPPENINGS])]
    if count > HAPPENINGS:
        parts.insert(1, "[Some are not shown; ask `retrieve_event_context` for the rest.]")
    return truncate("\n\n".join(parts), VIEW_CHARACTERS)


def _is_mostly_in(period: Period, summary: Context) -> bool:
    bucket = Bucket.parse(summary.time_bucket)
    within = min(bucket.end, period.end) - max(bucket.start, period.start)
    return 2 * within > bucket.end - bucket.start


def _about(shelf: Shelf, topic: str, sources: tuple[Source, ...]) -> Relevant:
    found = shelf.ask(UnifiedQuery(text=topic, top_k=RELEVANT_HITS, sources=sources))
    answer = Answer.of_unified(found, topic)
    told = {each.raw_id for each in answer.hits if each.context_type == ContextType.ENTITY}
    likely = (match.entity for match in shelf.people.search(topic, top_k=RELEVANT_ENTITIES))
    others = (entity for entity in likely if str(entity.id) not in told)
    parts = [*_section("Entities", entity_line, others), answer.to_text()]
    text = truncate("\n\n".join(parts), VIEW_CHARACTERS)
    return Relevant(text, tuple(each.id for each in answer.hits))


def _standing(shelf: Shelf) -> list[str]:
    profile = shelf.people.profile()
    remembered = SearchFilter(memory_layers=(MemoryLayer.IMPORTANT,))
    known = SearchFilter(context_types=(ContextType.KNOWLEDGE,), memory=False)
    summaries = SearchFilter(memory_layers=(MemoryLayer.SUMMARY,))
    told = partial(_format_context, shelf)
    return [
        *([] if profile is None else [f"## The user\n\n{profile_text(profile)}"]),
        *_section("Remembered", told, _most_important(shelf, remembered)),
        *_section("Important", told, _most_important(shelf, known)),
        *_section("Latest sessions", told, shelf.contexts(summaries, LATEST_SESSIONS)),
        *_section("Newest", partial(_line, shelf), shelf.contexts(SearchFilter(), NEWEST)),
    ]


def _most_important(shelf: Shelf, criteria: SearchFilter) -> list[Context]:
    newest = shelf.contexts(criteria, LOOKED_THROUGH)
    return sorted(newest, key=lambda each: -each.importance)[:MOST_IMPORTANT]


def _contexts(shelf: Shelf, title: str, criteria: SearchFilter, address: Address) -> str:
    page, count = _page_of(address), shelf.count(criteria)
    lines = map(partial(_line, shelf), shelf.contexts(criteria, PAGE, PAGE * (page - 1)))
    return _paged(title, lines, page, count)


def _time(shelf: Shelf, label: str, address: Address) -> str:
    try:
        bucket = Bucket.parse(label)
    except (ValueError, OverflowError) as error:
        raise NotFoundError(f"{label!r} is not a day, ISO week or month.") from error
    if bucket.level == SECOND:
        raise NotFoundError(f"{label!r} is not a day, ISO week or month.")
    times = TimeRange(bucket.start, math.nextafter(bucket.end, bucket.start))
    criteria = SearchFilter(time_range=times)
    page, count = _page_of(address), shelf.count(criteria)
    shown = _in_time(shelf.contexts(criteria, PAGE, PAGE * (page - 1)))
    return _paged(bucket.title, map(partial(_line, shelf), shown), page, count)


def _entities(shelf: Shelf, address: Address) -> str:
    page = _page_of(address)
    shown = shelf.people.listed(limit=PAGE, offset=PAGE * (page - 1))
    return _paged("Entities", map(entity_line, shown), page, shelf.people.count())


def _entity(shelf: Shelf, name: str, address: Address) -> str:
    criteria = SearchFilter(entities=(name,))
    meant = [match.entity for match in shelf.people.find(name, limit=1)]
    if not meant and not shelf.count(criteria):
        raise NotFoundError(f"Nothing is stored about {name!r}.")
    known = [entity_text(each, shelf.people.relationships_of(each.name)[2]) for each in meant]
    return "\n\n".join([*known, _contexts(shelf, f"Mentions of {name}", criteria, address)])


def _plans(shelf: Shelf, address: Address) -> str:
    page = _page_of(address)
    shown = map(PlanLine.of, shelf.plans.listed(PAGE, PAGE * (page - 1), closed=True))
    lines = (f"- [{each.plan_id}]({plan_uri(each.plan_id)}), {each.to_line()}" for each in shown)
    return _paged("Plans", lines, page, shelf.plans.count())


def _page_of(address: Address) -> int:
    page = address.options.get("page", "1")
    if not (page.isascii() and page.isdecimal() and 0 < int(page[:10]) < 10**9):
        raise NotFoundError(f"{page!r} is not a page.")
    return int(page)


def _paged(title: str, lines: Iterable[str], page: int, count: int) -> str:
    shown = list(lines)
    if not shown and page > 1:
        raise NotFoundError(f"{title} has no page {page}.")
    rest = [f"\nPage {page} of {-(-count // PAGE)}: add ?page={page + 1}."]
    more = rest if page * PAGE < count else []
    return "\n".join([f"# {title}: {count}\n", *shown, *more])


def _in_time(contexts: Iterable[Context]) -> list[Context]:
    """Sorts summaries of longer periods first, then by time."""
    return sorted(contexts, key=lambda each: (-each.hierarchy_level, each.event_time))


def _line(shelf: Shelf, context: Context) -> str:
    """Formats a context as a line; reads its text only if it has no title."""
    return context_line(context, title_of(context, "" if context.title else _text(shelf, context)))


def _format_context(shelf: Shelf, context: Context) -> str:
    """Formats a context as a line followed by its text."""
    text = _text(shelf, context)
    said = " ".join(truncate(text, SAID_CHARACTERS).split())
    return f"{context_line(context, title_of(context, text))}\n  {said}".rstrip()


def _text(shelf: Shelf, context: Context) -> str:
    try:
        return whole_text(shelf.get(context.id)[1])
    except ContextNotFoundError:  # deleted meanwhile
        return ""


def _section(title: str, line: Callable[[ItemT], str], items: Iterable[ItemT]) -> list[str]:
    lines = [line(each) for each in items]
    return ["\n".join([f"## {title}\n", *lines])] if lines else []
