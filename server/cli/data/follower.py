"""Following folders: what changes in them changes in the library."""

from __future__ import annotations

import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
from watchfiles import awatch

from server.cli.data.ignore import IgnoreRules
from server.cli.data.importer import Importer
from server.cli.data.walk import Folder, beside
from storage.errors import StorageUnavailableError
from tools.core.errors import UnavailableError

QUIET_MS = 300
"""How long nothing may happen before a change counts as complete: a save is several events."""

LONGEST_MS = 2_000
"""How long changes are gathered at most."""

ROUND_MS = 500
"""How often to look whether the folders are there, and whether to try again."""

RETRY_SECONDS = 5.0
"""How long to wait after the disk, or the record, failed."""


class Follower:
    """Keeps the library as the folders are, until it is cancelled.

    A folder that is not there, as on a disk that was taken out, is waited for: nothing of it is
    deleted.

    Args:
        folders: The folders.
        importer: Stores and deletes.
        say: Tells a line.
    """

    def __init__(
        self, folders: Iterable[Folder], importer: Importer, say: Callable[[str], None]
    ) -> None:
        self._folders = {folder.path: folder for folder in folders}
        self._importer = importer
        self._say = say
        self._pending: dict[Path, None] = {}  # in order, each once
        self._retry_at = 0.0
        self._problem = ""

    async def run(self, stop: anyio.Event) -> None:
        """Brings the folders up to date and follows them.

        Args:
            stop: Set together with the cancellation, so that the watching thread ends at once.
        """
        places = dict.fromkeys(self._folders, (0, 0))
        while not stop.is_set():
            now = await anyio.to_thread.run_sync(_places, self._folders)
            self._compare(places, now)
            places = now
            async with aclosing(_rounds(list(places), stop)) as rounds:
                async for changed in rounds:
                    self._pending |= dict.fromkeys(filter(self._concerns, changed))
                    await self._work()
                    if await anyio.to_thread.run_sync(_places, self._folders) != places:
                        break

    def _compare(
        self, before: dict[Path, tuple[int, int]], now: dict[Path, tuple[int, int]]
    ) -> None:
        """Says which folders went, and notes which came or became others."""
        for path in before.keys() - now.keys():
            self._say(f"{path} is not there; waiting for it")
        for path, place in now.items():
            if before.get(path) != place:
                self._say(f"watching {path}")
                self._pending[path] = None

    def _concerns(self, path: Path) -> bool:
        """Whether a change can matter; hidden places, such as .git, change all the time."""
        folder = self._folder_of(path)
        if folder is None:
            return False
        hidden = any(name.startswith(".") for name in path.relative_to(folder.path).parts)
        return not hidden or IgnoreRules.is_rule_file(path)

    def _folder_of(self, path: Path) -> Folder | None:
        """The innermost folder that holds a path."""
        inside = (each for each in (path, *path.parents) if each in self._folders)
        return self._folders.get(next(inside, Path()))

    async def _work(self) -> None:
        """Does what is pending; what fails for now stays pending."""
        if time.monotonic() < self._retry_at:
            return
        try:
            for path in list(self._pending):
                folder = self._folder_of(path)
                if folder is not None and folder.path in _places([folder.path]):
                    await self._bring(path, folder)
                del self._pending[path]
                self._problem = ""
        except (UnavailableError, StorageUnavailableError) as error:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if error.message != self._problem:
                self._say(f"{error.message} Trying again every {RETRY_SECONDS:g} seconds.")
            self._problem = error.message

    async def _bring(self, path: Path, folder: Folder) -> None:
        """Makes the library agree with the disk at a path."""
        inner = [each for each in self._folders if folder.path in each.parents]
        drop = partial(self._importer.drop, path, spared=inner)
        if path == folder.path or IgnoreRules.is_rule_file(path):
            found = await self._take_below(folder, folder.path)
            if found:  # an empty folder is more often a disk that is not there
                await anyio.to_thread.run_sync(self._importer.prune, folder, found, inner)
        elif not folder.wants(path):
            await anyio.to_thread.run_sync(drop)
        elif (kind := _kind(path)) == "directory":
            found = await self._take_below(folder, path)
            spared = [*inner, *folder.unlisted_directories]
            await anyio.to_thread.run_sync(self._importer.drop, path, found, spared)
        elif kind == "nothing":
            await anyio.to_thread.run_sync(drop)
        else:
            await self._importer.take(path)
            for part in beside(path):  # of the same export, and may have come before it
                await anyio.to_thread.run_sync(self._importer.drop, part)

    async def _take_below(self, folder: Folder, path: Path) -> set[Path]:
        found = set(await anyio.to_thread.run_sync(lambda: list(folder.files(path))))
        for file in sorted(found):
            await self._importer.take(file)
        return found


async def _rounds(paths: list[Path], stop: anyio.Event) -> AsyncGenerator[list[Path], None]:
    """What changed below the paths, in order; nothing, every now and then, where nothing did.

    From the first round on no change is missed.
    """
    if not paths:
        await anyio.sleep(ROUND_MS / 1000)
        yield []
        return
    changes = awatch(
        *paths,
        watch_filter=None,
        debounce=LONGEST_MS,
        step=QUIET_MS,
        rust_timeout=ROUND_MS,
        yield_on_timeout=True,
        stop_event=stop,
        ignore_permission_denied=True,
    )
    try:
        async with aclosing(changes):
            async for changed in changes:
                yield sorted({Path(path) for _, path in changed})
    except FileNotFoundError:  # gone since it was looked for
        yield []
    except (OSError, RuntimeError) as error:
        raise UnavailableError(
            f"The system cannot watch the folders: {error}.",
            next_actions=[
                "Raise the limit fs.inotify.max_user_watches, or set WATCHFILES_FORCE_POLLING=1."
            ],
        ) from error


def _places(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Which of the folders are there, and which ones they are."""
    places = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        places[path] = (status.st_dev, status.st_ino)
    return places


def _kind(path: Path) -> Literal["directory", "file", "nothing"]:
    """What is there; a disk that does not answer is no proof that nothing is."""
    try:
        return "directory" if stat.S_ISDIR(path.lstat().st_mode) else "file"
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except OSError:
        return "file"
