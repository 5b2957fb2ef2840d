"""The settings of a running server, which follow their file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import TYPE_CHECKING

from server.composition.machine import check_closed
from server.composition.policy import followed_file, make_policy
from server.mcp.profiles import check_profiles
from server.settings.settings import Settings
from server.settings_file import SettingsError
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect

if TYPE_CHECKING:
    from server.settings.gateway import ProfileSettings
    from tools.policy.matching import DeniedPlace
    from tools.policy.policy import Policy

SETTLE_SECONDS = 0.05
"""Minimum age of a change: editors empty a file and write it in pieces."""

_logger = logging.getLogger("toolcrib")


def checked_policy(running: Settings, now: Settings, registry: ToolRegistry) -> Policy:
    """Builds the policy of settings whose parts fit together, and to the running server."""
    check_profiles(now)
    if now is not running:
        check_closed(running, now)
    return make_policy(now, registry)


class CurrentSettings:
    """The settings and the policy, replaced as a whole when the settings file changes.

    An edit is checked first; an invalid one changes nothing. Values from flags or the environment
    stay.
    """

    def __init__(self, settings: Settings, check: Callable[[Settings], Policy]) -> None:
        self.settings = settings  # as last applied
        self._check = check  # builds the policy; fails if the parts do not fit
        self._file = followed_file(settings)
        self._seen = self._state()
        self._policy: Policy | None = None
        self._told = ""
        self._turn = RLock()

    @property
    def is_followed(self) -> bool:
        """True if edits take effect while the server runs."""
        return self._file is not None

    @property
    def is_edited(self) -> bool:
        """True if the file has changed since it was last read."""
        return self._state() != self._seen

    def refresh(self) -> Settings:
        """Returns the settings; blocks if the file has changed."""
        if self.is_edited:
            with self._turn:
                if self.is_edited:
                    self._seen = self._settled_state()
                    self._take()
        return self.settings

    def profiles(self) -> Mapping[str, ProfileSettings]:
        """Returns the profiles; blocks if the file has changed."""
        return self.refresh().profiles

    def policy(self) -> Policy:
        """Returns the policy; blocks if it must be built."""
        self.refresh()
        if self._policy is None:
            self._policy = self._check(self.settings)
        return self._policy

    def denied_places(self) -> tuple[DeniedPlace, ...]:
        """Returns the paths denied to all tools and programs; blocks like the policy."""
        return self.policy().denied_places

    def closes(self, path: str) -> bool:
        """Returns whether a rule denies reading a path; blocks like the policy."""
        reads = (each for each in self.denied_places() if Effect.READ in each.effects)
        return any(each.pattern.covers(path) for each in reads)

    def _take(self) -> None:
        """Applies the file, or logs why not."""
        try:
            settings, waiting = self._reread()
            policy = self._check(settings)
        except (SettingsError, ValueError) as error:
            told = f"The settings are unchanged. {error} Corrections take effect at once."
            if told != self._told:
                _logger.warning("%s", told)
            self._told = told
            return
        before, self.settings, self._told = self.settings, settings, ""
        if self._policy is None or settings.policy != before.policy:
            self._policy = policy  # otherwise the same object: nothing has to be asked again
        if changes := "; ".join(_changes(before, settings, policy)):
            _logger.info("Applied %s: %s.", self._file, changes)
        if waiting:
            keys = ", ".join(waiting)
            _logger.warning("Restart Toolcrib to apply from %s: %s.", self._file, keys)

    def _reread(self) -> tuple[Settings, list[str]]:
        from server.settings.sources import reread  # only where it has changed

        file = followed_file(self.settings)
        if file is None:
            raise SettingsError(f"{self._file} is now inside the root. Move it out.")
        if not self._seen:
            raise SettingsError(f"{file} does not exist. Restore it.")
        found = reread(self.settings, file, _is_live)
        if not file.read_bytes().strip():
            raise SettingsError(f"{file} is empty. Restore it; a comment is enough.")
        return found

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


def _is_live(key: str) -> bool:
    """Returns whether a key takes effect while the server runs."""
    return key in {"profiles", "servers", "functions.paths"} or key.startswith("policy.")


def _changes(before: Settings, now: Settings, policy: Policy) -> Iterator[str]:
    """Yields what an edit changes."""
    if now.policy != before.policy:
        counts = ", ".join(f"{len(rules)} {verdict}" for verdict, rules in policy.rules.items())
        yield f"policy {policy.profile} with {counts}"
    for table in ("servers", "profiles"):
        old, new = getattr(before, table), getattr(now, table)
        if names := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
            yield f"{table} {', '.join(names)}"
    if now.functions.paths != before.functions.paths:
        yield "functions.paths"
