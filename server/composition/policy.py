"""Builds the policy and approvals."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from server.composition.machine import make_sandbox
from server.settings.settings import DEFAULT_SOURCE, Settings
from storage.library import Library
from storage.locks import locked
from tools.conversion.naming import SEPARATOR
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from server.mcp.approvals import StoredApprovals
    from tools.policy.policy import Policy
    from tools.policy.rules import Rule

_logger = logging.getLogger("toolcrib")


def counting_file(settings: Settings) -> Path | None:
    """Returns the settings file if rules added to its policy.allow take effect at once."""
    is_overridden = settings.source_of("policy.allow") not in {
        DEFAULT_SOURCE,
        str(settings.config_file),
    }
    return None if is_overridden else followed_file(settings)


def followed_file(settings: Settings) -> Path | None:
    """Returns the settings file, unless it is inside the root, where agents could write it."""
    file = settings.config_file
    if file is None or file.resolve().is_relative_to(settings.root.resolve()):
        return None
    return file


def make_policy(settings: Settings, registry: ToolRegistry) -> Policy:
    """Builds the policy."""
    from tools.policy.policy import Policy
    from tools.sandbox.files.size_limits import extent_at

    rules = settings.policy
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
        "Or ask the user to let it run without asking, by writing into"
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
