"""`toolcrib watch`: keeps folders imported while their files change."""

from __future__ import annotations

import signal
import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import anyio.to_thread
import typer

from server.cli.data.walk import Folder, IgnoreRules, beside
from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible
from storage.errors import StorageUnavailableError
from tools.core.errors import UnavailableError

if TYPE_CHECKING:
    from server.app import App
    from server.cli.data.importer import Importer, Outcome


def watch(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER", help="Folders or Markdown vaults.", exists=True, file_okay=False
        ),
    ],
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Import folders, then follow every file that is added, changed or deleted in them."""
    from server.cli.opened import open_app

    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        app.library.indexer.start()
        anyio.run(_follow, app, [path.resolve() for path in paths])
    echo("stopped")


async def _follow(app: App, paths: list[Path]) -> None:
    """Follows the folders until the user or the system stops it."""
    from server.cli.data.importer import Importer
    from server.cli.data.walk import Folder

    reasons: dict[Path, str] = {}

    def tell(outcome: Outcome) -> None:
        known = reasons.pop(outcome.file, "")
        if outcome.result == "skipped":
            reasons[outcome.file] = outcome.cause
            if outcome.cause != known:
                _say(f"skipped {outcome.message}")
        elif outcome.result != "unchanged":
            _say(f"{outcome.result} {outcome.name}")

    folders = [Folder(path, [app.settings.data_dir.resolve()]) for path in paths]
    follower = Follower(folders, Importer(app, tell, lambda _reason, _count: None), _say)
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            tasks.start_soon(follower.run, stop)
            async for _ in signals:
                stop.set()
                tasks.cancel_scope.cancel()


def _say(line: str) -> None:
    echo(visible(line))


QUIET_MS = 300
"""A change is complete after this long without events: a save causes several."""

LONGEST_MS = 2_000
"""Longest time to collect changes."""

ROUND_MS = 500
"""Interval for checking that the folders exist and whether to retry."""

RETRY_SECONDS = 5.0
"""Wait after a failure of the disk or the record."""


class Follower:
    """Keeps the library in sync with folders until it is cancelled.

    Waits for a missing folder, such as one on a removed disk; deletes nothing from it.
    """

    def __init__(
        self, folders: Iterable[Folder], importer: Importer, say: Callable[[str], None]
    ) -> None:
        self._folders = {folder.path: folder for folder in folders}
        self._importer = importer
        self._say = say
        self._pending: dict[Path, None] = {}  # an ordered set
        self._retry_at = 0.0
        self._problem = ""

    async def run(self, stop: anyio.Event) -> None:
        """Brings the library up to date with the folders and follows them.

        Set `stop` together with the cancellation, to stop the watching thread at once.
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
        """Reports folders that disappeared, and queues those that appeared or were replaced."""
        for path in before.keys() - now.keys():
            self._say(f"{path} is not there; waiting for it")
        for path, place in now.items():
            if before.get(path) != place:
                self._say(f"watching {path}")
                self._pending[path] = None

    def _concerns(self, path: Path) -> bool:
        """Returns whether a change matters; hidden paths, such as .git, change all the time."""
        folder = self._folder_of(path)
        if folder is None:
            return False
        hidden = any(name.startswith(".") for name in path.relative_to(folder.path).parts)
        return not hidden or IgnoreRules.is_rule_file(path)

    def _folder_of(self, path: Path) -> Folder | None:
        inside = (each for each in (path, *path.parents) if each in self._folders)
        return self._folders.get(next(inside, Path()))

    async def _work(self) -> None:
        """Processes pending paths; temporary failures stay pending."""
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
        """Syncs the library with the disk at a path."""
        inner = [each for each in self._folders if folder.path in each.parents]
        drop = partial(self._importer.drop, path, spared=inner)
        if path == folder.path or IgnoreRules.is_rule_file(path):
            found = await self._take_below(folder, folder.path)
            if found:  # an empty folder is usually an unmounted disk
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
            for part in beside(path):  # parts of the same export may have been imported first
                await anyio.to_thread.run_sync(self._importer.drop, part)

    async def _take_below(self, folder: Folder, path: Path) -> set[Path]:
        found = set(await anyio.to_thread.run_sync(lambda: list(folder.files(path))))
        for file in sorted(found):
            await self._importer.take(file)
        return found


async def _rounds(paths: list[Path], stop: anyio.Event) -> AsyncGenerator[list[Path], None]:
    """Yields changed paths in order; an empty list on timeout.

    From the first round on it misses no change.
    """
    from watchfiles import awatch

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
    except FileNotFoundError:  # deleted since the last check
        yield []
    except (OSError, RuntimeError) as error:
        raise UnavailableError(
            f"The system cannot watch the folders: {error}.",
            next_actions=[
                "Raise the limit fs.inotify.max_user_watches, or set WATCHFILES_FORCE_POLLING=1."
            ],
        ) from error


def _places(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Returns the existing folders with their device and inode."""
    places = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        places[path] = (status.st_dev, status.st_ino)
    return places


def _kind(path: Path) -> Literal["directory", "file", "nothing"]:
    """Returns what is at a path; a disk that does not answer does not count as nothing."""
    try:
        return "directory" if stat.S_ISDIR(path.lstat().st_mode) else "file"
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except OSError:
        return "file"
