"""Builds the file sandbox, and confined access to programs and the web."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.settings.group import texts_in
from server.settings.settings import Settings
from storage.library import Library
from tools.core.errors import UnavailableError
from tools.core.machine import Machine
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.models import Limits, SandboxMode

if TYPE_CHECKING:
    import httpx2

    from server.upstream.connections.connect import Transports
    from tools.data.running.checkpoints import Checkpoints
    from tools.data.running.environment import DataEnvironment
    from tools.data.running.workers import DataWorkers
    from tools.functions.programs.code_workers import CodeWorkers
    from tools.policy.matching import DeniedPlace
    from tools.sandbox.history.history import History
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.secrets.redaction import Redaction
    from tools.sandbox.secrets.references import References
    from tools.sandbox.secrets.secrets import Secrets
    from tools.sandbox.web.client import WebClient
    from tools.sandbox.web.guard import AddressGuard
    from tools.sandbox.web.web_search import WebSearch

_DESCRIPTORS = 4_096
"""File descriptor limit of each process; builds need some thousands."""


def make_sandbox(settings: Settings, root: Path) -> Sandbox:
    """Builds the sandbox for a root, without protected files."""
    return Sandbox(root, protected=protected(settings), read_only=read_only(settings))


def protected(settings: Settings) -> tuple[Path, ...]:
    """Returns paths that no tool may touch, wherever the root is."""
    own = (settings.data_dir, settings.log_file, settings.config_file)
    secrets = (each.file for each in settings.secrets.values())
    named = _files_in(settings)
    return tuple(path for path in (*own, *secrets, *named) if path is not None)


def _files_in(settings: Settings) -> list[Path]:
    """Returns the files that texts in the settings refer to."""
    texts = [each for each in texts_in(settings.model_dump()) if "${file:" in each]
    if not texts:
        return []
    from tools.sandbox.secrets.references import files_in

    return [path for each in texts for path in files_in(each)]


def references_of(
    settings: Settings, environ: Mapping[str, str], redaction: Redaction | None = None
) -> References:
    """Builds the references in the settings, whose values are read at each use."""
    from tools.sandbox.secrets.references import References
    from tools.sandbox.secrets.store import FOLDER

    return References(environ, settings.data_dir / FOLDER, redaction)


def proxy_of(settings: Settings, references: References) -> str:
    """Returns the proxy for requests; blocks."""
    return references.expand(settings.requests.proxy, "requests.proxy", is_secret=True)


def transports_of(
    settings: Settings, environ: Mapping[str, str], redaction: Redaction | None = None
) -> Transports:
    """Builds the links to other MCP servers."""
    from server.upstream.connections.connect import Transports

    references = references_of(settings, environ, redaction)
    return Transports(
        environ,
        proxy=partial(proxy_of, settings, references),
        references=references,
        data_dir=settings.data_dir,
    )


def read_only(settings: Settings) -> tuple[Path, ...]:
    """Returns read-only paths: the server itself, function files with imports, and descriptions.

    Of a directory that contains the root, only the file itself is closed: agents write to the root.
    """
    root, paths = settings.root.resolve(), settings.functions.paths
    folders = [path if path.is_dir() else path.parent for path in paths]
    own = {Path(prefix).resolve() for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix)}
    inside = sorted(each for each in own if each.is_relative_to(root))
    described = filter(None, (each.file for each in settings.openapi.values()))
    return (
        *paths,
        *described,
        *(each for each in (*folders, *inside) if not root.is_relative_to(each)),
    )


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


def endpoint_client(settings: Settings, environ: Mapping[str, str], url: str) -> httpx2.Client:
    """Builds the HTTP client for an endpoint in the settings."""
    from tools.sandbox.web import blocking

    proxy = proxy_of(settings, references_of(settings, environ))
    return blocking.endpoint_client(url, private=settings.requests.private, proxy=proxy)


def data_checkpoints(settings: Settings) -> Checkpoints:
    """Returns the checkpoints of unsuccessful recipe runs."""
    from tools.data.running.checkpoints import Checkpoints

    return Checkpoints(settings.data_dir / "checkpoints")


def data_environment(settings: Settings, environ: Mapping[str, str]) -> DataEnvironment:
    """Returns the environment of Data-Juicer; uv's index and proxy are in `environ`."""
    from tools.data.running.environment import DataEnvironment

    return DataEnvironment(settings.data_dir, environ=environ)


