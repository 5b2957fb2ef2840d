"""Addresses of stored context, and contexts as text: one in full or several as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from storage.index.bounded import clip_line
from storage.models import Chunk, Context, ContextType, utc, whole_text
from storage.people.models import Entity, Profile, Relationship
from storage.reading.formats import MARKDOWN, MARKDOWN_MEDIA_TYPES
from tools.core.errors import NotFoundError

SCHEME = "context://"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed and decoded address."""

    noun: str
    parts: tuple[str, ...]
    options: Mapping[str, str]

    @classmethod
    def parse(cls, uri: str) -> Address:
        """Parses a URI; raises a NotFoundError if it is not one of our addresses."""
        if not uri.startswith(SCHEME):
            raise NotFoundError(f"{uri!r} is not an address here.")
        path, _, query = uri.removeprefix(SCHEME).partition("?")
        noun, *parts = path.split("/")
        try:
            decoded = tuple(unquote(part, errors="strict") for part in parts)
            options = dict(parse_qsl(query, keep_blank_values=True, errors="strict"))
        except ValueError as error:
            raise NotFoundError(f"The address {uri!r} is not UTF-8.") from error
        return cls(noun, decoded, options)


def document_uri(raw_type: str, raw_id: str) -> str:
    """Builds a document's address; reserved characters of both parts are percent-encoded."""
    return f"{SCHEME}documents/{quote(raw_type, safe='')}/{quote(raw_id, safe='')}"


def context_uri(context_id: str) -> str:
    """Builds the address of a context."""
    return f"{SCHEME}contexts/{quote(context_id, safe='')}"


def entity_uri(name: str) -> str:
    """Builds the address of an entity."""
    return f"{SCHEME}entities/{quote(name, safe='')}"


def plan_uri(plan_id: str) -> str:
    """Builds the address of a plan."""
    return f"{SCHEME}plans/{quote(plan_id, safe='')}"


SUMMARY_CHARACTERS = 200
"""Length of a summary in a line."""

FIRST_WORDS = 60
"""Length of the text that substitutes a title."""


def media_type_of(context: Context) -> str:
    """Returns the media type of a context's stored text."""
    return MARKDOWN.media_type if context.media_type in MARKDOWN_MEDIA_TYPES else "text/plain"


def context_text(context: Context, chunks: Sequence[Chunk]) -> str:
    """Formats a context with its metadata as Markdown."""
    source = f"{context.raw_type}: {context.raw_id}" if context.raw_id else context.raw_type
    known = [
        ("Kind", _kind(context)),
        ("Time", utc(context.event_time).isoformat(timespec="seconds")),
        ("Source", source),
        ("Entities", ", ".join(context.entities)),
        ("Keywords", ", ".join(context.keywords)),
        ("Summary", context.summary),
    ]
    head = "\n".join(f"- {name}: {value}" for name, value in known if value)
    text = whole_text(chunks)
    return f"# {title_of(context, text)}\n\n{head}\n\n{text}"


def title_of(context: Context, text: str) -> str:
    """Returns a context's title, or else its first words."""
    return " ".join(context.title.split()) or clip_line(text, FIRST_WORDS)


def context_line(context: Context, title: str) -> str:
    """Formats a context as a list item that links to it."""
    when = utc(context.event_time).isoformat(sep=" ", timespec="minutes")[:16]
    about = clip_line(context.summary, SUMMARY_CHARACTERS)
    line = f"- [{title}]({context_uri(context.id)}): {_kind(context)}, {when}"
    return f"{line}. {about}" if about else line


def entity_line(entity: Entity) -> str:
    """Formats an entity as a list item that links to it."""
    also = f" (also {', '.join(entity.aliases)})" if entity.aliases else ""
    line = f"- [{entity.name}]({entity_uri(entity.name)}){also}: {entity.entity_type}"
    return f"{line}. {clip_line(entity.summary, SUMMARY_CHARACTERS)}" if entity.summary else line


def entity_text(entity: Entity, relationships: Iterable[Relationship]) -> str:
    """Formats an entity with its summary and relationships as Markdown."""
    also = f"Also called {', '.join(entity.aliases)}." if entity.aliases else ""
    related = "\n".join(
        f"- {each.source} {each.relation} {each.target}"
        + (f" ({each.description})" if each.description else "")
        for each in relationships
    )
    head = f"# {entity.name} ({entity.entity_type})"
    return "\n\n".join(filter(None, (head, also, entity.summary, related)))


def profile_text(profile: Profile) -> str:
    """Formats the user's profile as lines."""
    facts = (f"- {name}: {value}" for name, value in profile.facts.items())
    return "\n".join(filter(None, (profile.summary, *facts)))


def truncate(text: str, characters: int) -> str:
    """Cuts a text at the last line that fits, and appends a note."""
    if len(text) <= characters:
        return text
    note = "[Cut here; ask `query` for more.]"
    room = characters - len(note) - 1
    end = text.rfind("\n", 0, room + 1)
    return f"{text[: end if end > 0 else room]}\n{note}"


def _kind(context: Context) -> str:
    summary = context.context_type is ContextType.EVENT and context.hierarchy_level
    return f"summary of {context.time_bucket}" if summary else str(context.context_type)
