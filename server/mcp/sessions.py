"""Sessions: identify the caller, conversation and client of a request.

A process that serves stdio has one conversation, or one for each client that attaches to it. With
the older protocols over HTTP it is the transport's session: the SDK issues its id and accepts it
only from the same caller. Protocol 2026-07-28 has no sessions over HTTP: there the client names the
conversation, in a header or in `_meta`. Requests that name none are told apart by identity, client
and address only, until half an hour without requests: such a conversation may be shared by several
clients. The client's name also selects the form of its lists and results.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from server.mcp.elicitation.suspended import SuspendedRequests
from server.transport.attached import AttachedClient
from server.transport.middleware import Caller
from storage.index.bounded import BoundedDict
from storage.models import IDLE_SECONDS, Identity

if TYPE_CHECKING:  # servers of one's own have no settings
    from server.settings.gateway import Results


Changed = Callable[[str], Awaitable[None]]
Context = ServerRequestContext[Any, Any]

READ_JSON = (
    "claude-code",  # github.com/anthropics/claude-code/issues/79944, with a schema or without
    "codex-mcp-client",  # openai/codex: codex-rs/protocol/src/models.rs, From<&CallToolResult>
    "opencode",  # github.com/anomalyco/opencode/pull/32074
    "Visual Studio Code*",  # microsoft/vscode: mcpLanguageModelToolContribution.ts, invoke
)
"""Clients that give their model the structured content of a result instead of its text."""

REFUSE_NULLS = (
    "cursor*",  # github.com/cursor/cursor/issues/3540 and 3778: refuses each value of such a union
    "gemini-cli*",  # github.com/google-gemini/gemini-cli/issues/21094: loses all tools by one
)
"""Clients that reject parameters which may be null or something else."""

DEFER_TOOLS = ("claude-code",)  # code.claude.com/docs/en/mcp: tools wait behind its own search
"""Clients that hide tools from their model, unless a tool's `_meta` says otherwise."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Differences in lists and results between clients that may call the same tools."""

    results: Results = "auto"  # the form of results; auto depends on how the tool is listed
    nulls: bool = True  # whether the list includes unions with null
    hints: bool = False  # whether the list says which tools a client should not hide from its model


@lru_cache(100)
def variant_of(client: str, results: Results) -> Variant:
    """Returns the variant for a client."""
    if results == "auto" and is_one_of(client, READ_JSON):
        results = "text"
    return Variant(
        results, nulls=not is_one_of(client, REFUSE_NULLS), hints=is_one_of(client, DEFER_TOOLS)
    )


def is_one_of(client: str, names: Iterable[str]) -> bool:
    """Returns whether a client has one of some names, ignoring case; * and ? are wildcards."""
    return any(fnmatchcase(client.casefold(), name.casefold()) for name in names)


MOST = 1_000
"""Maximum number of remembered conversations; the least recently active are dropped."""

CLIENT_CHARACTERS = 100
CONVERSATION_HEADER = "toolcrib-conversation"
CONVERSATION_KEYS = ("toolcrib/conversation", "claudecode/sessionId")
"""Keys of `_meta` that name a conversation: for any client, and the one of Claude Code."""

SHARED = "shared-"
"""Beginning of the ids of conversations that several clients may share."""

HTTP_HEADER = "mcp-session-id"
SSE_PARAMETER = "session_id"


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated identity of a request."""

    identity: Identity
    bound: bool  # whether the request may name no other identity
    # Whether a delegated agent makes the request, so that no user can be asked.
    is_delegated: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation of a request."""

    session_id: str
    client: str


def may_be_shared(session_id: str) -> bool:
    """Returns whether several clients that cannot be told apart may share a conversation."""
    return session_id.startswith(SHARED)


def client_of(ctx: Context) -> str:
    """Returns the client's name, as it reports it; empty if it does not."""
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name[:CLIENT_CHARACTERS]


def principal_of(ctx: Context, own: Identity) -> Principal:
    """Returns the identity of a request: its token's caller, or the server's own, unbound."""
    caller = caller_of(ctx)
    if caller is None:
        return Principal(own, bound=False)
    is_delegated = bool(caller.session_id)
    return Principal(caller.speaks_for or own, bound=True, is_delegated=is_delegated)


