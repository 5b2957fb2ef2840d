"""Does what an event of a client's session asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.hooks.exclusions import Exclusions, read_paused
from server.hooks.options import HookOptions
from server.hooks.payloads import HookCall, Moment
from server.hooks.project import Project, project_of
from storage.database import RECORD, Database, identity_clause
from storage.index.bounded import clip
from storage.memory.captured import Captured, ClientSession
from tools.core.unicode_safety import revealed

if TYPE_CHECKING:  # most events do not need it
    from storage.memory.briefing import Line

PROMPT_CHARACTERS = 4_000
ANSWER_CHARACTERS = 16_000

COMMAND = re.compile(r"/[\w:-]+\s*$|<(?:command|local-command)")
"""A command to the client instead of a prompt."""

_REWRITES_RULES = {Moment.START, Moment.ANSWER, Moment.END}

Write = Callable[[Mapping[str, Any]], None]


def handle(call: HookCall, options: HookOptions, write: Write) -> None:
    """Handles an event, and writes the reply as soon as it is known."""
    project = project_of(call.directory)
    exclusions = Exclusions(project, options.ignore)
    database = Database(options.data_dir / RECORD)
    try:
        hook = _Handler(call, options, project, exclusions, database)
        excluded = exclusions.cover_directory(call.directory)
        if excluded or read_paused(database).covers(project.directory):
            if (reply := call.reply()) is not None:
                write(reply)
            if call.client.rules:
                from server.hooks.rules_file import write_rules

                write_rules(database, call.client, project, "")
            return
        hook.handle(write)
    finally:
        database.close()


class _Handler:
    def __init__(
        self,
        call: HookCall,
        options: HookOptions,
        project: Project,
        exclusions: Exclusions,
        database: Database,
    ) -> None:
        self._call = call
        self._identity = options.identity
        self._project = project
        self._exclusions = exclusions
        self._database = database
        self._captured = Captured(database, options.identity)
        self._session = ClientSession(call.session, call.client_id, str(project.directory))

    def handle(self, write: Write) -> None:
        call, moment = self._call, self._call.event.moment
        lines: list[Line] = []
        text = ""
        if moment is Moment.START and call.client.context:
            lines = self._briefing_lines()
            text = self._format(lines)
        if (reply := call.reply(text)) is not None:
            write(reply)  # before any write, which a locked record may delay
        self._store(moment)
        if lines:
            shown = {line.digest: line.source for line in lines}
            self._captured.note_briefing(self._session, text, shown)
        self._captured.note_fired(call.client_id, call.event_name)
        if call.client.rules and moment in _REWRITES_RULES:
            from server.hooks.rules_file import write_rules

            text = self._format(self._briefing_lines(whole=True))
            write_rules(self._database, call.client, self._project, text)

    def _store(self, moment: Moment) -> None:
        call = self._call
        match moment:
            case Moment.PROMPT if not COMMAND.match(call.text):
                self._captured.hear_prompt(
                    self._session, self._exclusions.storable(call.text, PROMPT_CHARACTERS)
                )
            case Moment.ANSWER:
                answer = call.text
                if not answer and call.transcript:
                    from server.hooks.transcripts import last_answer

                    answer = last_answer(Path(call.transcript))
                self._captured.hear_answer(
                    self._session, self._exclusions.storable(answer, ANSWER_CHARACTERS)
                )
            case Moment.CHANGE if call.text and not self._exclusions.covers_file(call.text):
                self._captured.hear_change(self._session, call.text)
            case Moment.COMPACT | Moment.END:
                self._sum_up()

    def _briefing_lines(self, *, whole: bool = False) -> list[Line]:
        """Returns all lines, or those that the session does not know; a cleared one knows none."""
        from storage.memory.briefing import Briefing

        call = self._call
        own = "" if whole or call.source == "compact" else call.session
        is_new = whole or call.source == "clear"
        known = () if is_new else self._captured.briefed(call.session)
        return Briefing(self._database, self._identity, self._session.project, but=own).lines(known)

    def _format(self, lines: Sequence[Line]) -> str:
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
