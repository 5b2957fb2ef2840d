"""Copies files between the root and a worker, which does not see the root.

Files are copied in and taken out through the sandbox, so that its rules hold for each of them; what
a run has written replaces a file only when the run has succeeded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tools.core.errors import Action, InvalidArgumentsError, NotFoundError, UnavailableError
from tools.data.answers.runs import WrittenFile
from tools.data.catalogue.catalogue import file_parameters
from tools.data.checks.rows import is_directory
from tools.data.recipe import Recipe
from tools.data.running.outputs import Outputs, files_of, open_folder
from tools.data.worker.agreed import MADE
from tools.data.worker.entries import stem_of
from tools.sandbox.files.sandbox import Sandbox

MOST_BYTES = 2_000_000_000  # of a file that is written
MOST_MEDIA = 20_000  # images, sounds and videos that the rows of one data set may name
SHOWN = 5  # missing files that a refusal names


class Stage:
    """A directory that a worker sees, for one run; `sandbox` has the user's files."""

    def __init__(self, sandbox: Sandbox, directory: Path) -> None:
        self.sandbox = sandbox
        self.directory = directory
        self._seen = Sandbox(directory.parent)  # links that a worker leaves lead nowhere
        self._results = directory / "out"
        self._count = 0
        self._content = hashlib.sha256()

    @property
    def content(self) -> str:
        """The digest of all that was copied in."""
        return self._content.hexdigest()

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """Copies in what a recipe reads, and returns its configuration for the worker; blocks."""
        config = deepcopy(recipe.to_config())
        self._results.mkdir()
        config["export_path"] = str(self._results / PurePosixPath(config["export_path"]).name)
        if "dataset_path" in config:
            config["dataset_path"] = self.take(config["dataset_path"])
        elif "dataset" in config:
            config |= self._take_mixture(config.pop("dataset"))
        for place, key in _code_places(config):
            place[key] = self.take(place[key])
        return config

    def take(self, path: str) -> str:
        """Copies a file or a directory in; returns where it is for the worker."""
        self._count += 1
        target = self.directory / f"in{self._count}"
        if not is_directory(self.sandbox, path):
            name = PurePosixPath(path).name
            target = target.with_suffix(name.removeprefix(stem_of(name)))
            self.copy(path, target)
            return str(target)
        target.mkdir()
        for file in files_of(self.sandbox, path):
            inner = PurePosixPath(file.path).relative_to(self.sandbox.relative(path))
            self.copy(file.path, target / inner)
        return str(target)

    def take_media(
        self, names: Sequence[str], source: str, export: str
    ) -> dict[str, tuple[str, str]]:
        """Copies in the files that rows name, each from next to the data set or from the root.

        Returns:
            Where each name is for the worker, and how the result names it: as the data set does if
            both are in one folder, else relative to the root.
        """
        if len(names) > MOST_MEDIA:
            raise InvalidArgumentsError(
                f"The rows name more than {MOST_MEDIA:,} files, which is how many are copied in.",
                next_actions=["Run it on a part of the rows."],
            )
        folder = PurePosixPath(self.sandbox.relative(source))
        if not is_directory(self.sandbox, source):
            folder = folder.parent
        is_beside = PurePosixPath(self.sandbox.relative(export)).parent == folder
        placed, missing = {}, []
        for number, name in enumerate(names):
            if "://" in name:
                raise InvalidArgumentsError(
                    f"Rows name {name[:200]}: recipes run without a network.",
                    next_actions=["Fetch the files first, and name them by their paths."],
                )
            target = self.directory / "media" / str(number) / PurePosixPath(name).name
            for path in dict.fromkeys((str(folder / name), name)):
                with suppress(NotFoundError):
                    self.copy(path, target)
                    placed[name] = (str(target), name if is_beside else self.sandbox.relative(path))
                    break
            else:
                missing.append(name)
        if missing:
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            raise InvalidArgumentsError(
                f"Files that rows name are not there: {', '.join(missing[:SHOWN])}{more}.",
                next_actions=[
                    "Put them next to the data set or inside the root, or drop the rows."
                ],
            )
        return placed

    def deliver(self, export_path: str, outputs: Outputs) -> list[WrittenFile]:
        """Writes the result of a run inside the root; blocks."""
        results = f"{self.directory.name}/{self._results.name}"
        folder = PurePosixPath(export_path).parent
        targets = {}
        for made in files_of(self._seen, results):
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
            outputs.write(self.sandbox, target, self._seen.read(path, max_bytes=MOST_BYTES).data)
            for target, path in targets.items()
        ]

    def copy(self, path: str, target: Path) -> None:
        """Copies a file in, to a place in the directory."""
        digest = hashlib.sha256(str(target.relative_to(self.directory)).encode(errors="replace"))
        with self.sandbox.open_read(path) as source:
            try:
                with self._create(target) as copy:
                    while piece := source.read(1 << 20):
                        digest.update(piece)
                        copy.write(piece)
            except OSError as error:
                raise UnavailableError(
                    f"{path} cannot be copied to {self.directory.parent}: {error.strerror}.",
                    next_actions=["Ask the user to free space there, or to set TMPDIR elsewhere."],
                ) from error
        self._content.update(digest.digest())

    def _take_mixture(self, mixture: dict[str, Any]) -> dict[str, Any]:
        """Copies in the data of several places, or of one; returns the keys that name it."""
        for each in mixture["configs"]:
            if each.get("type", "local") != "local":
                raise InvalidArgumentsError(
                    "dataset: recipes run without a network, and reach no remote data.",
                    next_actions=["Fetch the data first, and give its path inside the root."],
                )
            each["path"] = self.take(each["path"])
        first, *others = mixture["configs"]
        if not others and first.keys() <= {"type", "path"}:
            return {"dataset_path": first["path"]}
        return {"dataset": mixture}

    def _create(self, target: Path) -> BinaryIO:
        """Opens a new file, through no links that a worker may have left."""
        path = PurePosixPath(target.relative_to(self._seen.root))
        for folder in reversed(path.parents[:-1]):
            with open_folder(self._seen, str(folder.parent)) as above, suppress(FileExistsError):
                os.mkdir(folder.name, dir_fd=above)
        with open_folder(self._seen, str(path.parent)) as above:
            new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            return os.fdopen(os.open(path.name, new, 0o600, dir_fd=above), "wb")


def code_paths(config: Mapping[str, Any]) -> list[str]:
    """Returns the code and the other files, besides the data, that operators read."""
    return [place[key] for place, key in _code_places(config)]


def place_folders(config: Mapping[str, Any], directory: Path) -> None:
    """Lets operators that are given a folder for new files write to one that the worker sees."""
    for name, params in _steps(config):
        read = file_parameters(name, params)
        for key in params:
            if key.endswith("_dir") and key not in read:
                params[key] = str(directory / MADE / name)


def _code_places(config: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yields each list or mapping of a configuration that has such a path, and its place there."""
    custom = config.get("custom_operator_paths", [])
    yield from ((custom, place) for place in range(len(custom)))
    for name, params in _steps(config):
        yield from ((params, key) for key in file_parameters(name, params))


def _steps(config: Mapping[str, Any]) -> Iterator[tuple[str, MutableMapping[str, Any]]]:
    return ((name, given or {}) for step in config["process"] for name, given in step.items())
