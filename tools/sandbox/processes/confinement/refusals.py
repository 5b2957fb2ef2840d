"""What a program tried to reach and may not, in words for whoever reads its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.sandbox.processes.confinement.allowed_hosts import PACKAGES, is_loopback, is_registry
from tools.sandbox.web.hosts import join_host_port

if TYPE_CHECKING:
    from tools.sandbox.web.proxy.proxy import Refusal

MOST = 5
"""Hosts that are named."""


class Refusals:
    """The refusals of one program."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, int, bool], str] = {}
        self._more = False

    def add(self, refusal: Refusal) -> None:
        """Notes one; a host counts once."""
        key = refusal.host, refusal.port, refusal.names_another
        if key in self._first:
            return
        if len(self._first) < MOST:
            self._first[key] = _note(refusal)
        else:
            self._more = True

    def notes(self) -> tuple[str, ...]:
        """Returns a sentence for each host, and what would allow it."""
        rest = ("It tried to reach more hosts that system.network does not list.",)
        return (*self._first.values(), *(rest if self._more else ()))


def _note(refusal: Refusal) -> str:
    where = join_host_port(refusal.host, refusal.port)
    if refusal.names_another:
        return refusal.why
    if refusal.is_allowed:
        return f"{refusal.why} To allow it, the user adds '{where}' to requests.private."
    if is_loopback(refusal.host):
        return f"It asked the proxy for {where}: loopback is reached without a proxy."
    named = f"'{where}'"
    if is_registry(refusal.host, refusal.port):
        named = f"'{PACKAGES}' (all registries) or {named}"
    return (
        f"It tried to reach {where}, which system.network does not list; to allow it, the user "
        f"adds {named} to system.network."
    )
