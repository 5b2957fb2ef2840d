"""Imports files, chats and exports, counts the outcomes, and deletes what is gone from disk."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio.to_thread

from server.cli.data.walk import Folder, check_name
from server.cli.invocation import invocation
from server.cli.terminal.hits import source_of
from server.cli.terminal.progress import counter
from server.cli.terminal.screen import print_line
from storage.errors import DocumentNotFoundError, UnreadableDocumentError
from storage.keeping import records
from storage.keeping.importing import import_jsonl
from storage.models import Context, ContextType, SearchFilter
from storage.reading.chat_export import SUFFIXES, read_export
from storage.reading.conversations import Conversation
from tools.core.errors import InvalidArgumentsError, NotFoundError, UnavailableError
from tools.documents import broken_note

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App


Result = Literal["added", "replaced", "unchanged", "deleted", "skipped"]

RESULTS: tuple[Result, ...] = ("added", "replaced", "unchanged", "deleted", "skipped")

_QUOTED = re.compile(r"""(?<!\w)(['"])(?:\\.|(?!\1)[^\\])*\1(?!\w)""")
_NAMED = re.compile(r"\b(name|path|conversation) it\b")
_UNREADABLE = re.compile(r"^it cannot be read[^.]*\. ")
_DETAIL = re.compile(r" \([^)]*\)|[:;].*", re.DOTALL)
_RULE = re.compile(r"\b[Tt]he rule ('[^']*')")
_NUMBER = re.compile(r"(?<![\w-])\d[\d,.]*(?!\w)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one file or chat."""

    file: Path  # the file, or the file that the chat is in
    name: str
    result: Result
    message: str = ""  # why it was skipped, or which part could not be read

    @property
    def cause(self) -> str:
        """The reason for skipping, worded the same for every such file."""
        if rule := _RULE.search(self.message):
            return f"The rule {rule[1]} denies it"
        words = _NAMED.sub(r"\1", _QUOTED.sub("it", self.message))
        words = _NUMBER.sub("…", _DETAIL.sub("", _UNREADABLE.sub("", words)))
        sentence = words.partition(". ")[0].rstrip(". ")
        return sentence[:1].upper() + sentence[1:]


@dataclass(slots=True)
class Tally:
    """Counts of all outcomes."""

    results: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)  # of skipping
    passed_over: Counter[str] = field(default_factory=Counter)  # entries of folders, by reason
    left_out: Counter[str] = field(default_factory=Counter)  # of chats, by reason
    marked: int = 0  # stored files with a note
    _taken: set[Path] = field(default_factory=set)
    _skipped: set[Path] = field(default_factory=set)

    def note(self, outcome: Outcome) -> None:
        """Counts an outcome."""
        self.results[outcome.result] += 1
        if outcome.result == "skipped":
            self.causes[outcome.cause] += 1
            self._skipped.add(outcome.file)
        else:
            self._taken.add(outcome.file)
            self.marked += bool(outcome.message)

    def failed(self, named: Collection[Path]) -> bool:
        """Returns whether nothing was stored, or one of these files was skipped."""
        return not self._taken or not (self._skipped - self._taken).isdisjoint(named)

    def lines(self) -> Iterator[str]:
        """Yields the counts for display; nothing without counts."""
        if counted := _join_counts({result: self.results[result] for result in RESULTS}):
            yield counted
        for cause, count in self.causes.most_common():
            yield f"  {count} skipped: {cause}."
        if self.marked:
            yield f"  {self.marked} with a note, which their metadata keep."
        if passed_over := _join_counts(self.passed_over):
            yield f"Passed over: {passed_over}"
        if left_out := [f"{what} ({count:,})" for what, count in (+self.left_out).most_common()]:
            yield f"Left out of chats: {', '.join(left_out)}"

    def as_json(self) -> dict[str, Any]:
        """Returns the counts as JSON."""
        return {
            **{result: self.results[result] for result in RESULTS},
            "marked": self.marked,
            "skipped_because": dict(self.causes.most_common()),
            "passed_over": dict(self.passed_over.most_common()),
            "left_out_of_chats": dict((+self.left_out).most_common()),
        }


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


ORIGIN = "imported_from"
"""The metadata key for the file that a document was imported from."""

_PAGE = 1000
_END = object()


class Importer:
    """Brings files into the library on behalf of the local user.

    A file inside the root takes the same path as an agent's call, so that both name one document.
    """

    def __init__(
        self, app: App, note: Callable[[Outcome], None], leave_out: Callable[[str, int], None]
    ) -> None:
        self._app = app
        app.library.importing = True
        self._shelf = app.library.shelf(app.identity)
        self._note = note
        self._leave_out = leave_out
        self._known: set[Path] = set()  # imported files that are stored
        self._above: set[Path] = set()  # their parent directories, past and present

    async def take(self, file: Path) -> None:
        """Stores a file, or the chats in it, unless already stored."""
        try:
            check_name(file)
        except InvalidArgumentsError as error:
            self._skip(file, error.message)
            return
        if await anyio.to_thread.run_sync(is_export, file):
            message = (
                f"{str(file)!r} is an export of Toolcrib: to import it, name it in"
                f" `{invocation()} import`."
            )
            self._skip(file, message)
            return
        if file.suffix.lower() in SUFFIXES and await self._take_chats(file):
            return
        stored = await anyio.to_thread.run_sync(self._stored, file)
        if stored is not None and await anyio.to_thread.run_sync(_same, stored, file):
            self._keep(file, "unchanged")
        else:
            await self._add(file, stored)

    def drop(self, path: Path, found: Collection[Path] = (), spared: Collection[Path] = ()) -> None:
        """Deletes the documents of files from a path or below it, except `found` and `spared`."""
        gone = {path} & self._known
        if path in self._above:
            gone |= {file for file in self._known if path in file.parents}
        for file in sorted(gone.difference(found)):
            if _is_below(file, spared):
                continue
            with suppress(DocumentNotFoundError):
                self._shelf.delete_document("file", self._name(file))
                self._note(Outcome(file, self._name(file), "deleted"))
            self._known.discard(file)

    def prune(self, folder: Folder, found: Collection[Path], spared: Collection[Path] = ()) -> None:
        """Deletes what was imported from a folder and is no longer in it.

        Spares the directories `spared`, what could not be listed, and documents that an agent
        added.
        """
        spared = [*spared, *folder.unlisted_directories]
        for context in list(self._documents()):
            file = Path(str(context.metadata.get(ORIGIN, "")))
            if (
                file.is_relative_to(folder.path)
                and file not in found
                and not _is_below(file, spared)
            ):
                self._shelf.forget([context.id])
                self._known.discard(file)
                self._note(Outcome(file, context.raw_id, "deleted"))

    def _keep(self, file: Path, result: Result, message: str = "") -> None:
        self._known.add(file)
        self._above.update(file.parents)
        self._note(Outcome(file, self._name(file), result, message))

    def _skip(self, file: Path, reason: str) -> None:
        self._note(Outcome(file, self._name(file), "skipped", reason))

    async def _add(self, file: Path, stored: Context | None) -> None:
        arguments: dict[str, Any] = {"path": self._name(file)}
        manager = self._app.manager.unrecorded()
        if not file.is_relative_to(self._app.settings.root):
            manager = self._app.personal
            arguments["raw_id"] = str(file)
        if stored is None or ORIGIN in stored.metadata:
            arguments["metadata"] = {ORIGIN: str(file)}
        result = await manager.execute("add_document", arguments, self._app.context)
        answer = result.structured
        if not result.is_error:
            notes = filter(None, (broken_note(answer["broken_lines"]), *answer["notes"]))
            note = " ".join(notes)
            self._keep(file, answer["outcome"], note and f"{self._name(file)!r}: {note}")
        elif answer["error_type"] == UnavailableError.error_type:
            raise UnavailableError(answer["message"], next_actions=answer["next_actions"])
        elif answer["error_type"] == NotFoundError.error_type:
            message = f"{self._name(file)!r} was deleted after it was listed."
            self._skip(file, message)
        else:
            self._skip(file, answer["message"])

    async def _take_chats(self, file: Path) -> bool:
        """Stores the chats in a file; returns whether it contained any."""
        any_chat = False
        try:
            opened = await anyio.to_thread.run_sync(_open_regular, file)
            with opened, closing(read_export(opened, name=self._name(file))) as chats:
                while await anyio.to_thread.run_sync(self._take_chat, chats, file):
                    any_chat = True
        except UnreadableDocumentError as error:
            self._skip(file, error.message)
            return True
        except OSError as error:
            if any_chat:  # otherwise importing it as a document reports why
                message = f"{self._name(file)!r} cannot be read to its end. {error.strerror}."
                self._skip(file, message)
        return any_chat

    def _take_chat(self, chats: Iterator[Conversation | None], file: Path) -> bool:
        """Stores the next chat; returns False at the end."""
        chat = next(chats, _END)
        if chat is _END:
            return False
        if not isinstance(chat, Conversation):
            self._skip(file, f"A part of {self._name(file)!r} is not a conversation.")
            return True
        for reason, count in chat.left_out.items():
            self._leave_out(reason, count)
        title, result, message = chat.title or chat.id, "skipped", ""
        if chat.turns:
            result = self._shelf.add(chat.to_context()).outcome
        else:
            message = f"The conversation {title!r} has no text."
        name = source_of(chat.source, title)
        self._note(Outcome(file, name, cast("Result", result), message))
        return True

    def _name(self, file: Path) -> str:
        """Returns a document's name: its path relative to the root, or its full path."""
        root = self._app.settings.root
        return str(file.relative_to(root) if file.is_relative_to(root) else file)

    def _stored(self, file: Path) -> Context | None:
        criteria = SearchFilter(
            context_types=(ContextType.DOCUMENT,), raw_types=("file",), raw_id=self._name(file)
        )
        found = self._shelf.contexts(criteria, _PAGE)
        return next((each for each in found if each.identity == self._shelf.identity), None)

    def _documents(self) -> Iterator[Context]:
        criteria = SearchFilter(context_types=(ContextType.DOCUMENT,), raw_types=("file",))
        at = 0
        while page := self._shelf.contexts(criteria, _PAGE, at):
            yield from (each for each in page if each.identity == self._shelf.identity)
            at += len(page)


def _open_regular(file: Path) -> BufferedReader:
    """Opens a regular file; does not block on pipes and the like."""
    opened = os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise OSError(errno.ENXIO, "it is not a regular file")
    return opened


def _is_below(file: Path, directories: Collection[Path]) -> bool:
    return any(file.is_relative_to(directory) for directory in directories)


def _same(stored: Context, file: Path) -> bool:
    """Returns whether a document was made from this file's current content."""
    if stored.metadata.get(ORIGIN, str(file)) != str(file):
        return False
    try:
        with _open_regular(file) as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == stored.sha256
    except OSError:
        return False


def is_export(file: Path) -> bool:
    """Returns whether `toolcrib export` wrote this file."""
    try:
        return file.is_file() and records.is_export(file)
    except OSError:
        return False  # importing it as a document reports why


def take_export(
    app: App, file: Path, note: Callable[[Outcome], None], progress: Progress, *, as_me: bool
) -> None:
    """Stores the content of an export; with `as_me`, all of it as the caller's."""
    identity = app.identity if as_me else None
    try:
        imported = import_jsonl(
            app.library.database, file, identity, counter(progress, "Storing records")
        )
    except UnreadableDocumentError as error:
        note(Outcome(file, str(file), "skipped", error.message))
        return
    except OSError as error:
        message = f"{str(file)!r} cannot be read. {error.strerror}."
        note(Outcome(file, str(file), "skipped", message))
        return
    for result, count in imported.outcomes.items():
        for _ in range(count):
            note(Outcome(file, str(file), result))
    others = {each.user_id for each in imported.identities} - {app.identity.user_id}
    if others:
        names = ", ".join(map(repr, sorted(others)))
        yours = f"you are {app.identity.user_id!r}: with --as-me it is stored as yours."
        print_line(progress.console, f"Stored as what it was, of {names}; {yours}")
