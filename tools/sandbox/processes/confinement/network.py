"""Networks of sessions: a shared loopback for the session's programs, and a proxy.

The programs of a session join one network namespace, which has no route out. The proxy listens
there on a socket of the server, and accepts only allowed hosts, whose addresses are checked too. An
allowed host on the server's own loopback is available on the same port of the session's loopback.
Only the programs inside and the server hold a namespace; it ends with them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketListener

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.allowed_hosts import (
    LOOPBACK,
    PACKAGES,
    AllowedHosts,
    is_loopback,
    is_registry,
)
from tools.sandbox.processes.confinement.plan import Confinement
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.launching.messages import receive_descriptors
from tools.sandbox.processes.models import Level, Prepared, SettingNames
from tools.sandbox.processes.output import communicate
from tools.sandbox.web.hosts import join_host_port

if TYPE_CHECKING:
    from tools.sandbox.web.guard import AddressGuard
    from tools.sandbox.web.proxy import GuardedProxy, Refusal


MOST_HOSTS = 5  # limit on the refused hosts that are named


class Refusals:
    """Collects the refused connections of one program."""

    def __init__(self, names: SettingNames) -> None:
        self._names = names
        self._first: dict[tuple[str, int, bool], str] = {}
        self._more = False

    def add(self, refusal: Refusal) -> None:
        """Adds a refusal; each host counts once."""
        key = refusal.host, refusal.port, refusal.names_another
        if key in self._first:
            return
        if len(self._first) < MOST_HOSTS:
            self._first[key] = _note(refusal, self._names)
        else:
            self._more = True

    def notes(self) -> tuple[str, ...]:
        """Returns a sentence for each host, with what would allow it."""
        rest = (f"It tried to reach more hosts that {self._names.network} does not list.",)
        return (*self._first.values(), *(rest if self._more else ()))

    def take(self) -> tuple[str, ...]:
        """Returns the notes since the last time."""
        taken = self.notes()
        self._first, self._more = {}, False
        return taken


def _note(refusal: Refusal, names: SettingNames) -> str:
    where = join_host_port(refusal.host, refusal.port)
    if refusal.names_another:
        return refusal.why
    if refusal.is_allowed:
        return f"{refusal.why} To allow it, the user adds '{where}' to requests.private."
    if is_loopback(refusal.host):
        return f"It asked the proxy for {where}: loopback is reached without a proxy."
    all_registries = ""
    if is_registry(refusal.host, refusal.port):
        all_registries = f" '{PACKAGES}' stands for all registries."
    return (
        f"It tried to reach {where}, which {names.network} does not list; to allow it, the user "
        f"{names.adding(names.network, where)}.{all_registries}"
    )


MOST = 16  # limit on the networks; idle ones are closed, the least recently used first
SECONDS = 20.0  # time limit for creating a namespace, which takes 20 ms

Session = tuple[str, ...]
Target = tuple[str, int]
_PROBED: Session = ()  # placeholder for the session whose network the probe creates

_logger = logging.getLogger("toolcrib")


class Networks:
    """The networks of all sessions, created on first use; close them with `aclose`."""

    def __init__(
        self,
        launcher: Launcher,
        patterns: Sequence[str],
        guard: Callable[[], AddressGuard],
        names: SettingNames,
        most: int = 0,  # 0 means `MOST`
    ) -> None:
        self.reach_hosts = bool(patterns)
        self._names = names
        self._most = most or MOST
        self._launcher = launcher
        self._allowed = AllowedHosts(patterns)
        self._targets = {_address(each): each for each in self._allowed.loopback}
        self._guard = guard
        self._lock = anyio.Lock()
        self._networks: OrderedDict[Session, _Network] = OrderedDict()
        self._problem = ""

    async def enter(self, confinement: Confinement, session: Session = _PROBED) -> Visit:
        """Lets a program into a session's network until it leaves; the probe has no session."""
        async with self._lock:
            network = self._networks.pop(session, None) or self._networks.pop(_PROBED, None)
            if network is None:
                network = await self._open(confinement)
            self._networks[session] = network  # moves it behind those used before
            return network.enter()

    async def visit(self, session: Session, confinement: Confinement) -> Visit:
        """Lets a program into its session's network, if possible, with notes on what is missing."""
        if not session or confinement.level is Level.NONE:
            return Visit()
        problem = f"{confinement.level} cannot let single hosts through."
        if confinement.shares_networks:
            try:
                return await self.enter(confinement, session)
            except UnavailableError as error:
                problem = error.message
        return Visit(notes=(f"It ran without network: {problem}",) if self.reach_hosts else ())

    async def give_up(self, problem: str) -> None:
        """Stops creating networks, because programs cannot use them here."""
        async with self._lock:
            self._problem = problem
            await self._close_all()

    async def aclose(self) -> None:
        """Closes all networks."""
        async with self._lock:
            await self._close_all()

    async def _close_all(self) -> None:
        while self._networks:
            await self._networks.popitem()[1].aclose()

    async def _open(self, confinement: Confinement) -> _Network:
        if self._problem:
            raise UnavailableError(self._problem)
        if len(self._networks) >= self._most:
            idle = [each for each, network in self._networks.items() if network.is_idle]
            if not idle:
                raise UnavailableError(f"{self._most} sessions have programs running.")
            await self._networks.pop(idle[0]).aclose()
        into_network = confinement.into_network
        text = Path(__file__).with_name("namespace.py").read_text(encoding="utf-8")
        # The proxy last, at any free port. All of 127.0.0.0/8 leads to it.
        addresses = (*self._targets, "0.0.0.0:0")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            how = "inside" if into_network else "outside"
            argv = (*into_network, sys.executable, "-I", "-S", "-c", text, how, *addresses)
            prepared = Prepared(argv=argv, cwd="/", environment={})
            running = await self._launcher.start(prepared, stdin=theirs.fileno())
            errors = bytearray()
            ended = await communicate(running, errors.extend, errors.extend, seconds=SECONDS)
            if ended.timed_out:
                raise UnavailableError("No network namespace was made in time.")
            if ended.exit_code:
                problem = errors.decode(errors="replace").strip().rpartition("\n")[2]
                raise UnavailableError(f"No network namespace can be made: {problem}.")
            theirs.close()
            _, descriptors = receive_descriptors(ours, 1)
        listeners = [socket.socket(fileno=each) for each in descriptors[: len(addresses)]]
        served = list(zip(listeners, (*self._targets.values(), None), strict=True))
        namespaces = tuple(descriptors[len(addresses) :])
        return _Network(served, namespaces, self._allowed, self._guard, self._names)


