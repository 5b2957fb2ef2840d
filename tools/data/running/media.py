"""Files that rows name: images, sounds and videos, copied in for a worker as their data set is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.data.checks.rows import is_directory
from tools.data.running.staging import Stage
from tools.data.worker.agreed import MADE

MOST_FILES = 20_000
"""That the rows of one data set name."""

SHOWN = 5
"""Files that a refusal names."""


def place_folders(config: dict[str, Any], directory: Path) -> None:
    """Has operators that are told where to write do so in what the worker sees."""
    for step in config["process"]:
        for name, params in step.items():
            for key in params or ():
                if key.endswith("_dir"):
                    params[key] = str(directory / MADE / name)


def place_media(
    stage: Stage, names: Sequence[str], source: str, export: str
) -> dict[str, tuple[str, str]]:
    """Copies in what rows name: each file beside the data set, or else beneath the root; blocks.

    Args:
        stage: What the worker sees.
        names: As the rows have them.
        source: The data set.
        export: The result.

    Returns:
        Where each of them is for the worker, and how the result names it: as the data set does
        where both are in one folder, else relative to the root.
    """
    if len(names) > MOST_FILES:
        raise InvalidArgumentsError(
            f"The rows name more than {MOST_FILES:,} files, which is how many are copied in.",
            next_actions=["Run it on a part of the rows."],
        )
    folder = PurePosixPath(stage.sandbox.relative(source))
    if not is_directory(stage.sandbox, source):
        folder = folder.parent
    is_beside = PurePosixPath(stage.sandbox.relative(export)).parent == folder
    placed, missing = {}, []
    for number, name in enumerate(names):
        target = stage.directory / "media" / str(number) / PurePosixPath(name).name
        for path in _meant(name, folder):
            try:
                stage.copy(path, target)
            except NotFoundError:
                continue
            placed[name] = (str(target), name if is_beside else stage.sandbox.relative(path))
            break
        else:
            missing.append(name)
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise InvalidArgumentsError(
            f"Files that rows name are not there: {', '.join(missing[:SHOWN])}{more}.",
            next_actions=["Put them beside the data set or beneath the root, or drop the rows."],
        )
    return placed


def _meant(name: str, folder: PurePosixPath) -> list[str]:
    """The paths that a name can mean, in their order."""
    if "://" in name:
        raise InvalidArgumentsError(
            f"Rows name {name[:200]}: recipes run without a network.",
            next_actions=["Fetch the files first, and name them by their paths."],
        )
    return list(dict.fromkeys((str(folder / name), name)))
