"""What passes between the root and a worker, which does not see the root.

Files are copied in and taken out through the sandbox, so that its rules hold for each of them; what
a run has written replaces a file only when the run has succeeded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tools.core.calling.words import Action
from tools.core.errors import InvalidArgumentsError, UnavailableError
from tools.data.answers.runs import WrittenFile
from tools.data.catalogue.operator import file_parameters
from tools.data.checks.rows import is_directory
from tools.data.recipe import Recipe
from tools.data.running.outputs import DEEPEST, MOST_FILES, Outputs
from tools.data.worker.entries import stem_of
from tools.sandbox.files.listing import Entry
from tools.sandbox.files.sandbox import Sandbox

MOST_BYTES = 2_000_000_000
"""Of a file that is written."""


class Stage:
    """A directory that a worker sees, for one run.

    Attributes:
        sandbox: The files beneath the root.
        directory: The directory.
    """

    def __init__(self, sandbox: Sandbox, directory: Path) -> None:
        self.sandbox = sandbox
        self.directory = directory
        self._results = directory / "out"
        self._count = 0
        self._content = hashlib.sha256()

    @property
    def content(self) -> str:
        """The digest of all that was copied in."""
        return self._content.hexdigest()

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """Copies in what a recipe reads, and returns its configuration for the worker; blocks."""
        config = recipe.to_config()
        self._results.mkdir()
        config["export_path"] = str(self._results / PurePosixPath(config["export_path"]).name)
        if "dataset_path" in config:
            config["dataset_path"] = self.take(config["dataset_path"])
        elif "dataset" in config:
            config |= self._dataset(config.pop("dataset"))
        if "custom_operator_paths" in config:
            config["custom_operator_paths"] = list(map(self.take, config["custom_operator_paths"]))
        for step in config["process"]:
            for name, params in step.items():
                for key in file_parameters(name, params or {}):
                    params[key] = self.take(params[key])
        return config

    def take(self, path: str) -> str:
        """Copies a file or a directory in; returns where it is for the worker."""
        self._count += 1
        target = self.directory / f"in{self._count}"
        if not is_directory(self.sandbox, path):
            name = PurePosixPath(path).name
            named = target.with_suffix(name.removeprefix(stem_of(name)))
            self.copy(path, named)
            return str(named)
        target.mkdir()
        for file in sorted(files_of(self.sandbox, path), key=lambda each: each.path):
            inner = target / PurePosixPath(file.path).relative_to(self.sandbox.relative(path))
            self.copy(file.path, inner)
        return str(target)

    def deliver(self, export_path: str, outputs: Outputs) -> list[WrittenFile]:
        """Writes the result of a run inside the root; blocks.

        Args:
            export_path: Of the recipe.
            outputs: The files that may be replaced.
        """
        seen = Sandbox(self.directory.parent)  # whatever links a worker leaves lead nowhere
        results = f"{self.directory.name}/{self._results.name}"
        folder = PurePosixPath(export_path).parent
        targets = {}
        for made in sorted(files_of(seen, results), key=lambda each: each.path):
            if made.size > MOST_BYTES:
                raise UnavailableError(
                    f"The result has {made.size:,} bytes; at most {MOST_BYTES:,} are written to"
                    " one file.",
                    next_actions=[
                        "Split the data set first.",
                        Action("Or set {}, so that it is written in parts.", "export_shard_size"),
                    ],
                )
            targets[str(folder / PurePosixPath(made.path).relative_to(results))] = made.path
        outputs.check(self.sandbox, targets)  # all of them before the first is written
        return [
            outputs.write(self.sandbox, target, seen.read(path, max_bytes=MOST_BYTES).data)
            for target, path in targets.items()
        ]

    def _dataset(self, mixture: dict[str, Any]) -> dict[str, Any]:
        """The keys of data from one place, or several."""
        for each in mixture["configs"]:
            if each.get("type", "local") != "local":
                raise InvalidArgumentsError(
                    "dataset: recipes run without a network, and reach no remote data.",
                    next_actions=["Fetch the data first, and give its path beneath the root."],
                )
            each["path"] = self.take(each["path"])
        if len(mixture["configs"]) == 1 and mixture["configs"][0].keys() <= {"type", "path"}:
            return {"dataset_path": mixture["configs"][0]["path"]}
        return {"dataset": mixture}

    def copy(self, path: str, target: Path) -> None:
        """Copies a file in, to a place in the directory."""
        digest = hashlib.sha256(str(target.relative_to(self.directory)).encode(errors="replace"))
        with self.sandbox.open_read(path) as source:
            try:
                with self._created(target) as copy:
                    while piece := source.read(1 << 20):
                        digest.update(piece)
                        copy.write(piece)
            except OSError as error:
                raise UnavailableError(
                    f"{path} cannot be copied to {self.directory.parent}: {error.strerror}.",
                    next_actions=["Ask the user to free space there, or to set TMPDIR elsewhere."],
                ) from error
        self._content.update(digest.digest())

    def _created(self, target: Path) -> BinaryIO:
        """Opens a new file, through no links that a worker may have left."""
        seen = Sandbox(self.directory.parent)
        path = PurePosixPath(target.relative_to(seen.root))
        for folder in reversed(path.parents[:-1]):
            with _opened(seen, folder.parent) as above, suppress(FileExistsError):
                os.mkdir(folder.name, dir_fd=above)
        with _opened(seen, path.parent) as above:
            new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            return os.fdopen(os.open(path.name, new, 0o600, dir_fd=above), "wb")


@contextmanager
def _opened(seen: Sandbox, folder: PurePosixPath) -> Iterator[int]:
    above = seen.open_directory(str(folder))
    try:
        yield above
    finally:
        os.close(above)


def files_of(sandbox: Sandbox, path: str) -> Iterator[Entry]:
    """Returns the files in a directory, at any depth; blocks."""
    listing = sandbox.list_directory(path, depth=DEEPEST, limit=MOST_FILES)
    if listing.truncated:
        raise InvalidArgumentsError(
            f"{path} has more than {MOST_FILES:,} files.",
            next_actions=["Give a directory with fewer, or put them into one file."],
        )
    return (each for each in listing.entries if each.type == "file")