@dataclass(frozen=True, slots=True)
class MachineParts:
    """Builds processes, the web and the secrets that they use, confined as the settings require."""

    settings: Settings
    variables: Mapping[str, str]
    redaction: Redaction | None = None  # learns the values of secrets
    sandbox: Sandbox | None = None  # the files of the root; None uses the current directory
    denied: Callable[[], tuple[DeniedPlace, ...]] = tuple  # paths currently denied to programs

    @property
    def files(self) -> Sandbox:
        """The files of the root."""
        return self.sandbox or make_sandbox(self.settings, self.settings.root)

    def machine(self, **more: Callable[[], Any]) -> Machine:
        """Returns the machine, which builds each part, and `more` of them, on first use."""
        return Machine(
            processes=self.processes,
            web=self._web,
            search=self._search,
            code_workers=self.code_workers,
            data=self._data_workers,
            **more,
        )

    def secrets(self) -> Secrets:
        """Builds the secrets in the settings, whose values are read at each use."""
        from tools.sandbox.secrets.secrets import Secrets
        from tools.sandbox.secrets.store import FOLDER

        named, directory = self.settings.secrets.items(), self.settings.data_dir / FOLDER
        secrets = (each.to_secret(name, directory) for name, each in named)
        return Secrets(secrets, environ=self.variables, redaction=self.redaction)

    @property
    def references(self) -> References:
        """The references in the settings."""
        return references_of(self.settings, self.variables, self.redaction)

    def processes(self, *, ruled: Path | None = None) -> Processes:
        """Builds the process launcher.

        The denied places apply to the directory `ruled`, by default the root.
        """
        from tools.sandbox.processes.confinement.allowed_hosts import (
            PACKAGES,
            Registries,
            find_registries,
        )
        from tools.sandbox.processes.confinement.plan import find_visible_paths
        from tools.sandbox.processes.processes import Processes, inherited_variables
        from tools.sandbox.processes.temporary import git_identity

        settings, wanted = self.settings, self.settings.system
        registries = Registries()
        if PACKAGES in wanted.network:
            visible = find_visible_paths(wanted.readable)
            registries = find_registries(self.variables, Path.home(), visible.include)
        inherited = inherited_variables(self.variables, wanted.environment)
        return Processes(
            root=settings.root,
            protected=protected(settings),
            read_only=read_only(settings),
            mode=wanted.sandbox,
            limits=self._limits(),
            environment=dict(registries.variables) | inherited,
            readable=wanted.readable,
            network=(*wanted.network, *registries.hosts),
            sandbox=self.files,
            git_config=partial(git_identity, self.variables, str(settings.root.resolve())),
            data_dir=settings.data_dir,
            guard=self._guard,
            secrets=self.secrets(),
            denied=self.denied,
            ruled=ruled,
        )

    def code_workers(self) -> CodeWorkers:
        """Builds the code workers, which run agents' code in processes that see no user data."""
        from tools.functions.programs.code_workers import CodeWorkers
        from tools.functions.workers.bootstrap import OUR_PACKAGES, OURS

        limits = self._limits()
        packages = tuple(OURS / name for name in OUR_PACKAGES)  # without the rest of a checkout
        return CodeWorkers(partial(self._bare_processes, packages, limits), limits.memory_bytes)

    def _data_workers(self) -> DataWorkers:
        """Builds the workers that run recipes in processes that see no user data."""
        from tools.data.running.workers import PROGRAM, DataWorkers

        settings = self.settings
        environment = data_environment(settings, self.variables)
        limits = replace(self._limits(), cpu_seconds=0)  # deadlines apply; workers are reused

        def make(root: Path, free: bool) -> Processes:
            if free and settings.system.sandbox is SandboxMode.REQUIRED:
                raise UnavailableError(
                    "A recipe for a cluster is not confined, and the setting system.sandbox is"
                    " 'required'.",
                    next_actions=["Run it with executor_type: default, or ask the user."],
                )
            mode = SandboxMode.OFF if free else settings.system.sandbox
            readable = (*environment.readable(), PROGRAM.parent)
            return self._bare_processes(readable, limits, root, mode)

        return DataWorkers(environment, data_checkpoints(settings), make)

    def _bare_processes(
        self, readable: Sequence[Path], limits: Limits, root: Path, mode: SandboxMode | None = None
    ) -> Processes:
        """Builds a launcher for programs rooted in one of our own directories."""
        from tools.sandbox.processes.processes import Processes

        return Processes(
            root=root,
            protected=(),
            read_only=(),
            mode=mode or self.settings.system.sandbox,
            limits=limits,
            environment={},
            readable=readable,
            network=(),
            sandbox=Sandbox(root),
            git_config=bytes,
            data_dir=self.settings.data_dir,
            guard=self._guard,
            denied=self.denied,
            ruled=self.settings.root,
        )

    def _limits(self) -> Limits:
        from tools.sandbox.processes.launching.usage import machine_memory

        wanted = self.settings.system
        half = machine_memory() // 2
        return Limits(
            cpu_seconds=wanted.cpu_seconds,
            memory_bytes=half if wanted.memory_mb is None else wanted.memory_mb * 1_000_000,
            processes=wanted.processes,
            file_bytes=wanted.file_mb * 1_000_000,
            descriptors=_DESCRIPTORS,
        )

    def _web(self) -> WebClient:
        from tools.sandbox.web.client import WebClient

        wanted = self.settings.requests
        return WebClient(
            self._guard(),
            proxy=proxy_of(self.settings, self.references),
            timeout=wanted.timeout,
            max_bytes=wanted.max_mb * 1_000_000,
            secrets=self.secrets(),
        )

    def _search(self) -> WebSearch:
        from tools.sandbox.web.web_search import make_search

        wanted, references = self.settings.web_search, self.references
        return make_search(
            provider=wanted.provider,
            engines=wanted.engines,
            url=wanted.url,
            api_key=references.secret(wanted.api_key, "web_search.api_key"),
            per_minute=wanted.per_minute,
            private=self.settings.requests.private,
            proxy=proxy_of(self.settings, references),
        )

    def _guard(self) -> AddressGuard:
        from tools.sandbox.web.guard import AddressGuard

        return AddressGuard(self.settings.requests.private)
