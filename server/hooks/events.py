"""Does what an event of a client's session asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.hooks.exclusions import Exclusions, read_paused
from server.hooks.options import HookOptions
from server.hooks.payloads import HookCall, Moment
from server.hooks.project import Project, project_of
from server.hooks.unstored import is_waiting, store_kept
from storage.database import RECORD, Database, identity_clause
from storage.errors import StorageError
from storage.index.bounded import clip
from storage.memory.captured import Captured
from storage.models import Identity
from tools.core.unicode_safety import revealed

if TYPE_CHECKING:  # most events do not need it
    from storage.memory.briefing import Line

PROMPT_CHARACTERS = 4_000
ANSWER_CHARACTERS = 16_000

COMMAND = re.compile(r"/[\w:-]+\s*$|<(?:command|local-command)")
"""A command to the client instead of a prompt."""

_REWRITES_RULES = {Moment.START, Moment.ANSWER, Moment.END}

Write = Callable[[Mapping[str, Any]], None]


class Handler:
    """An event whose text is ready to be stored, which it is before the record is opened.

    Attributes:
        call: The event, without secrets and without what is ignored.
    """

    def __init__(self, call: HookCall, options: HookOptions) -> None:
        self._options = options
        self._project = project_of(call.directory)
        self._exclusions = Exclusions(self._project, options.ignore)
        self._is_excluded = self._exclusions.cover_directory(call.directory)
        text = "" if self._is_excluded else _storable_text(call, self._exclusions)
        self.call = replace(call, text=text)

    @property
    def is_kept(self) -> bool:
        """Returns whether something is lost if the record is busy."""
        moment = self.call.event.moment
        is_said = bool(self.call.text) or moment in {Moment.COMPACT, Moment.END}
        return is_said and not self._is_excluded

    def run(self, write: Write) -> None:
        """Does what the event asks for, and writes the reply as soon as it is known."""
        call, options, moment = self.call, self._options, self.call.event.moment
        with closing(Database(options.data_dir / RECORD)) as database:
            paused = read_paused(database)
            if self._is_excluded or paused.covers(self._project.directory):
                if (reply := call.reply()) is not None:
                    write(reply)
                self._write_rules(database, "")
                return
            memory = _Memory(call, options.identity, self._project, database)
            lines: list[Line] = []
            if moment is Moment.START and call.client.context:
                lines = memory.briefing_lines()
            elif moment is Moment.PROMPT and call.client.context and call.text:
                lines = memory.recalled_lines()
            lines = self._without_excluded(lines)
            text = memory.format(lines)
            if (reply := call.reply(text)) is not None:
                write(reply)  # before any write, which a locked record may delay
            store_waiting(options.data_dir, database)
            memory.store()
            if lines:
                memory.note_shown(lines, text)
            memory.captured.note_fired(call.client_id, call.event_name)
            if call.client.rules and moment in _REWRITES_RULES:
                lines = self._without_excluded(memory.briefing_lines(whole=True))
                self._write_rules(database, memory.format(lines))

    def _without_excluded(self, lines: Sequence[Line]) -> list[Line]:
        """Returns the lines that may be shown: a pattern may be newer than what is stored."""
        return [line for line in lines if self._exclusions.apply(line.text) == line.text]

    def _write_rules(self, database: Database, text: str) -> None:
        if self.call.client.rules:
            from server.hooks.rules_file import write_rules

            write_rules(database, self.call.client, self._project, text)


def store_waiting(data_dir: Path, database: Database) -> None:
    """Stores the events for which the record was busy, but for those of paused projects."""

    def store(call: HookCall, identity: Identity) -> None:
        project = project_of(call.directory)
        if not read_paused(database).covers(project.directory):
            _Memory(call, identity, project, database).store()

    store_kept(data_dir, store)


def store_left(data_dir: Path) -> None:
    """Stores what waits without a hook; if the record is still busy, a hook does it later."""
    if not is_waiting(data_dir):
        return
    with suppress(StorageError, OSError), closing(Database(data_dir / RECORD)) as database:
        store_waiting(data_dir, database)


def _storable_text(call: HookCall, exclusions: Exclusions) -> str:
    match call.event.moment:
        case Moment.PROMPT if not COMMAND.match(call.text):
            return exclusions.storable(call.text, PROMPT_CHARACTERS)
        case Moment.ANSWER:
            answer = call.text
            if not answer and call.transcript:
                from server.hooks.transcripts import last_answer

                answer = last_answer(Path(call.transcript))
            return exclusions.storable(answer, ANSWER_CHARACTERS)
        case Moment.CHANGE if not exclusions.covers_file(call.text):
            return call.text
    return ""


class _Memory:
    """Stores an event, and selects what to show of earlier ones."""

    def __init__(
        self, call: HookCall, identity: Identity, project: Project, database: Database
    ) -> None:
        self._call = call
        self._identity = identity
        self._database = database
        self.captured = Captured(database, identity)
        begins = call.event.moment in {Moment.START, Moment.PROMPT}
        self._session = self.captured.session(
            call.session, call.client_id, str(project.directory), begins=begins
        )

    def store(self) -> None:
        call = self._call
        match call.event.moment:
            case Moment.PROMPT:
                self.captured.hear_prompt(self._session, call.text, call.time)
            case Moment.ANSWER:
                self.captured.hear_answer(self._session, call.text, call.time)
            case Moment.CHANGE if call.text:
                self.captured.hear_change(self._session, call.text, call.time)
            case Moment.COMPACT | Moment.END:
                self._sum_up()

    def note_shown(self, lines: Sequence[Line], text: str) -> None:
        shown = {line.digest: line.source for line in lines}
        self.captured.note_briefing(self._session, text, shown)

    def briefing_lines(self, *, whole: bool = False) -> list[Line]:
        """Returns all lines, or those that the session does not know; a cleared one knows none."""
        from storage.memory.briefing import Briefing

        call = self._call
        own = "" if whole or call.source == "compact" else self._session.id
        is_new = whole or call.source == "clear"
        known = () if is_new else self.captured.shown_lines(self._session.id)[0]
        return Briefing(self._database, self._identity, self._session.project, but=own).lines(known)

    def recalled_lines(self) -> list[Line]:
        """Returns what earlier sessions say about the prompt and this one was not shown."""
        from storage.memory.recall import LEAST, LEAST_AGAIN, recall

        _, texts = self.captured.shown_lines(self._session.id)
        return recall(
            self._database,
            self._identity,
            self._session.project,
            self._call.text,
            but=self._session.id,
            known="\n".join(texts),
            least=LEAST_AGAIN if len(texts) > 1 else LEAST,
        )

    def format(self, lines: Sequence[Line]) -> str:
        if not lines:
            return ""
        from storage.memory.briefing import CHARACTERS, format_briefing

        text = revealed(format_briefing(lines, self._session.project))
        # A closing tag would end the element in which clients wrap the text.
        return clip(text.replace("</", "< /"), CHARACTERS)

    def _sum_up(self) -> None:
        from storage.events.extractive import EXTRACT_CHARACTERS, EXTRACTIVE
        from storage.memory.entries import Entries
        from storage.memory.summaries import SessionSummaries

        summaries = SessionSummaries(self._database, Entries(self._database), None)
        owner = identity_clause(self._identity, "s")
        for due in summaries.due(owner, 1, named=[self._session.id])[0]:
            text = summaries.extract(due, EXTRACT_CHARACTERS)
            summaries.keep(due, text, EXTRACTIVE)
