"""Cards: the texts by which the user, people and things are found, stored as contexts.

A card describes a profile or an entity in sentences, with its relationships in both directions, and
its former facts under a separate heading. Triggers mark it as stale when its sources change. The
writer of a change regenerates it in the same transaction, the indexer those that are left. It is
deleted with its entity. As a context it is searched, filtered and embedded like all others; lists
and counts leave it out, because it only repeats stored data.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from storage.contexts.contexts import insert_whole, rewrite_context, update_context
from storage.contexts.ingestion import PreparedChunk, chunk_terms
from storage.database import Database, View, identity_of
from storage.models import FORMERLY, ContextType, NewContext
from storage.people.entities import newest_relationships, read_entity
from storage.people.fact_history import former_facts, own_profile
from storage.people.models import Entity, EntityType, FormerFact, Profile, Relationship
from storage.reading.chunk import chunk

AT_ONCE = 20  # stale cards regenerated in one transaction: less than 50 ms

MOST_PAST = 50  # maximum former facts on one card, latest first

THE_USER = "The user"
_USER_WORDS = ("me", "person", "Nutzer", "Benutzer", "用户", "用戶")  # other words for the user

_KINDS = {
    EntityType.PERSON: "a person",
    EntityType.PROJECT: "a project",
    EntityType.TEAM: "a team",
    EntityType.ORGANIZATION: "an organization",
}


def has_work(connection: sqlite3.Connection) -> bool:
    """Returns whether any card is stale."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM stale_cards)").fetchone()[0])


def work(database: Database) -> bool:
    """Regenerates some cards; returns False if none is stale."""
    with database.read() as connection:
        if not has_work(connection):
            return False
    with database.write() as connection:
        refresh(connection)
    return True


def refresh(connection: sqlite3.Connection, limit: int = AT_ONCE) -> None:
    """Regenerates stale cards, the latest first, in the caller's transaction."""
    rows = connection.execute(
        "SELECT max(seq) AS last, entity_seq, user_id, device_id, agent_id FROM stale_cards"
        " WHERE seq > (SELECT max(seq) - ? FROM stale_cards)"
        " GROUP BY entity_seq, user_id, device_id, agent_id ORDER BY last DESC",
        (limit,),
    ).fetchall()
    for row in rows:
        whose = View(connection, identity_of(row))
        seq = row["entity_seq"]
        if seq is None:
            _refresh_profile(whose)
        else:
            _refresh_entity(connection, seq)
        connection.execute(
            "DELETE FROM stale_cards WHERE entity_seq IS ? AND user_id = ? AND device_id = ?"
            " AND agent_id = ?",
            (seq, *whose.owner.values()),
        )


def _refresh_profile(view: View) -> None:
    profile = own_profile(view)
    if profile is None:
        return
    past = former_facts(view, None)[:MOST_PAST]
    new = NewContext(
        context_type=ContextType.PROFILE,
        title=THE_USER,
        text=" ".join(_about_user(profile)),
        keywords=_USER_WORDS,
        event_time=profile.update_time,
        metadata=profile.metadata,
        raw_type=ContextType.PROFILE,
    )
    _write(view, new, _past_lines("the user", past), profile.create_time)


def _refresh_entity(connection: sqlite3.Connection, seq: int) -> None:
    entity = read_entity(connection, seq)
    view = View(connection, entity.identity)
    related = newest_relationships(connection, entity)
    standing = [each for each in related if each.until is None]
    others = (each.target if each.ends[0] == seq else each.source for each in standing)
    past = former_facts(view, seq)[:MOST_PAST]
    new = NewContext(
        context_type=ContextType.ENTITY,
        title=entity.name,
        text=" ".join(_about_entity(entity, standing)),
        entities=tuple(dict.fromkeys((entity.name, *entity.aliases, *others))),
        importance=entity.importance,
        event_time=entity.update_time,
        metadata=entity.metadata,
        raw_type=ContextType.ENTITY,
        raw_id=str(seq),
    )
    ended = (
        f"Until {_day(each.until)}: {_relationship(each)}"
        for each in related
        if each.until is not None
    )
    _write(view, new, [*_past_lines(entity.name, past), *ended], entity.create_time)