def caller_of(ctx: Context) -> Caller | None:
    """Returns the caller of a request; None over stdio, and over HTTP without a token."""
    user = ctx.request.scope.get("user") if isinstance(ctx.request, Request) else None
    return user if isinstance(user, Caller) else None


class Sessions:
    """Assigns requests to conversations, or all of them to `only` one."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, only: str = "", hosts: bool = False
    ) -> None:
        self.own = only or uuid.uuid4().hex  # the conversation of this process, if it has only one
        self.shared = uuid.uuid4().hex if hosts else self.own  # of servers that all share
        self.attaching = chain([self.own], iter(lambda: uuid.uuid4().hex, ""))  # of clients
        self._is_only = bool(only)
        self._clock = clock
        self._open: BoundedDict[tuple[Identity, str, str], tuple[str, float]] = BoundedDict(MOST)

    def of(self, ctx: Context, identity: Identity) -> Conversation:
        """Returns the conversation of a request with this identity."""
        client = client_of(ctx)
        if isinstance(ctx.request, AttachedClient):
            return Conversation(ctx.request.session_id, client)
        if self._is_only or not isinstance(ctx.request, Request):
            return Conversation(self.own, client)
        caller = caller_of(ctx)
        if caller is not None and caller.session_id:
            return Conversation(caller.session_id, client)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            if named := _named_conversation(ctx, ctx.request):
                return Conversation(self._derived_id(f"{client}\0{named}", identity), client)
            host = ctx.request.client.host if ctx.request.client else ""
            return Conversation(self._stateless(identity, client, host), client)
        given = ctx.request.headers.get(HTTP_HEADER) or ctx.request.query_params.get(SSE_PARAMETER)
        return Conversation(self._derived_id(given or "", identity), client)

    def _derived_id(self, transport_id: str, identity: Identity) -> str:
        """Derives a session name that grants no access and is unique to the identity."""
        whose = (identity.user_id, identity.device_id, identity.agent_id)
        said = "\0".join((self.own, transport_id, *whose))
        return sha256(said.encode(errors="replace")).hexdigest()[:32]

    def _stateless(self, identity: Identity, client: str, host: str) -> str:
        now, key = self._clock(), (identity, client, host)
        session_id, last = self._open.pop(key, ("", now))
        if not session_id or now - last > IDLE_SECONDS:
            session_id = SHARED + uuid.uuid4().hex
        self._open[key] = (session_id, now)
        return session_id


def _named_conversation(ctx: Context, request: Request) -> str:
    """Returns the client's name for its conversation; empty if it gives none."""
    meta = ctx.meta or {}
    given = (request.headers.get(CONVERSATION_HEADER), *map(meta.get, CONVERSATION_KEYS))
    return next((each for each in given if isinstance(each, str) and each.strip()), "")


FIRST_WORD = 1.0
"""Seconds to wait for a client that starts together with this process."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can be asked; declared on its behalf to other servers."""

    elicitation: bool = False
    sampling: bool = False
    sampling_tools: bool = False
    roots: bool = False
    handshake: bool = False  # whether it can be asked during a call (protocols until 2025-11-25)

    @classmethod
    def of(cls, session: ServerSession) -> Abilities:
        """Returns the abilities of the client of a session."""
        said = session.client_capabilities or types.ClientCapabilities()
        return cls(
            elicitation=said.elicitation is not None,
            sampling=said.sampling is not None,
            sampling_tools=said.sampling is not None and said.sampling.tools is not None,
            roots=said.roots is not None,
            handshake=session.protocol_version not in MODERN_PROTOCOL_VERSIONS,
        )


@dataclass(slots=True)
class KnownClient:
    """The client of a conversation."""

    abilities: Abilities
    # Its session, for messages outside of a request; None if it cannot be reached.
    session: ServerSession | None = None
    # The minimum log level that it wants; None if it set none.
    level: types.LoggingLevel | None = None


