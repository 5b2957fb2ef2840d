"""Captured conversations: what a client's hooks hand over, one document for each session.

A prompt is an entry until its turn ends. Then prompt and answer become turns of the document, which
the entries are linked to: a deleted entry takes its turn with it, a deleted document empties them.
"""

from __future__ import annotations

import json
import re
import textwrap
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from storage.contexts.contexts import insert_whole
from storage.contexts.ingestion import as_json, insert_chunks, normalized, prepare
from storage.database import Database, View, Where, update_row
from storage.index.bounded import clip
from storage.memory.entries import insert_entry
from storage.models import Identity, NewContext, NewEntry, Turn

CONVERSATION = "conversation"  # the raw_type of the document; its raw_id is the session's id
SAID_CHARACTERS = 700  # of an answer in its entry; the document has it whole
MOST_FILES = 50  # changed files that a conversation names; the latest
TITLE_CHARACTERS = 60
IMPORTANCE = 5.0  # of a message: below the important ones, which become memories by themselves

_FIRED = "hooks fired"


@dataclass(frozen=True, slots=True)
class ClientSession:
    """A session of a client, and the project it works on."""

    id: str
    client: str
    project: str  # the directory


class Captured:
    """Stores the conversations of one identity."""

    def __init__(self, database: Database, identity: Identity) -> None:
        self._database = database
        self._identity = identity

    def session(self, name: str, client: str, project: str, *, begins: bool) -> ClientSession:
        """Returns a session by the client's name for it; another project's gets another id.

        What does not begin a turn belongs to the turn that waits for it, even if the client has
        changed to the directory of another project since.
        """
        with self._database.read() as connection:
            view = View(connection, self._identity)
            own = view.own("s")
            rows = view.rows(
                f"SELECT s.id, s.project FROM sessions s WHERE {own.sql}"
                " AND (s.id = ? OR s.id GLOB ?) ORDER BY s.project <> ?, s.last_time DESC",
                (*own.values, name, f"{_literal(name)} [0-9a-f]*", project),
            )
            known = [ClientSession(row["id"], client, row["project"] or project) for row in rows]
            waiting = [] if begins else [each for each in known if _waiting(view, each)]
        mine = [each for each in known if each.project == project]
        found = waiting or mine or ([] if begins else known)
        suffix = f" {sha256(project.encode(errors='replace')).hexdigest()[:12]}" if known else ""
        return found[0] if found else ClientSession(f"{name}{suffix}", client, project)

    def hear_prompt(self, session: ClientSession, prompt: str, at: float | None = None) -> bool:
        """Stores a prompt until its turn ends; returns False if it is stored already."""
        with self._database.write() as connection:
            view = View(connection, self._identity)
            waiting = [said for said, _ in _waiting(view, session)]
            message = _message(session, "prompt", prompt, at)
            if not prompt or prompt in waiting[-1:] or _is_stored(view, message):
                return False
            insert_entry(view, message)
        return True

    def hear_change(self, session: ClientSession, path: str, at: float | None = None) -> None:
        """Stores that a file was changed, for the turn that ends next."""
        with self._database.write() as connection:
            view = View(connection, self._identity)
            entry = replace(_message(session, "change", "", at), target=path, importance=0.0)
            if not _is_stored(view, entry):
                insert_entry(view, entry)

    def hear_answer(self, session: ClientSession, answer: str, at: float | None = None) -> bool:
        """Ends a turn: adds its prompts and the answer to the conversation of the session.

        Returns False if it is stored already, or if a hook that fired twice gave it again.
        """
        said = clip(answer, SAID_CHARACTERS)
        with self._database.write() as connection:
            view = View(connection, self._identity)
            prompts = _waiting(view, session)
            message = _message(session, "answer", said, at)
            is_repeated = not prompts and said == _last_answer(view, session)
            if not answer or is_repeated or _is_stored(view, message):
                return False
            files = _changed_files(view, session)
            turns = [Turn(_heading("User", moment), text) for text, moment in prompts]
            turns.append(Turn(_heading(session.client, message.time), answer))
            conversation = _extend(view, session, turns, files)
            arguments = {"files": list(files)} if files else {}
            insert_entry(view, replace(message, arguments=arguments, context_ids=(conversation,)))
        return True

    def answers(self, session_id: str) -> Counter[str]:
        """Counts the stored answers of a session, shortened as their entries are."""
        with self._database.read() as connection:
            view = View(connection, self._identity)
            own = view.own("e")
            rows = view.rows(
                f"SELECT e.said FROM entries e WHERE {own.sql} AND e.session_id = ?"
                " AND e.action LIKE '%:answer'",
                (*own.values, session_id),
            )
        return Counter(row["said"] for row in rows)

    def shown_lines(self, session_id: str) -> tuple[set[str], list[str]]:
        """Returns what a session was shown: the digests of the lines, and the texts."""
        with self._database.read() as connection:
            view = View(connection, self._identity)
            own = view.own("e")
            rows = view.rows(
                f"SELECT e.arguments, e.said FROM entries e WHERE {own.sql} AND e.session_id = ?"
                " AND e.action LIKE '%:briefing' AND e.said <> ''",
                (*own.values, session_id),
            )
        digests = (json.loads(row["arguments"]).get("lines", ()) for row in rows)
        return {each for lines in digests for each in lines}, [row["said"] for row in rows]

    def note_briefing(self, session: ClientSession, text: str, shown: Mapping[str, int]) -> None:
        """Stores what a session was shown, to show it once: digests of lines, and their sources.

        A deleted source empties the entry.
        """
        message = replace(
            _message(session, "briefing", text), arguments={"lines": list(shown)}, is_recall=True
        )
        with self._database.write() as connection:
            seq = insert_entry(View(connection, self._identity), message)
            connection.executemany(
                "INSERT OR IGNORE INTO entry_contexts (entry_seq, context_seq)"
                " SELECT ?, seq FROM contexts WHERE seq = ?",
                ((seq, source) for source in shown.values()),
            )

    def note_fired(self, client: str, event: str) -> None:
        """Stores when a client last ran a hook."""
        with self._database.write(synced=False) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (_FIRED,)).fetchone()
            fired = json.loads(row[0]) if row else {}
            fired[client] = [event, time.time()]
            connection.execute(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_FIRED, as_json(fired))
            )


