"""How files are named to the tools: relative to the working directory, where they are beneath."""

from __future__ import annotations

from pathlib import Path


def relative(paths: list[Path], here: Path) -> list[str] | None:
    """Returns paths relative to a directory, for recipes and reports that are moved with it.

    Args:
        paths: The paths, absolute.
        here: The directory.

    Returns:
        They; None where one leads out of it.
    """
    if not all(
        path.is_relative_to(here) and path.resolve().is_relative_to(here.resolve())
        for path in paths
    ):
        return None
    return [str(path.relative_to(here)) for path in paths]
