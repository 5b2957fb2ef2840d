"""The files that a run replaces: found before a person is asked, and the same when it writes."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tools.core.errors import Action, ConflictError, InvalidArgumentsError, NotFoundError, ToolError
from tools.data.answers.runs import WrittenFile
from tools.data.catalogue.catalogue import bundled
from tools.data.checks.media import media_steps
from tools.data.checks.rows import first_rows, is_directory
from tools.data.recipe import Recipe
from tools.data.worker.agreed import media_folder
from tools.sandbox.files.listing import Entry
from tools.sandbox.files.replace import EXPECT_ABSENT, MAX_EDIT_BYTES
from tools.sandbox.files.sandbox import Sandbox

SHOWN = 10  # files that a question names
COUNTED_BYTES = 200_000_000  # of larger files, a question estimates the rows
DEEPEST, MOST_FILES = 16, 20_000  # levels and files of a folder

_FOLDERS = {"open_tracer": "trace", "open_monitor": "monitor"}
"""Keys of a recipe for which Data-Juicer writes into a folder next to the result."""

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that a run may replace, as they were when it was checked; all others are new."""

    replaced: Mapping[str, WrittenFile] = field(default_factory=dict)

    def digest(self) -> bytes:
        """Returns bytes that identify these files and their content; empty if there are none."""
        files = sorted(self.replaced.items())
        return "".join(f"\0{path}\0{file.sha256}" for path, file in files).encode(
            errors="surrogateescape"
        )

    def describe(self, sandbox: Sandbox) -> list[str]:
        """Returns a line for each file, with its rows and size; blocks."""
        paths = list(self.replaced)
        lines = [f"replaces: {describe_data(sandbox, path)}" for path in paths[:SHOWN]]
        more = len(paths) - SHOWN
        return [*lines, f"replaces {more} more files"] if more > 0 else lines

    def check(self, sandbox: Sandbox, paths: Iterable[str]) -> None:
        """Checks that files can be written, and that nothing else would be replaced; blocks."""
        for path in paths:
            before = self.replaced.get(sandbox.relative(path))
            with _allow_absent(sandbox, path):
                now = digest_of(sandbox, path)
                if before is None or now.sha256 != before.sha256:
                    what = "has come to exist" if before is None else "has changed"
                    raise ConflictError(
                        f"{path} {what} since the run was checked; it was not replaced.",
                        next_actions=["Look at it, and call again if it can be replaced."],
                    )

    def write(self, sandbox: Sandbox, path: str, content: bytes) -> WrittenFile:
        """Writes a file of the result, as `check` allows it; blocks."""
        self.check(sandbox, [path])
        before = self.replaced.get(sandbox.relative(path))
        expected = before.sha256 if before else EXPECT_ABSENT
        if before and before.size > MAX_EDIT_BYTES:  # which `check` alone compares
            done = sandbox.write(path, content)
        else:
            done = sandbox.write(path, content, expected_sha256=expected)
        return WrittenFile(
            path=path, size=done.size, sha256=done.sha256, not_kept=done.lost or None
        )


def find_outputs(sandbox: Sandbox, paths: Iterable[str]) -> Outputs:
    """Finds what is at the places that a run writes to, and in folders there; blocks."""
    found = {}
    for path in paths:
        with _allow_absent(sandbox, path):
            for each in files_in(sandbox, path):
                found[sandbox.relative(each)] = digest_of(sandbox, each)
    return Outputs(found)


def check_free(sandbox: Sandbox, paths: Iterable[str]) -> None:
    """Checks that no file exists at any of these paths; blocks."""
    for path in find_outputs(sandbox, paths).replaced:
        raise ConflictError(
            f"{path} already exists.",
            next_actions=[
                Action("Give {} to replace it.", "overwrite=true"),
                Action("Or give another {}.", "output_path"),
            ],
        )


