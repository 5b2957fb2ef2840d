"""Builds the policy, approvals and confinement from the settings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from server.composition.current_policy import counting_file
from server.composition.data import data_checkpoints, data_environment
from server.settings.settings import Settings
from storage.library import Library
from storage.locks import locked
from tools.conversion.naming import SEPARATOR
from tools.core.audit.audit import Audit
from tools.core.errors import UnavailableError
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.models import Limits, SandboxMode

if TYPE_CHECKING:
    import httpx2

    from server.mcp.approvals import StoredApprovals
    from server.settings.safety import PolicySettings
    from tools.data.running.workers import DataWorkers
    from tools.functions.programs.cells import Cells
    from tools.policy.path_rules import DeniedPlace
    from tools.policy.policy import Policy
    from tools.policy.rules import Rule
    from tools.sandbox.history.history import History
    from tools.sandbox.processes.confinement.allowed_hosts import Registries
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.secrets.redaction import Redaction
    from tools.sandbox.secrets.secrets import Secrets
    from tools.sandbox.web.client import WebClient
    from tools.sandbox.web.guard import AddressGuard
    from tools.sandbox.web.web_search import WebSearch

_DESCRIPTORS = 4_096
"""File descriptor limit of each process; builds need some thousands."""
Denied = Callable[[], tuple["DeniedPlace", ...]]  # the currently denied places

_logger = logging.getLogger("toolcrib")


def make_policy(settings: Settings, registry: ToolRegistry, rules: PolicySettings) -> Policy:
    """Builds the policy from the rules and the profile for the existing tools.

    Args:
        settings: The settings.
        registry: The tools.
        rules: The current policy; the settings may contain an older one.
    """
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
    """Writes rules that allow calls into the settings file; only on a user's answer.

    Raises:
        ValueError: If a rule is invalid.
    """
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


def make_audit(settings: Settings) -> Audit:
    """Builds the audit log."""
    wanted = settings.audit
    return Audit(settings.audit_file, max_bytes=wanted.max_bytes, backups=wanted.backups)


def make_history(settings: Settings, library: Library, sandbox: Sandbox) -> History:
    """Builds the history of file changes."""
    from tools.sandbox.history.history import History

    return History(
        str(settings.root),
        lambda: library.changes,
        sandbox.closed,
        sandbox.held,
        most_bytes=settings.undo.file_mb * 1_000_000,
    )


def make_sandbox(settings: Settings, root: Path) -> Sandbox:
    """Builds the sandbox for a root, without protected files."""
    return Sandbox(root, protected=protected(settings), read_only=read_only(settings))


def protected(settings: Settings) -> tuple[Path, ...]:
    """Returns paths that no tool may touch, wherever the root is."""
    own = (settings.data_dir, settings.log_file, settings.config_file)
    secrets = (each.file for each in settings.secrets.values())
    return tuple(path for path in (*own, *secrets) if path is not None)


def read_only(settings: Settings) -> tuple[Path, ...]:
    """Returns read-only paths: the server itself, function files with imports, and descriptions.

    Of a directory that contains the root, only the file itself is closed: agents write to the root.
    """
    paths = settings.functions.paths
    folders = [path if path.is_dir() else path.parent for path in paths]
    own = {Path(prefix).resolve() for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix)}
    inside = sorted(each for each in own if each.is_relative_to(settings.root.resolve()))
    described = filter(None, (each.file for each in settings.openapi.values()))
    return (
        *paths,
        *described,
        *(each for each in (*folders, *inside) if not settings.root.resolve().is_relative_to(each)),
    )


def make_machine(
    settings: Settings,
    environ: Mapping[str, str],
    redaction: Redaction,
    sandbox: Sandbox | None = None,
    denied: Denied = tuple,
    **parts: Callable[[], object],
) -> Machine:
    """Builds processes and the web, each on first use, and further parts."""
    secrets = partial(make_secrets, settings, environ, redaction)
    return Machine(
        **parts,
        processes=partial(make_processes, settings, environ, secrets, sandbox, denied),
        web=partial(_web, settings, secrets),
        search=partial(_search, settings),
        cells=partial(make_cells, settings, denied),
        data=partial(make_data_workers, settings, environ, denied),
    )


def make_secrets(
    settings: Settings, environ: Mapping[str, str], redaction: Redaction | None = None
) -> Secrets:
    """Builds the secrets in the settings, whose values are read at each use."""
    from tools.sandbox.secrets.secrets import Secrets

    named = settings.secrets.items()
    return Secrets(
        (each.to_secret(name) for name, each in named), environ=environ, redaction=redaction
    )


def make_processes(  # noqa: PLR0913  # the composition root hands over every part
    settings: Settings,
    environ: Mapping[str, str],
    secrets: Callable[[], Secrets | None] = lambda: None,
    sandbox: Sandbox | None = None,
    denied: Denied = tuple,
    *,
    ruled: Path | None = None,
) -> Processes:
    """Builds the process launcher, confined as the settings require, with secrets.

    Args:
        settings: The settings.
        environ: The environment of this process.
        secrets: Returns the secrets.
        sandbox: The files of the root; None uses the current directory.
        denied: Returns the paths currently denied to programs.
        ruled: The directory inside the root that those apply to; None for the root.
    """
    from tools.sandbox.processes.processes import Processes, inherited_variables
    from tools.sandbox.processes.temporary import git_identity

    wanted = settings.system
    registries = _registries(settings, environ)
    return Processes(
        root=settings.root,
        protected=protected(settings),
        read_only=read_only(settings),
        mode=wanted.sandbox,
        limits=_limits(settings),
        environment=dict(registries.variables) | inherited_variables(environ, wanted.environment),
        readable=wanted.readable,
        network=(*wanted.network, *registries.hosts),
        sandbox=sandbox or make_sandbox(settings, settings.root),
        git_config=partial(git_identity, environ, str(settings.root.resolve())),
        data_dir=settings.data_dir,
        guard=partial(_guard, settings),
        secrets=secrets(),
        denied=denied,
        ruled=ruled,
    )


def make_cells(settings: Settings, denied: Denied = tuple) -> Cells:
    """Builds the cells, which run agents' code in processes that see no user data."""
    from tools.functions.programs.cells import Cells
    from tools.functions.workers.bootstrap import OUR_PACKAGES, OURS

    packages = tuple(OURS / name for name in OUR_PACKAGES)  # without the rest of a checkout
    make = partial(_make_bare_processes, settings, denied, packages, _limits(settings))
    return Cells(make, _limits(settings).memory_bytes)


