"""Builds Data-Juicer's environment and checkpoints from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from server.settings import Settings

if TYPE_CHECKING:
    from tools.data.running.checkpoints import Checkpoints
    from tools.data.running.environment import DataEnvironment


def data_checkpoints(settings: Settings) -> Checkpoints:
    """Returns the checkpoints of unsuccessful recipe runs."""
    from tools.data.running.checkpoints import Checkpoints

    return Checkpoints(settings.data_dir / "checkpoints")


def data_environment(settings: Settings, environ: Mapping[str, str]) -> DataEnvironment:
    """Returns the environment of Data-Juicer.

    Args:
        settings: The settings.
        environ: The environment of this process, for uv's index and proxy.
    """
    from tools.data.running.environment import DataEnvironment

    return DataEnvironment(settings.data_dir, environ=environ)