def last_fired(database: Database) -> dict[str, tuple[str, float]]:
    """Returns the last event of each client whose hooks ever fired, and its time."""
    stored = json.loads(database.get_meta(_FIRED) or "{}")
    return {client: (event, moment) for client, (event, moment) in stored.items()}


def _message(session: ClientSession, what: str, said: str, at: float | None = None) -> NewEntry:
    return NewEntry(
        session_id=session.id,
        client=session.client,
        project=session.project,
        kind="message",
        time=at or time.time(),
        action=f"{session.client}:{what}",
        said=said,
        importance=IMPORTANCE,
    )


def _is_stored(view: View, message: NewEntry) -> bool:
    """Returns whether the message of this moment is stored: a crash came before its file went."""
    own = view.own("e")
    row = view.row(
        f"SELECT 1 FROM entries e WHERE {own.sql} AND e.session_id = ? AND e.action = ?"
        " AND e.time = ? AND e.said = ? AND e.target = ?",
        (
            *(*own.values, message.session_id, message.action),
            *(message.time, message.said, message.target),
        ),
    )
    return row is not None


def _literal(text: str) -> str:
    """Returns a pattern of GLOB that matches only a text."""
    return re.sub(r"[*?\[]", r"[\g<0>]", text)


def _heading(speaker: str, moment: float) -> str:
    return f"{speaker}, {datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def newest_passages(view: View, project: str, but: str) -> Where:
    """Returns the query for passages of a project without a session, newer ones first.

    It lacks the values of how many to read and how many to skip.
    """
    owner = view.seen("s")
    seqs = (  # texts are read only of those that are chosen
        "SELECT c.seq FROM sessions s"
        " JOIN contexts x ON x.user_id = s.user_id AND x.device_id = s.device_id"
        " AND x.agent_id = s.agent_id AND x.raw_type = ? AND x.raw_id = s.id"
        " AND x.context_type = 'document' JOIN chunks c ON c.context_seq = x.seq"
        f" WHERE {owner.sql} AND s.project = ? AND s.id <> ?"
        " ORDER BY c.seq DESC LIMIT ? OFFSET ?"
    )
    return Where(
        "SELECT x.raw_id, x.seq, c.heading, c.content FROM chunks c"
        f" JOIN contexts x ON x.seq = c.context_seq WHERE c.seq IN ({seqs})",
        (CONVERSATION, *owner.values, project, but),
    )