def make_data_workers(
    settings: Settings, environ: Mapping[str, str], denied: Denied
) -> DataWorkers:
    """Builds the workers that run recipes in processes that see no user data."""
    from tools.data.running.workers import PROGRAM, DataWorkers

    environment = data_environment(settings, environ)
    limits = replace(_limits(settings), cpu_seconds=0)  # deadlines apply; workers are reused

    def make(root: Path, free: bool) -> Processes:
        if free and settings.system.sandbox is SandboxMode.REQUIRED:
            raise UnavailableError(
                "A recipe for a cluster is not confined, and the setting system.sandbox is"
                " 'required'.",
                next_actions=["Run it with executor_type: default, or ask the user."],
            )
        mode = SandboxMode.OFF if free else settings.system.sandbox
        own = settings.model_copy(
            update={"system": settings.system.model_copy(update={"sandbox": mode})}
        )
        return _make_bare_processes(
            own, denied, (*environment.readable(), PROGRAM.parent), limits, root
        )

    return DataWorkers(environment, data_checkpoints(settings), make)


def _make_bare_processes(
    settings: Settings, denied: Denied, readable: Sequence[Path], limits: Limits, root: Path
) -> Processes:
    """Builds a launcher for programs rooted in one of our own directories."""
    from tools.sandbox.processes.processes import Processes

    return Processes(
        root=root,
        protected=(),
        read_only=(),
        mode=settings.system.sandbox,
        limits=limits,
        environment={},
        readable=readable,
        network=(),
        sandbox=Sandbox(root),
        git_config=bytes,
        data_dir=settings.data_dir,
        guard=partial(_guard, settings),
        denied=denied,
        ruled=settings.root,
    )


def _limits(settings: Settings) -> Limits:
    from tools.sandbox.processes.launching.usage import machine_memory

    wanted = settings.system
    half = machine_memory() // 2
    return Limits(
        cpu_seconds=wanted.cpu_seconds,
        memory_bytes=half if wanted.memory_mb is None else wanted.memory_mb * 1_000_000,
        processes=wanted.processes,
        file_bytes=wanted.file_mb * 1_000_000,
        descriptors=_DESCRIPTORS,
    )


def _registries(settings: Settings, environ: Mapping[str, str]) -> Registries:
    """Returns package registries beyond the default ones that programs may reach."""
    from tools.sandbox.processes.confinement.allowed_hosts import (
        PACKAGES,
        Registries,
        find_registries,
    )
    from tools.sandbox.processes.confinement.plan import find_visible_paths

    if PACKAGES not in settings.system.network:
        return Registries()
    visible = find_visible_paths(settings.system.readable)
    return find_registries(environ, Path.home(), visible.include)


def _web(settings: Settings, secrets: Callable[[], Secrets]) -> WebClient:
    from tools.sandbox.web.client import WebClient

    wanted = settings.requests
    return WebClient(
        _guard(settings),
        proxy=wanted.proxy,
        timeout=wanted.timeout,
        max_bytes=wanted.max_mb * 1_000_000,
        secrets=secrets(),
    )


def _search(settings: Settings) -> WebSearch:
    from tools.sandbox.web.web_search import make_search

    wanted = settings.web_search
    return make_search(
        provider=wanted.provider,
        engines=wanted.engines,
        url=wanted.url,
        api_key=wanted.api_key.get_secret_value(),
        per_minute=wanted.per_minute,
        private=settings.requests.private,
        proxy=settings.requests.proxy,
    )


def _guard(settings: Settings) -> AddressGuard:
    from tools.sandbox.web.guard import AddressGuard

    return AddressGuard(settings.requests.private)


def endpoint_client(settings: Settings, url: str) -> httpx2.Client:
    """Builds the HTTP client for an endpoint in the settings."""
    from tools.sandbox.web import blocking

    wanted = settings.requests
    return blocking.endpoint_client(url, private=wanted.private, proxy=wanted.proxy)
