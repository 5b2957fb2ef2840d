"""Which packages a cell sees: ours and what they need, wherever those are installed."""

from __future__ import annotations

from pathlib import Path

from tools.functions.workers.bootstrap import OUR_PACKAGES, OURS


def find_packages() -> tuple[Path, ...]:
    """Returns the directories of ours, without what lies beside them in a checkout."""
    return tuple(OURS / name for name in OUR_PACKAGES)