class KnownClients:
    """Remembers clients; forgets the least recently active first."""

    def __init__(self) -> None:
        self._known: BoundedDict[str, KnownClient] = BoundedDict(MOST)
        self._first: dict[str, anyio.Event] = {}

    def get(self, session_id: str) -> KnownClient | None:
        """Returns the client of a conversation; None if it has not sent anything yet."""
        return self._known.get(session_id)

    def note(self, session_id: str, ctx: Context) -> KnownClient:
        """Records the client of a request."""
        abilities = Abilities.of(ctx.session)
        found = self._known.get(session_id)
        if found is None:
            found = self._known[session_id] = KnownClient(abilities)
        self._known.move_to_end(session_id)
        found.abilities = abilities
        found.session = ctx.session if abilities.handshake else None
        if (waiting := self._first.pop(session_id, None)) is not None:
            waiting.set()
        return found

    def forget(self, session_id: str) -> None:
        """Forgets the client of a conversation that has ended."""
        self._known.pop(session_id, None)

    async def wait_for(self, session_id: str) -> None:
        """Waits for the first message of a conversation's client, for up to a second."""
        if session_id not in self._known:
            with anyio.move_on_after(FIRST_WORD):
                await self._first.setdefault(session_id, anyio.Event()).wait()


FIRST_MESSAGES = frozenset({"notifications/initialized", "server/discover"})
"""Messages that announce a client's capabilities before its first call."""


class RootsListener(Protocol):
    """Receives notifications that a client's directories changed."""

    async def roots_changed(self) -> None:
        """Forwards the change."""


class ClientRequests:
    """The requests of all clients, and the client of each conversation."""

    def __init__(
        self, sessions: Sessions, identity: Identity, *, is_delegated: bool = False
    ) -> None:
        self.sessions = sessions
        self.identity = identity  # the identity of requests without a token
        # Whether a delegated agent makes them, so that none may name another identity.
        self.is_delegated = is_delegated
        self.suspended = SuspendedRequests()
        self.clients = KnownClients()
        self.changed: Changed = _ignore_change
        self.ended: Callable[[str], None] = _ignore_end  # receives conversations that have ended
        self._listeners: defaultdict[str, WeakSet[RootsListener]] = defaultdict(WeakSet)

    def session_of(self, ctx: Context) -> str:
        """Returns the conversation of a request."""
        return self.sessions.of(ctx, self.principal_of(ctx).identity).session_id

    def principal_of(self, ctx: Context) -> Principal:
        """Returns the identity of a request."""
        found = principal_of(ctx, self.identity)
        return replace(found, bound=True, is_delegated=True) if self.is_delegated else found

    def client_of(self, ctx: Context) -> KnownClient:
        """Returns the client of a request, and records it."""
        return self.clients.note(self.session_of(ctx), ctx)

    def listen(self, session_id: str, listener: RootsListener) -> None:
        """Notifies a listener, while it exists, when a client's directories change."""
        self._listeners[session_id].add(listener)

    def register(self, server: Server[Any]) -> None:
        """Registers handlers for what clients report about themselves."""
        server.middleware.append(self._note_early)
        server.middleware.append(self._note_end)
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def _note_early(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Records the client of this process as early as possible."""
        result = await call_next(ctx)
        if ctx.method in FIRST_MESSAGES and not isinstance(ctx.request, Request):
            self.client_of(ctx)
        return result

    async def _note_end(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Ends a conversation when its transport's session ends, by DELETE or a closed stream.

        The request that opens a session does not have its id yet.
        """
        is_session = isinstance(ctx.request, Request) and ctx.method != "initialize"
        if is_session and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            connection = ctx.session._connection  # noqa: SLF001  # the only way to what outlives a request
            if _ENDS not in connection.state:
                connection.state[_ENDS] = True
                connection.exit_stack.callback(self.end, self.session_of(ctx))
        return await call_next(ctx)

    def end(self, session_id: str) -> None:
        """Ends a conversation with what only it uses."""
        self.clients.forget(session_id)
        self.ended(session_id)

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Records the client's log level; other servers get it with the next call."""
        self.client_of(ctx).level = params.level
        return types.EmptyResult()

    async def _roots_changed(self, ctx: Context, _params: types.NotificationParams) -> None:
        for each in tuple(self._listeners.get(self.session_of(ctx), ())):
            await each.roots_changed()


_ENDS = "toolcrib/ends"  # key of a connection's state: its end is noted


def _ignore_end(_session_id: str) -> None:
    pass


async def _ignore_change(_uri: str) -> None:
    await anyio.lowlevel.checkpoint()
