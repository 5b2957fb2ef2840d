"""Profiles: what single clients may find and call, and what they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.context import ServerRequestContext

from server.mcp.sessions import caller_of, client_of, is_one_of
from server.settings_error import SettingsError
from tools.core.toolset import ToolSet

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings import Settings
    from server.settings.gateway import ProfileSettings, Results


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds for one client.

    Attributes:
        tool_set: The tools that it may find and call.
        pinned: Names of tools that its list always has.
        token_budget: Tokens that its list may have, at 4 characters each; 0 sets no limit.
        results: What its calls answer with; None leaves it to the settings.
    """

    tool_set: ToolSet
    pinned: tuple[str, ...] = ()
    token_budget: int = 0
    results: Results | None = None


class Profiles:
    """Tells which profile a request has: one at most, and the same one for the same caller.

    Args:
        settings: Those of the settings.
        own: The tools of whoever asks here, where that is an agent that work was given to; it has
            no other profile.
    """

    def __init__(self, settings: Mapping[str, ProfileSettings], own: ToolSet | None = None) -> None:
        self._settings = settings
        self._own = own
        self._profiles = {
            name: Profile(
                ToolSet(name, each.allow, each.deny), each.pinned, each.token_budget, each.results
            )
            for name, each in settings.items()
        }

    def of(self, ctx: ServerRequestContext[Any, Any]) -> Profile | None:
        """The profile of a request; None where none holds."""
        caller = caller_of(ctx)
        own = self._own or (None if caller is None else caller.tool_set)
        if own is not None:
            return Profile(own)
        return self.choose("" if caller is None else caller.username, client_of(ctx))

    def choose(self, token: str, client: str) -> Profile | None:
        """The first profile, in the order of the settings, that names the token.

        Where none does, the first one that the client's name fits, in any case of letters: a token
        is proof, and a name only what a client says of itself.

        Args:
            token: Name of the token that a request came with; empty without one.
            client: Name of the client, as it says it; empty if it does not.
        """
        by_token = (name for name, each in self._settings.items() if token in each.tokens)
        name = next(by_token, None) or next(self._fitting(client), None)
        return None if name is None else self._profiles[name]

    def _fitting(self, client: str) -> Iterator[str]:
        for name, each in self._settings.items():
            if is_one_of(client, each.clients):
                yield name


def check_profiles(settings: Settings) -> None:
    """Refuses names of tokens and servers in profiles that the settings have nowhere."""
    for name, each in settings.profiles.items():
        servers = [_server(pattern) for pattern in (*each.allow, *each.deny)]
        _check_known(f"profiles.{name}.tokens", each.tokens, settings.http.tokens, "http.tokens")
        _check_known(f"profiles.{name}", filter(None, servers), settings.servers, "servers")


def _server(pattern: str) -> str:
    kind, _, name = pattern.partition(":")
    return name if kind == "server" and not {"*", "?", "["}.intersection(name) else ""


def _check_known(setting: str, named: Iterable[str], known: Collection[str], table: str) -> None:
    for name in named:
        if name not in known:
            there = f"there are {', '.join(sorted(known))}" if known else "there are none"
            raise SettingsError(f"{setting}: {name!r} is not one of [{table}]; {there}.")
