"""Finds the packages that a cell sees: ours and their dependencies."""

from __future__ import annotations

from pathlib import Path

from tools.functions.workers.bootstrap import OUR_PACKAGES, OURS


def find_packages() -> tuple[Path, ...]:
    """Returns our package directories, without the rest of a checkout."""
    return tuple(OURS / name for name in OUR_PACKAGES)
