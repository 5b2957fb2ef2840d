"""Data-Juicer and what runs it, put together as the settings have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from server.settings import Settings

if TYPE_CHECKING:
    from tools.data.running.checkpoints import Checkpoints
    from tools.data.running.environment import DataEnvironment


def data_checkpoints(settings: Settings) -> Checkpoints:
    """What runs of recipes had done that did not succeed."""
    from tools.data.running.checkpoints import Checkpoints

    return Checkpoints(settings.data_dir / "checkpoints")


def data_environment(settings: Settings, environ: Mapping[str, str]) -> DataEnvironment:
    """The environment of Data-Juicer.

    Args:
        settings: What can be set.
        environ: The environment of this process, for uv's index and proxy.
    """
    from tools.data.running.environment import DataEnvironment

    return DataEnvironment(settings.data_dir, environ=environ)