def seconds(moment: str) -> float:
    """Returns the time in a heading; 0 if it is not ours."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0


def _since_answer(view: View, session: ClientSession, what: str) -> tuple[str, tuple[object, ...]]:
    """Returns the condition for a session's entries of a kind since its last answer."""
    own = view.own("e")
    last = (
        "SELECT coalesce(max(a.seq), 0) FROM entries a WHERE a.user_id = e.user_id"
        " AND a.session_id = e.session_id AND a.action = ?"
    )
    return (
        f"{own.sql} AND e.session_id = ? AND e.action = ? AND e.seq > ({last})",
        (*own.values, session.id, f"{session.client}:{what}", f"{session.client}:answer"),
    )


def _waiting(view: View, session: ClientSession) -> list[tuple[str, float]]:
    """Returns the prompts without an answer, and their times."""
    condition, values = _since_answer(view, session, "prompt")
    rows = view.rows(
        f"SELECT e.said, e.time FROM entries e WHERE {condition} AND e.said <> '' ORDER BY e.seq",
        values,
    )
    return [(row["said"], row["time"]) for row in rows]


def _changed_files(view: View, session: ClientSession) -> tuple[str, ...]:
    condition, values = _since_answer(view, session, "change")
    rows = view.rows(
        f"SELECT DISTINCT e.target FROM entries e WHERE {condition} AND e.target <> ''", values
    )
    return tuple(row["target"] for row in rows)[-MOST_FILES:]


def _last_answer(view: View, session: ClientSession) -> str:
    own = view.own("e")
    row = view.row(
        f"SELECT e.said FROM entries e WHERE {own.sql} AND e.session_id = ? AND e.action = ?"
        " ORDER BY e.seq DESC LIMIT 1",
        (*own.values, session.id, f"{session.client}:answer"),
    )
    return "" if row is None else str(row["said"])


def _extend(view: View, session: ClientSession, turns: Sequence[Turn], files: Sequence[str]) -> str:
    """Adds turns to the conversation of a session, and returns its id."""
    own = view.own("x")
    known = view.row(
        f"SELECT x.seq, x.id, x.title, x.sha256, x.metadata FROM contexts x WHERE {own.sql}"
        " AND x.raw_type = ? AND x.raw_id = ? AND x.context_type = 'document'",
        (*own.values, CONVERSATION, session.id),
    )
    metadata = {} if known is None else json.loads(known["metadata"])
    named = [*metadata.get("files", []), *files]
    metadata |= {"client": session.client, "project": session.project, "session": session.id}
    if named:
        metadata["files"] = list(dict.fromkeys(named))[-MOST_FILES:]
    title = textwrap.shorten(turns[0].content[:1000], TITLE_CHARACTERS, placeholder=" …")
    new = NewContext(
        title=title or "Conversation",
        turns=tuple(turns),
        metadata=metadata,
        raw_type=CONVERSATION,
        raw_id=session.id,
        media_type="application/json",
    )
    now = time.time()
    if known is None:
        seq, _ = insert_whole(view, normalized(new), prepare(new), now)
        return str(view.rows("SELECT id FROM contexts WHERE seq = ?", (seq,))[0]["id"])
    seq = known["seq"]
    last = view.row(
        "SELECT position, start + length(content) AS end FROM chunks WHERE context_seq = ?"
        " ORDER BY position DESC LIMIT 1",
        (seq,),
    )
    first, offset = (0, 0) if last is None else (last["position"] + 1, last["end"] + 2)
    chunks = prepare(replace(new, title=known["title"]))
    moved = [replace(each, start=each.start + offset) for each in chunks]
    insert_chunks(view, seq, moved, first_position=first)
    digest = sha256("\n".join([known["sha256"], *(turn.content for turn in turns)]).encode())
    row = {"sha256": digest.hexdigest(), "metadata": as_json(metadata), "update_time": now}
    update_row(view.connection, "contexts", row, {"seq": seq})
    return str(known["id"])