def recipe_outputs(recipe: Recipe, sandbox: Sandbox) -> list[str]:
    """Returns the files and folders that a recipe may replace; blocks."""
    if recipe.on_cluster:  # which writes into a new folder
        return []
    export = PurePosixPath(recipe.dataset.export_path)
    more = recipe.system.model_extra or {}
    found = [str(export)]
    found += [str(export.with_name(name)) for key, name in _FOLDERS.items() if more.get(key)]
    if media_steps(recipe, bundled()):
        found.append(media_folder(str(export)))
    if more.get("export_shard_size"):
        part = re.compile(rf"{re.escape(export.stem)}-\d+-of-\d+{re.escape(export.suffix)}")
        with suppress(NotFoundError):
            for each in files_of(sandbox, str(export.parent), depth=1):
                if part.fullmatch(name := PurePosixPath(each.path).name):
                    found.append(str(export.with_name(name)))
    return found


def digest_of(sandbox: Sandbox, source: str) -> WrittenFile:
    """Returns size and digest of a file, or of a folder those of its files in order; blocks."""
    digest, size = hashlib.sha256(), 0
    for path in files_in(sandbox, source):
        with sandbox.open_read(path) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
    return WrittenFile(path=source, size=size, sha256=digest.hexdigest())


def describe_data(sandbox: Sandbox, path: str) -> str:
    """Returns a file or folder with its size and rows, if they can be counted; blocks."""
    name = quote_unprintable(path)
    try:
        if is_directory(sandbox, path):
            return f"{name} (a folder, {len(files_of(sandbox, path)):,} files)"
        size, rows = sandbox.read(path, max_bytes=0).size, first_rows(sandbox, path)
        if rows is None:
            return f"{name} ({size:,} bytes, rows not counted)"
        count = f"{len(rows.rows):,}"
        if not rows.is_whole and size <= COUNTED_BYTES and path.lower().endswith(".jsonl"):
            with sandbox.open_read(path) as file:
                pieces = iter(lambda: file.read(_PIECE), b"")
                lines = sum(piece.count(b"\n") for piece in pieces)
            count = f"{lines:,}"
        elif not rows.is_whole:
            count = f"about {rows.estimate(size):,}"
    except ToolError:
        return f"{name} (rows unknown)"
    return f"{name} ({count} rows, {size:,} bytes)"


def quote_unprintable(name: str) -> str:
    """Returns a name in quotes if it could look like another line to a person."""
    return name if name.isprintable() else json.dumps(name)


def files_of(sandbox: Sandbox, path: str, *, depth: int = DEEPEST) -> list[Entry]:
    """Returns the files in a directory, at any depth, in the order of their paths; blocks."""
    listing = sandbox.list_directory(path, depth=depth, limit=MOST_FILES)
    if listing.truncated:
        raise InvalidArgumentsError(
            f"{path} has more than {MOST_FILES:,} files.",
            next_actions=["Give a directory with fewer, or put them into one file."],
        )
    files = (each for each in listing.entries if each.type == "file")
    return sorted(files, key=lambda each: each.path)


def files_in(sandbox: Sandbox, path: str) -> list[str]:
    """Returns a file, or the files in a folder, in order; blocks."""
    if is_directory(sandbox, path):
        return [each.path for each in files_of(sandbox, path)]
    sandbox.open_read(path).close()
    return [path]


@contextmanager
def open_folder(sandbox: Sandbox, path: str) -> Iterator[int]:
    """Opens a directory for what is done in it."""
    folder = sandbox.open_directory(path)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _allow_absent(sandbox: Sandbox, path: str) -> Iterator[None]:
    """Ends the block if nothing is at a path; a link to nothing is refused: a write follows it."""
    try:
        yield
    except NotFoundError:
        place = PurePosixPath(path)
        with (
            suppress(NotFoundError, FileNotFoundError),
            open_folder(sandbox, str(place.parent)) as folder,
        ):
            os.stat(place.name, dir_fd=folder, follow_symlinks=False)
            raise ConflictError(
                f"{path} is a link to a file that does not exist; nothing was written.",
                next_actions=["Remove the link, or give another path."],
            ) from None
