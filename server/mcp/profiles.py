"""Profiles: which tools single clients may use, and which are listed for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.context import ServerRequestContext

from server.mcp.sessions import caller_of, client_of, is_one_of
from server.settings_file import SettingsError
from tools.core.toolset import CallLimits, ToolSet

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings import Settings
    from server.settings.gateway import ProfileSettings, Results, ServerSettings


def limits_of(table: str, settings: ProfileSettings | ServerSettings) -> CallLimits | None:
    """Returns the limits on calls in a table of the settings; None without any."""
    if not (settings.per_minute or settings.per_conversation):
        return None
    return CallLimits(
        table, per_minute=settings.per_minute, per_conversation=settings.per_conversation
    )


@dataclass(frozen=True, slots=True)
class Profile:
    """The restrictions of one client."""

    tool_set: ToolSet
    pinned: tuple[str, ...] = ()
    token_budget: int = 0  # of its list, at 4 characters each; 0 sets no limit
    results: Results | None = None  # None uses the setting


class Profiles:
    """Selects a request's profile: at most one, and always the same for a caller."""

    def __init__(
        self, current: Callable[[], Mapping[str, ProfileSettings]], own: ToolSet | None = None
    ) -> None:
        self._current = current
        self._own = own
        self._settings: Mapping[str, ProfileSettings] = {}
        self._profiles: Mapping[str, Profile] = {}

    def of(self, ctx: ServerRequestContext[Any, Any]) -> Profile | None:
        """Returns the profile of a request; None if none applies."""
        caller = caller_of(ctx)
        own = self._own or (None if caller is None else caller.tool_set)
        if own is not None:
            return Profile(own)
        return self.choose("" if caller is None else caller.username, client_of(ctx))

    def admits_server(self, ctx: ServerRequestContext[Any, Any], server: str) -> bool:
        """Returns whether the client of a request may see another server."""
        profile = self.of(ctx)
        return profile is None or profile.tool_set.admits_server(server)

    def choose(self, token: str, client: str) -> Profile | None:
        """Returns the first profile, in the order of the settings, that names the token.

        Otherwise returns the first one that matches the client's name, ignoring case: a token is
        proof, a name only a claim.
        """
        settings = self._current()
        if settings is not self._settings:
            self._settings, self._profiles = settings, _make_profiles(settings)
        by_token = (name for name, each in settings.items() if token in each.tokens)
        by_client = (name for name, each in settings.items() if is_one_of(client, each.clients))
        name = next(by_token, None) or next(by_client, None)
        return None if name is None else self._profiles[name]


def _make_profiles(settings: Mapping[str, ProfileSettings]) -> dict[str, Profile]:
    return {
        name: Profile(
            ToolSet(
                name,
                each.allow,
                each.deny,
                limits=limits_of(f"profiles.{name}", each),
                result_tokens=each.result_tokens,
            ),
            each.pinned,
            each.token_budget,
            each.results,
        )
        for name, each in settings.items()
    }


def check_profiles(settings: Settings) -> None:
    """Rejects tokens and servers in profiles that are not in the settings."""
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
            there = f"known are {', '.join(sorted(known))}" if known else "none are set"
            raise SettingsError(f"{setting}: {name!r} is not one of [{table}]; {there}.")
