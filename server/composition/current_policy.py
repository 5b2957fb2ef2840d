"""The policy that holds now: [policy] of the settings file counts as soon as it is written."""

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
    from tools.policy.places import DeniedPlace
    from tools.policy.policy import Policy

SETTLE_SECONDS = 0.05
"""How old a change must be: editors empty a file, and write it in pieces."""

_logger = logging.getLogger("toolcrib")


def counting_file(settings: Settings) -> Path | None:
    """The settings file, where rules that are added to policy.allow count at once; else None."""
    is_overridden = settings.source_of("policy.allow") not in {
        DEFAULT_SOURCE,
        str(settings.config_file),
    }
    return None if is_overridden else _followed(settings)


def _followed(settings: Settings) -> Path | None:
    """The settings file, unless it is inside the root, where agents could write it."""
    file = settings.config_file
    if file is None or file.resolve().is_relative_to(settings.root.resolve()):
        return None
    return file


class CurrentPolicy:
    """Gives the policy; when the settings file has changed, all of its [policy] or nothing of it.

    Args:
        settings: As they were at the start. What a flag or the environment has set stays.
        make: Makes a policy from its settings.
    """

    def __init__(self, settings: Settings, make: Callable[[PolicySettings], Policy]) -> None:
        self._settings = settings
        self._file = _followed(settings)
        self._make = make
        self._seen = self._state()
        self._policy: Policy | None = None
        self._told = ""

    def __call__(self) -> Policy:
        """The policy; blocks where it has to be made."""
        if self._policy is None:
            self._policy = self._make(self._settings.policy)
        if self._state() != self._seen:
            self._seen = self._settled()
            self._take()
        return self._policy

    def denied_places(self) -> tuple[DeniedPlace, ...]:
        """The places that it denies to every tool and program; blocks like the policy."""
        return self().denied_places

    def closes(self, path: str) -> bool:
        """Returns whether a rule denies to read a path; blocks like the policy."""
        reads = (each for each in self.denied_places() if Effect.READ in each.effects)
        return any(each.pattern.covers(path) for each in reads)

    def _take(self) -> None:
        """Takes over the policy of the file, or says why not."""
        try:
            policy = self._reread()
        except (SettingsError, ValueError) as error:
            told = (
                f"The policy stays as it was, all of it. {error} Once corrected, it counts at once."
            )
            if told != self._told:
                _logger.warning("%s", told)
            self._told = told
            return
        self._policy, self._told = policy, ""
        counts = ", ".join(f"{len(rules)} {verdict}" for verdict, rules in policy.rules.items())
        _logger.info("[policy] of %s counts now: %s; %s.", self._file, policy.profile, counts)

    def _reread(self) -> Policy:
        from server.settings.sources import reread_policy  # only where it has changed

        file = _followed(self._settings)
        if file is None:
            raise SettingsError(f"{self._file} is inside the root now. Move it out of it.")
        if not self._seen:
            raise SettingsError(f"{file} cannot be found. Write it again.")
        policy = self._make(reread_policy(self._settings, file))
        if not file.read_bytes().strip():
            raise SettingsError(f"{file} is empty. Write it again, if only a comment.")
        return policy

    def _settled(self) -> tuple[int, ...]:
        """The state of the file once it is no longer being written, as far as that shows."""
        state = self._state()
        for _ in range(5):
            time.sleep(SETTLE_SECONDS)
            if (later := self._state()) == state:
                break
            state = later
        return state

    def _state(self) -> tuple[int, ...]:
        """What changes with the settings file; nothing where there is none, or it is not read."""
        if self._file is None:
            return ()
        try:
            status = self._file.stat()
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