@dataclass(frozen=True, slots=True)
class Visit:
    """A program's stay in a network; by default in none."""

    namespaces: tuple[int, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refused: Callable[[], tuple[str, ...]] = tuple  # returns a note on each newly refused host
    # Ends the stay; returns a note on each refused host.
    leave: Callable[[], tuple[str, ...]] = tuple


class _Network:
    """The network of one session."""

    def __init__(
        self,
        # Listening sockets, each with its target on the loopback; the proxy last.
        served: Sequence[tuple[socket.socket, Target | None]],
        namespaces: tuple[int, ...],  # closed with the network
        allowed: AllowedHosts,
        guard: Callable[[], AddressGuard],
        names: SettingNames,
    ) -> None:
        self.namespaces = namespaces
        self._names = names
        self._allowed = allowed
        self._guard = guard
        self._port: int = served[-1][0].getsockname()[1]
        self._refusals: dict[str, Refusals] = {}
        """The refusals of each program inside, by the address of its proxy."""
        numbers = itertools.cycle(range(1 << 8, 1 << 23))  # of 127.0.0.0/8, but the common one
        self._addresses = (f"127.{n >> 16}.{n >> 8 & 0xFF}.{n & 0xFF}" for n in numbers)
        self._serving = asyncio.create_task(self._serve(served))

    @property
    def is_idle(self) -> bool:
        return not self._refusals

    def enter(self) -> Visit:
        address = next(each for each in self._addresses if each not in self._refusals)
        refusals = self._refusals[address] = Refusals(self._names)

        def leave() -> tuple[str, ...]:
            del self._refusals[address]
            return refusals.notes()

        proxied = ("http_proxy", "https_proxy", "all_proxy")
        variables = {
            **dict.fromkeys((*proxied, *map(str.upper, proxied)), f"http://{address}:{self._port}"),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(LOOPBACK)),
            "NODE_USE_ENV_PROXY": "1",  # Node.js ignores them otherwise
        }
        return Visit(self.namespaces, variables, refused=refusals.take, leave=leave)

    async def aclose(self) -> None:
        self._serving.cancel()
        with suppress(asyncio.CancelledError):
            await self._serving
        for namespace in self.namespaces:
            os.close(namespace)

    async def _serve(self, served: Sequence[tuple[socket.socket, Target | None]]) -> None:
        with ExitStack() as stack:
            for listener, _ in served:
                stack.enter_context(listener)
            try:
                async with anyio.create_task_group() as group:
                    for listener, target in served:
                        group.start_soon(self._serve_at, listener, target)
            except Exception:
                _logger.exception("The proxy of programs ended")

    async def _serve_at(self, listener: socket.socket, target: Target | None) -> None:
        await anyio.wait_readable(listener)  # loads the proxy on the first connection
        async with await SocketListener.from_socket(listener) as accepting:
            await self._proxy.serve(accepting, target)

    @cached_property
    def _proxy(self) -> GuardedProxy:
        from tools.sandbox.web.proxy import GuardedProxy

        return GuardedProxy(
            self._guard(), allowed=self._allowed, checks_names=True, on_refusal=self._note
        )

    def _note(self, refusal: Refusal) -> None:
        """Notes a refusal for the program that asked; at a shared address, for all programs."""
        own = self._refusals.get(refusal.asked_at)
        for each in self._refusals.values() if own is None else [own]:
            each.add(refusal)


def _address(target: Target) -> str:
    """Returns the address of a loopback service inside the network, with the same port."""
    host, port = target
    return f"{'127.0.0.1' if host == 'localhost' else host}:{port}"
