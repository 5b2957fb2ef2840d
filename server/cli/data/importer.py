"""Imports files and chats into the library, and deletes what no longer exists on disk."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from server.app import App
from server.cli.data.exports import is_export
from server.cli.data.tally import Outcome, Result
from server.cli.data.walk import Folder, check_name
from server.cli.invocation import invocation
from server.cli.terminal.hits import source_of
from storage.errors import DocumentNotFoundError, UnreadableDocumentError
from storage.models import Context, ContextType, SearchFilter
from storage.reading.chat_export import SUFFIXES, read_export
from storage.reading.conversations import Conversation
from tools.core.errors import InvalidArgumentsError, NotFoundError, UnavailableError
from tools.documents import broken_note

ORIGIN = "imported_from"
"""The metadata key for the file that a document was imported from."""

_PAGE = 1000
_END = object()


class Importer:
    """Brings files into the library on behalf of the local user.

    A file inside the root takes the same path as an agent's call, so that both name one document.

    Args:
        app: The app.
        note: Receives the outcome of each file and each chat.
        leave_out: Receives what is left out of chats: the reason and the count.

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
            self._note(Outcome(file, str(file), "skipped", error.message))
            return
        if await anyio.to_thread.run_sync(is_export, file):
            message = (
                f"{str(file)!r} is an export of Toolcrib: to import it, name it in"
                f" `{invocation()} import`."
            )
            self._note(Outcome(file, self._name(file), "skipped", message))
            return
        if file.suffix.lower() in SUFFIXES and await self._take_chats(file):
            return
        stored = await anyio.to_thread.run_sync(self._stored, file)
        if stored is not None and await anyio.to_thread.run_sync(_same, stored, file):
            self._keep(file, "unchanged")
        else:
            await self._add(file, stored)

    def drop(self, path: Path, found: Collection[Path] = (), spared: Collection[Path] = ()) -> None:
        """Deletes the documents of files imported from a path or below it.

        Args:
            path: The deleted file or directory.
            found: Files that still exist.
            spared: Directories that were not read; nothing in them is deleted.
        """
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

        Spares what could not be listed, and documents that an agent added.

        Args:
            folder: The folder.
            found: Files that still exist.
            spared: Directories that were not read; nothing in them is deleted.
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
            note = broken_note(answer["broken_lines"])
            self._keep(file, answer["outcome"], note and f"{self._name(file)!r}: {note}")
        elif answer["error_type"] == UnavailableError.error_type:
            raise UnavailableError(answer["message"], next_actions=answer["next_actions"])
        elif answer["error_type"] == NotFoundError.error_type:
            message = f"{self._name(file)!r} was deleted after it was listed."
            self._note(Outcome(file, self._name(file), "skipped", message))
        else:
            self._note(Outcome(file, self._name(file), "skipped", answer["message"]))

    async def _take_chats(self, file: Path) -> bool:
        """Stores the chats in a file; returns whether it contained any."""
        any_chat = False
        try:
            opened = await anyio.to_thread.run_sync(_open_regular, file)
            with opened, closing(read_export(opened, name=self._name(file))) as chats:
                while await anyio.to_thread.run_sync(self._take_chat, chats, file):
                    any_chat = True
        except UnreadableDocumentError as error:
            self._note(Outcome(file, self._name(file), "skipped", error.message))
            return True
        except OSError as error:
            if any_chat:  # otherwise importing it as a document reports why
                message = f"{self._name(file)!r} cannot be read to its end. {error.strerror}."
                self._note(Outcome(file, self._name(file), "skipped", message))
        return any_chat

    def _take_chat(self, chats: Iterator[Conversation | None], file: Path) -> bool:
        """Stores the next chat; returns False at the end."""
        chat = next(chats, _END)
        if chat is _END:
            return False
        if not isinstance(chat, Conversation):
            message = f"A part of {self._name(file)!r} is not a conversation."
            outcome = Outcome(file, self._name(file), "skipped", message)
        else:
            name = source_of(chat.source, chat.title or chat.id)
            for reason, count in chat.left_out.items():
                self._leave_out(reason, count)
            if chat.turns:
                result = cast("Result", self._shelf.add(chat.to_context()).outcome)
                outcome = Outcome(file, name, result)
            else:
                message = f"The conversation {(chat.title or chat.id)!r} has no text."
                outcome = Outcome(file, name, "skipped", message)
        self._note(outcome)
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