def _past_lines(subject: str, past: Iterable[FormerFact]) -> list[str]:
    return [
        f"Until {_day(fact.until)}, {_fact(subject, fact.name, fact.value, 'was')}" for fact in past
    ]


def _write(view: View, new: NewContext, past: Sequence[str], create_time: float) -> None:
    """Writes a card over its earlier version, keeping the links of entries to it."""
    digest = sha256(json.dumps([new.text, *past], ensure_ascii=False).encode()).hexdigest()
    own = view.own("x")
    row = view.row(
        f"SELECT x.seq, x.sha256 FROM contexts x WHERE {own.sql} AND x.raw_type = ?"
        " AND x.raw_id = ? AND x.context_type = ?",
        (*own.values, new.raw_type, new.raw_id, new.context_type),
    )
    new = replace(new, sha256=digest)
    if row is None:
        chunks = list(_prepare_chunks(new, " ".join(past)))
        insert_whole(view, new, chunks, time.time(), create_time)
    elif row["sha256"] == digest:
        update_context(view.connection, row["seq"], new, merge_count=0)
    else:
        rewrite_context(view, row["seq"], new, list(_prepare_chunks(new, " ".join(past))))


def _prepare_chunks(new: NewContext, past: str) -> Iterator[PreparedChunk]:
    """Yields current facts, then former ones in separate chunks, so that those can be left out."""
    about: tuple[str, ...] = new.keywords
    for piece in chunk(new.text, markdown=False):
        terms = chunk_terms(new.title, "", piece.content, about)
        yield PreparedChunk("", piece.content, piece.start, *terms)
    for piece in chunk(past, markdown=False):
        terms = chunk_terms(new.title, FORMERLY, piece.content, about)
        start = len(new.text) + 2 + piece.start
        yield PreparedChunk(FORMERLY, piece.content, start, *terms)


def _about_user(profile: Profile) -> Iterator[str]:
    yield _sentence(profile.summary) if profile.summary else f"{THE_USER} is known."
    yield from _facts(THE_USER, profile.facts)
    yield from _facts(THE_USER, profile.metadata)


def _about_entity(entity: Entity, related: Iterable[Relationship]) -> Iterator[str]:
    kind = _KINDS.get(entity.entity_type)
    also = f"also called {', '.join(entity.aliases)}" if entity.aliases else ""
    is_kind = f"{entity.name} is {kind}" if kind else entity.name
    yield _sentence(", ".join(filter(None, (is_kind, also))))
    if entity.summary:
        yield _sentence(entity.summary)
    yield from _facts(entity.name, entity.metadata)
    yield from map(_relationship, related)


def _relationship(each: Relationship) -> str:
    more = f" ({each.description})" if each.description else ""
    return _sentence(f"{each.source} {_words(each.relation)} {each.target}{more}")


def _facts(subject: str, values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield _fact(subject, name, value, "is")


def _fact(subject: str, name: str, value: object, verb: str) -> str:
    return _sentence(f"{subject}'s {_words(name)} {verb} {_value_text(value)}")


def _value_text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return ", ".join(
                f"{_words(str(key))} {_value_text(part)}" for key, part in value.items()
            )
        case list():
            return ", ".join(map(_value_text, value))
        case _:
            return str(value)


def _words(name: str) -> str:
    return " ".join(name.replace("_", " ").split()) or name


def _sentence(text: str) -> str:
    bare = text.strip()
    return bare if bare.endswith((".", "!", "?", "\u3002", "\uff01", "\uff1f")) else f"{bare}."


def _day(until: float) -> str:
    return datetime.fromtimestamp(until, UTC).date().isoformat()
