"""The policy that holds now: rules that a person had written into the settings count at once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from server.settings import Settings
from server.settings.safety import PolicySettings
from server.settings.settings import DEFAULT_SOURCE
from server.settings_error import SettingsError

if TYPE_CHECKING:
    from tools.policy.places import DeniedPlace
    from tools.policy.policy import Policy

__all__ = ["CurrentPolicy", "counting_file"]

_logger = logging.getLogger("toolcrib")


def counting_file(settings: Settings) -> Path | None:
    """The settings file, where rules that are added to it count at once; None where they do not.

    Nothing may override them; and what agents work in may hold, for a moment, a file of theirs.
    """
    file = settings.config_file
    if file is None or settings.source_of("policy.allow") not in {DEFAULT_SOURCE, str(file)}:
        return None
    return None if file.resolve().is_relative_to(settings.root.resolve()) else file


class CurrentPolicy:
    """Gives the policy, whose rules that allow are read again when the settings file has changed.

    The others are those of the start: a file that is just being written lacks none of them here.

    Args:
        settings: As they were at the start, which say where they are from.
        make: Makes a policy from its settings.
    """

    def __init__(self, settings: Settings, make: Callable[[PolicySettings], Policy]) -> None:
        self._start = settings.policy
        self._file = counting_file(settings)
        self._make = make
        self._seen = self._state()
        self._policy: Policy | None = None

    def __call__(self) -> Policy:
        """The policy; blocks where it has to be made."""
        state = self._state()
        if self._policy is None:
            self._policy = self._make(self._start)
        if state != self._seen:
            self._seen = state
            try:
                self._policy = self._make(self._reread())
            except (SettingsError, ValueError) as error:
                _logger.warning("The policy stays as it was: %s", error)
        return self._policy

    def denied_places(self) -> tuple[DeniedPlace, ...]:
        """The places that it denies to every tool and program; blocks like the policy."""
        return self().denied_places

    def _reread(self) -> PolicySettings:
        from server.settings.file import SettingsFile  # only where it has changed

        rules = SettingsFile(self._file).allowing if self._file is not None else ()
        allow = PolicySettings(allow=rules).allow
        return self._start.model_copy(update={"allow": allow})

    def _state(self) -> tuple[int, ...]:
        """What changes with the settings file; nothing where its rules do not count."""
        if self._file is None:
            return ()
        try:
            status = self._file.stat()
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_size, status.st_ino
