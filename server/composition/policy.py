"""Builds the policy and approvals; edits of [policy] in the settings file take effect at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from server.composition.machine import make_sandbox
from server.settings.safety import PolicySettings
from server.settings.settings import DEFAULT_SOURCE, Settings
from server.settings_file import SettingsError
from storage.library import Library
from storage.locks import locked
from tools.conversion.naming import SEPARATOR
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect, ToolSpec

if TYPE_CHECKING:
    from server.mcp.approvals import StoredApprovals
    from tools.policy.matching import DeniedPlace
    from tools.policy.policy import Policy
    from tools.policy.rules import Rule

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

    Values from flags or the environment stay.
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


def make_policy(settings: Settings, registry: ToolRegistry, rules: PolicySettings) -> Policy:
    """Builds the policy from the current rules; the settings may contain older ones."""
    from tools.policy.policy import Policy
    from tools.sandbox.files.size_limits import extent_at

    return Policy(
        rules.profile,
        allow=rules.allow,
        ask=rules.ask,
        deny=rules.deny,
        root=settings.root,
        find=registry.get,
        look=partial(extent_at, make_sandbox(settings, settings.root)),
    )


def allow_always(settings: Settings, rules: Sequence[str]) -> None:
    """Writes rules that allow calls into the settings file; only on a user's answer."""
    from server.settings.file import SettingsFile
    from tools.policy.rules import Rule

    for rule in rules:
        Rule.parse(rule)
    file = counting_file(settings)
    if file is not None:
        with locked(settings.data_dir / "settings.lock", wait=True):
            SettingsFile(file).allow(rules)


def open_ended_rules(allow: Iterable[Rule], registry: ToolRegistry) -> Iterator[str]:
    """Yields warnings about rules that allow any command through their program."""
    for rule in allow:
        for spec in registry.specs():
            if rule.selector.fits(spec) and (excess := rule.excess(spec)):
                yield f"the rule {rule.text!r} allows anything that {excess}."


def warn_of_rules(settings: Settings, registry: ToolRegistry) -> None:
    """Logs rules in the settings that allow more than they seem to."""
    if settings.policy.allow:
        from tools.policy.rules import Rule

        for warning in open_ended_rules(map(Rule.parse, settings.policy.allow), registry):
            _logger.warning("Policy: %s", warning)


def let_through(settings: Settings, spec: ToolSpec) -> str:
    """Returns advice on settings that let another server's tool run without approval."""
    server = settings.servers.get(spec.server)
    if server is None:
        return ""
    rule = (
        f'`allow = ["{spec.name}"]` below [policy] (added to the list if there is one;'
        f' "{spec.server}{SEPARATOR}*" means all tools of {spec.server})'
    )
    trust = (
        f", or `trusted = true` below [servers.{spec.server}], which lets its tools run that"
        " claim to only read"
    )
    has_trust = server.trusted or settings.policy.profile not in {"standard", "cautious"}
    return (
        "Or ask the user to let it run without asking after the next start, by writing into"
        f" {settings.config_file}: {rule}{'' if has_trust else trust}."
    )


def make_approvals(settings: Settings, library: Library, command: str) -> StoredApprovals:
    """Builds approvals, which the user answers with a command."""
    from server.mcp.approvals import StoredApprovals
    from storage.approvals import ApprovalStore

    wanted = settings.approvals
    return StoredApprovals(
        ApprovalStore(library.database),
        root=str(settings.root),
        command=f"{command} approvals",
        wait=wanted.wait_seconds,
        expire=wanted.expire_seconds,
        grant=wanted.grant_seconds,
        allow=partial(allow_always, settings) if counting_file(settings) else None,
        owner=settings.identity.user_id,
    )
