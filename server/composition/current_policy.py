"""The current policy: changes of [policy] in the settings file take effect at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from server.settings import Settings
from server.settings.safety import PolicySettings
from server.settings.settings import DEFAULT_SOURCE
from server.settings_error import SettingsError
from tools.core.spec import Effect

if TYPE_CHECKING:
    from tools.policy.path_rules import DeniedPlace
    from tools.policy.policy import Policy

SETTLE_SECONDS = 0.05
"""Minimum age of a change: editors empty a file and write it in pieces."""

_logger = logging.getLogger("toolcrib")


def counting_file(settings: Settings) -> Path | None:
    """Returns the settings file if rules added to its policy.allow take effect at once."""
    is_overridden = settings.source_of("policy.allow") not in {
        DEFAULT_SOURCE,
        str(settings.config_file),
    }
    return None if is_overridden else _followed_file(settings)


def _followed_file(settings: Settings) -> Path | None:
    """Returns the settings file, unless it is inside the root, where agents could write it."""
    file = settings.config_file
    if file is None or file.resolve().is_relative_to(settings.root.resolve()):
        return None
    return file


class CurrentPolicy:
    """Returns the policy; reloads [policy] as a whole when the settings file changes.

    Args:
        settings: The settings at the start. Values from flags or the environment stay.
        make: Builds a policy from its settings.
    """

    def __init__(self, settings: Settings, make: Callable[[PolicySettings], Policy]) -> None:
        self._settings = settings
        self._file = _followed_file(settings)
        self._make = make
        self._seen = self._state()
        self._policy: Policy | None = None
        self._told = ""

    def __call__(self) -> Policy:
        """Returns the policy; blocks if it must be built."""
        if self._policy is None:
            self._policy = self._make(self._settings.policy)
        if self._state() != self._seen:
            self._seen = self._settled_state()
            self._take()
        return self._policy

    def denied_places(self) -> tuple[DeniedPlace, ...]:
        """Returns the paths denied to all tools and programs; blocks like the policy."""
        return self().denied_places

    def closes(self, path: str) -> bool:
        """Returns whether a rule denies reading a path; blocks like the policy."""
        reads = (each for each in self.denied_places() if Effect.READ in each.effects)
        return any(each.pattern.covers(path) for each in reads)

    def _take(self) -> None:
        """Loads the policy from the file, or logs why not."""
        try:
            policy = self._reread()
        except (SettingsError, ValueError) as error:
            told = f"The policy is unchanged. {error} Corrections take effect at once."
            if told != self._told:
                _logger.warning("%s", told)
            self._told = told
            return
        self._policy, self._told = policy, ""
        counts = ", ".join(f"{len(rules)} {verdict}" for verdict, rules in policy.rules.items())
        _logger.info("Loaded [policy] from %s: %s; %s.", self._file, policy.profile, counts)

    def _reread(self) -> Policy:
        from server.settings.sources import reread_policy  # only where it has changed

        file = _followed_file(self._settings)
        if file is None:
            raise SettingsError(f"{self._file} is now inside the root. Move it out.")
        if not self._seen:
            raise SettingsError(f"{file} does not exist. Restore it.")
        policy = self._make(reread_policy(self._settings, file))
        if not file.read_bytes().strip():
            raise SettingsError(f"{file} is empty. Restore it; a comment is enough.")
        return policy

    def _settled_state(self) -> tuple[int, ...]:
        """Returns the state of the file once it appears to be fully written."""
        state = self._state()
        for _ in range(5):
            time.sleep(SETTLE_SECONDS)
            if (later := self._state()) == state:
                break
            state = later
        return state

    def _state(self) -> tuple[int, ...]:
        """Returns the file's identity and times; empty if it is missing or not followed."""
        if self._file is None:
            return ()
        try:
            status = self._file.stat()
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
