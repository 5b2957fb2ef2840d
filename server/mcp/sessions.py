"""Sessions: whose request one is, which conversation it belongs to, and with which client.

A process that serves stdio has one. With the older protocols over HTTP it is what the transport
calls one: the SDK gives out its id and answers nobody else under it. Protocol 2026-07-28 knows none
over HTTP: there it is what one client asks for one identity, until it asks nothing for half an
hour. The client's name also decides in which form it is given lists and results.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from server.transport.middleware import Caller
from storage.memory.models import IDLE_SECONDS
from storage.models import Identity

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings.gateway import Results


READ_JSON = (
    "claude-code",  # github.com/anthropics/claude-code/issues/79944, with a schema or without
    "codex-mcp-client",  # openai/codex: codex-rs/protocol/src/models.rs, From<&CallToolResult>
    "opencode",  # github.com/anomalyco/opencode/pull/32074
    "Visual Studio Code*",  # microsoft/vscode: mcpLanguageModelToolContribution.ts, invoke
)
"""Clients that give their model the structured content of a result in place of its text."""

REFUSE_NULLS = (
    "cursor*",  # github.com/cursor/cursor/issues/3540 and 3778: refuses each value of such a union
    "gemini-cli*",  # github.com/google-gemini/gemini-cli/issues/21094: loses all tools by one
)
"""Clients that refuse parameters which may be null besides something else."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs between the lists and results of clients that may call the same tools.

    Attributes:
        results: What calls answer with; auto leaves it to how the tool is listed.
        nulls: Whether the list says which parameters may be null besides something else.
    """

    results: Results = "auto"
    nulls: bool = True


def variant_of(client: str, results: Results) -> Variant:
    """The variant for a client.

    Args:
        client: Its name, as it says it.
        results: What the settings want calls to answer with.
    """
    if results == "auto" and is_one_of(client, READ_JSON):
        results = "text"
    return Variant(results, nulls=not is_one_of(client, REFUSE_NULLS))


def is_one_of(client: str, names: Iterable[str]) -> bool:
    """Whether a client has one of some names, in any case of letters; * and ? are wildcards."""
    return any(fnmatchcase(client.casefold(), name.casefold()) for name in names)


MOST = 1_000
"""Conversations that are remembered; those that were silent longest give way."""

CLIENT_CHARACTERS = 100
HTTP_HEADER = "mcp-session-id"
SSE_PARAMETER = "session_id"


@dataclass(frozen=True, slots=True)
class Principal:
    """As whom a request is answered.

    Attributes:
        identity: Whose context it is about when it does not say.
        bound: Whether it must not say anything else.
        is_delegated: Whether an agent makes it that work was given to: nobody is there to be asked.
    """

    identity: Identity
    bound: bool
    is_delegated: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request belongs to.

    Attributes:
        session_id: Which conversation.
        client: Name of the client, as it says it; empty if it does not.
    """

    session_id: str
    client: str


def client_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Name of the client of a request, as it says it; empty if it does not."""
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name[:CLIENT_CHARACTERS]


def principal_of(ctx: ServerRequestContext[Any, Any], own: Identity) -> Principal:
    """As whom a request is answered: its token's caller, or the server's own unbound identity."""
    caller = caller_of(ctx)
    if caller is None:
        return Principal(own, bound=False)
    is_delegated = bool(caller.session_id)
    return Principal(caller.speaks_for or own, bound=True, is_delegated=is_delegated)


def caller_of(ctx: ServerRequestContext[Any, Any]) -> Caller | None:
    """Who makes a request; None over stdio, and over HTTP without any token."""
    user = ctx.request.scope.get("user") if isinstance(ctx.request, Request) else None
    return user if isinstance(user, Caller) else None


class Sessions:
    """Tells conversations apart.

    Args:
        clock: Seconds that only grow.
        only: The one that every request here belongs to, whoever makes it; empty where several may.

    Attributes:
        own: The one of this process, where there is but one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, only: str = "") -> None:
        self.own = only or uuid.uuid4().hex
        self._is_only = bool(only)
        self._clock = clock
        self._open: OrderedDict[tuple[Identity, str], tuple[str, float]] = OrderedDict()

    def of(self, ctx: ServerRequestContext[Any, Any], identity: Identity) -> Conversation:
        """The conversation of a request that is answered as this identity."""
        client = client_of(ctx)
        if self._is_only or not isinstance(ctx.request, Request):
            return Conversation(self.own, client)
        caller = caller_of(ctx)
        if caller is not None and caller.session_id:
            return Conversation(caller.session_id, client)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return Conversation(self._stateless(identity, client), client)
        given = ctx.request.headers.get(HTTP_HEADER) or ctx.request.query_params.get(SSE_PARAMETER)
        return Conversation(self._named(given or "", identity), client)

    def _named(self, transport_id: str, identity: Identity) -> str:
        """A session of the transport, under a name that opens nothing and is nobody else's."""
        whose = (identity.user_id, identity.device_id, identity.agent_id)
        said = "\0".join((self.own, transport_id, *whose))
        return sha256(said.encode(errors="replace")).hexdigest()[:32]

    def _stateless(self, identity: Identity, client: str) -> str:
        now, key = self._clock(), (identity, client)
        session_id, last = self._open.pop(key, ("", now))
        if not session_id or now - last > IDLE_SECONDS:
            session_id = uuid.uuid4().hex
        self._open[key] = (session_id, now)
        if len(self._open) > MOST:
            self._open.popitem(last=False)
        return session_id
