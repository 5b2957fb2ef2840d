"""Settings of other servers, HTTP APIs and agents, of client profiles and tool search."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from server.settings.group import Names, SettingsGroup, as_tuple, expand
from server.settings.safety import HostsPort
from tools.sandbox.processes.models import SandboxMode

Results = Literal["auto", "both", "structured", "text"]
"""Forms of results."""


Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], BeforeValidator(as_tuple)
]


class ArgumentSettings(SettingsGroup):
    """Limits what a model may say in one argument of another server's tool."""

    value: Any = None  # what is always sent; the argument is hidden
    default: Any = None  # what is sent if the model leaves it out
    hidden: bool = False  # whether the model neither sees nor sets it

    @model_validator(mode="after")
    def _says_one_thing(self) -> ArgumentSettings:
        if (self.value is not None) + (self.default is not None) + self.hidden != 1:
            raise ValueError("needs one of value, default and hidden = true")
        return self


class AnnotationSettings(SettingsGroup):
    """Claims about a tool that replace those of its server; they are believed."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class OverrideSettings(SettingsGroup):
    """What replaces a part of the definition of another server's tool."""

    title: str = ""
    description: str = Field("", max_length=20_000)
    annotations: AnnotationSettings = AnnotationSettings()
    arguments: Mapping[str, ArgumentSettings] = {}  # by name
    # seconds that answers are kept if it only reads; None uses that of the server
    cache_seconds: float | None = Field(None, ge=0, le=86_400)


class OAuthSettings(SettingsGroup):
    """How to sign in to a server; by default Toolcrib registers itself there."""

    client_id: str = ""  # of a client that you registered at its authorization server
    client_secret: SecretStr = SecretStr("")  # its secret, if it has one
    # the https URL of a client id metadata document, used where the server supports it
    client_metadata_url: Annotated[str, Field(pattern=r"^(https://[^\s/]+/\S+)?$")] = ""
    scopes: Names = ()  # what to ask for; by default what the server names
    # port of the redirect to this machine, if it is registered; 0 picks a free one
    redirect_port: int = Field(0, ge=0, le=65_535)


class ServerSettings(SettingsGroup):
    """Another MCP server, whose tools, resources and prompts are offered here.

    command, args, env, url, headers and token may refer to values elsewhere: ${NAME} or
    ${env:NAME}, ${NAME:-default}, ${file:PATH}, ${keyring:NAME}.
    """

    command: str = ""  # the command that starts it, for stdio
    args: tuple[str, ...] = ()  # its arguments
    # environment variables in addition to PATH, HOME and the like
    env: Mapping[str, SecretStr] = {}
    # its working directory; that of Toolcrib by default
    cwd: Annotated[Path, AfterValidator(expand)] | None = None
    # whether it runs confined, as programs do; it then sees only the system, its own program, a
    # home of its own, and the following
    sandbox: bool = False
    readable: tuple[Annotated[Path, AfterValidator(expand)], ...] = ()  # what it may read and run
    writable: tuple[Annotated[Path, AfterValidator(expand)], ...] = ()  # what it may change too
    # hosts that it may reach, as host:port or *.host:port, or packages for the registries of
    # packages
    hosts: tuple[HostsPort, ...] = ()
    # its URL, for HTTP
    url: Annotated[str, Field(pattern=r"^(https?://\S+|\$\{[^}]+\}\S*)?$")] = ""
    # the transport at its url: auto tries Streamable HTTP and falls back to sse
    transport: Literal["auto", "http", "sse"] = "auto"
    headers: Mapping[str, SecretStr] = {}  # headers of each request to it
    token: SecretStr = SecretStr("")  # its bearer token
    oauth: OAuthSettings = OAuthSettings()  # how `servers login` signs in to it
    enabled: bool = True  # whether it is enabled
    lazy: bool = False  # whether it starts on first use; until then its last listing is shown
    timeout: float = Field(60.0, gt=0, le=3_600)  # seconds for one call
    start_timeout: float = Field(30.0, gt=0, le=600)  # seconds for its first answer
    # who shares its state: one connection for all conversations, one for each conversation, or
    # one for each call; unknown conversations are never mistaken for one
    sessions: Literal["shared", "per_conversation", "per_call"] = "per_conversation"
    idle_timeout: float = Field(1_800.0, ge=1, le=86_400)  # seconds until an unused one is closed
    max_connections: int = Field(50, ge=1, le=1_000)  # connections of conversations and calls
    allow: Patterns = ()  # only these of its tools, by its own names; * and ? are wildcards
    deny: Patterns = ()  # none of these tools
    # whether its tools are listed as server__tool; otherwise under their own names, unless
    # another tool has the name
    prefix: bool = True
    # whether claims about its tools are believed, such as that one only reads; otherwise
    # each call is judged as one that may do anything
    trusted: bool = False
    # what replaces parts of its definitions, by its own names for tools
    tools: Mapping[str, OverrideSettings] = {}
    per_minute: int = Field(0, ge=0)  # maximum calls of its tools in a minute; 0 sets no limit
    per_conversation: int = Field(0, ge=0)  # maximum calls in one conversation; 0 sets no limit
    # seconds that answers of its tools that only read are kept
    cache_seconds: float = Field(0.0, ge=0, le=86_400)

    @model_validator(mode="after")
    def _has_one_address(self) -> ServerSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either command or url")
        if self.sandbox and self.url:
            raise ValueError("has sandbox, which is for a command: what runs elsewhere is not ours")
        if not self.sandbox and (self.readable or self.writable or self.hosts):
            raise ValueError("has readable, writable or hosts, which need sandbox = true")
        return self


class ProfileSettings(SettingsGroup):
    """The tools that a client may find and call, and the form of its lists."""

    clients: Patterns = ()  # names of clients, as they report them; * and ? are wildcards
    tokens: Patterns = ()  # names of tokens in http.tokens
    # tools it may find and call: names, server:NAME or tag:TAG; * and ? are wildcards;
    # empty allows all
    allow: Patterns = ()
    deny: Patterns = ()  # tools it may not call, even if allowed
    pinned: Patterns = ()  # names of tools that are always in its list
    # maximum tokens of its list, at 4 characters each; 0 sets no limit
    token_budget: int = Field(0, ge=0)
    results: Results | None = None  # the form of its results; None uses the setting of that name
    # maximum calls in a minute, of all its clients together; 0 sets no limit
    per_minute: int = Field(0, ge=0)
    per_conversation: int = Field(0, ge=0)  # maximum calls in one conversation; 0 sets no limit
    # maximum tokens of one result, instead of limits.result_tokens; 0 sets no limit
    result_tokens: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _is_for_somebody(self) -> ProfileSettings:
        if not (self.clients or self.tokens):
            raise ValueError('needs clients or tokens; clients = "*" is for every client')
        return self


class ToolSearchSettings(SettingsGroup):
    """Settings of tool search."""

    learn: bool = Field(
        default=True,
        description="Whether search_tools learns which tools are called after it; what it learns "
        "stays on this machine.",
    )


_ADDRESS = ("http://", "https://")


_Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], BeforeValidator(as_tuple)
]


class OpenApiSettings(SettingsGroup):
    """An HTTP API whose operations become tools."""

    # its OpenAPI 3 description: a file, or a URL that is fetched once
    description: str = Field(min_length=1)
    # the base URL of the API, if it differs from the description's
    url: Annotated[str, Field(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    # only these operations: operationIds, tag:TAG, GET,HEAD or GET /pets/*; * and ? are
    # wildcards
    include: _Patterns = ()
    exclude: _Patterns = ()  # none of these operations
    secret: str = ""  # the name of a secret in [secrets.NAME] for its requests
    # whether its texts are believed; otherwise tools whose texts hide something or mention
    # another tool are put in quarantine
    trusted: bool = False
    enabled: bool = True  # whether it is enabled

    @field_validator("description")
    @classmethod
    def _is_whole(cls, description: str) -> str:
        return description if description.lower().startswith(_ADDRESS) else str(_path(description))

    @property
    def file(self) -> Path | None:
        """The description file; None if the description is a URL."""
        is_address = self.description.lower().startswith(_ADDRESS)
        return None if is_address else Path(self.description)


def check_apis(
    apis: Mapping[str, OpenApiSettings], info: ValidationInfo
) -> Mapping[str, OpenApiSettings]:
    """Checks that names differ from those of servers, and that secrets exist."""
    servers, secrets = info.data.get("servers", {}), info.data.get("secrets", {})
    for name, api in apis.items():
        if name in servers:
            raise ValueError(f"has {name!r}, which is also the name of a server")
        if api.secret and not (api.secret in secrets and secrets[api.secret].hosts):
            raise ValueError(
                f"{name!r} names the secret {api.secret!r}, but there is no [secrets.{api.secret}]"
                " with hosts"
            )
    return apis


def _path(text: str) -> Path:
    path = Path(os.path.normpath(expand(Path(text))))
    if not path.is_file():
        raise ValueError(f"names {text!r}, which is not a file")
    return path


def _check_home(path: Path) -> Path:
    found = expand(path)
    if not found.is_relative_to(Path.home()):
        raise ValueError(f"names {str(path)!r}, which is not in the home directory")
    return found


_Words = Annotated[tuple[str, ...], Field(max_length=100)]


class AgentSettings(SettingsGroup):
    """An agent: a preset, a command, or a tool of another server."""

    # claude-code, codex, gemini or opencode: predefined command and requirements
    preset: Literal["", "claude-code", "codex", "gemini", "opencode"] = ""
    # the program and its arguments. {prompt} is replaced by the task, which is otherwise
    # its standard input; {url} and {mcp_config} by its Toolcrib, {cost} by its budget
    command: _Words = ()
    args: _Words = ()  # more arguments, for a preset
    # the path of the answer in its JSON or JSON lines output, such as result or item.text;
    # empty if the whole output is the answer
    answer: str = ""
    cost: str = ""  # the path of its cost in US dollars, likewise
    session: str = ""  # the path of its session id, likewise
    server: str = ""  # name of a server in [servers.NAME], instead of a command
    tool: str = ""  # the tool of that server that takes the task
    parameter: str = "prompt"  # the parameter of that tool
    description: str = ""  # what it is good at, for choosing an agent
    capabilities: tuple[str, ...] = ()  # its capabilities, in words
    timeout: float = Field(600.0, ge=1, le=3_600)  # seconds for one task
    # US dollars for one task, if the agent reports its cost; 0 sets no limit
    max_cost: float = Field(0.0, ge=0, le=10_000)
    environment: Names = ()  # environment variables of the server to pass on, such as its key
    hosts: tuple[HostsPort, ...] = ()  # hosts that it may reach, as host:port or *.host:port
    # files and directories outside the root that it may read and run
    readable: tuple[Annotated[Path, AfterValidator(expand)], ...] = ()
    # files of your home to copy into its private one, such as ~/.codex/auth.json
    home: tuple[Annotated[Path, AfterValidator(_check_home)], ...] = ()
    sandbox: SandboxMode | None = None  # overrides system.sandbox for this agent; None keeps it
    worktree: bool = False  # whether it works in its own git worktree instead of the root
    # tools of Toolcrib that it may call, as in a profile; empty allows all tools of its
    # caller
    allow: Patterns = ()
    deny: Patterns = ()  # tools that it may not call, even if allowed
    enabled: bool = True  # whether it is enabled

    @model_validator(mode="after")
    def _is_one_kind(self) -> AgentSettings:
        if (bool(self.preset) + bool(self.command) + bool(self.server)) != 1:
            raise ValueError("needs one of preset, command and server")
        if bool(self.server) != bool(self.tool):
            raise ValueError("needs tool with server, and server with tool")
        if self.args and not self.preset:
            raise ValueError("has args without a preset; write them into command")
        return self


class DelegationSettings(SettingsGroup):
    """Limits on a chain of delegations, across all processes."""

    depth: int = Field(
        2,
        ge=1,
        le=8,
        description="Agents that may stand one behind the other: with 1 no agent can delegate.",
    )
    count: int = Field(
        20, ge=1, le=1_000, description="Delegations that one may lead to, itself included."
    )
    seconds: float = Field(
        3_600.0,
        ge=1,
        le=86_400,
        description="Seconds that they may take together, side by side or not.",
    )
    cost: float = Field(
        10.0,
        ge=0,
        le=100_000,
        description="US dollars that they may cost together, where the agents tell their cost; 0 "
        "sets no limit.",
    )


def check_agents(
    agents: Mapping[str, AgentSettings], info: ValidationInfo
) -> Mapping[str, AgentSettings]:
    """Checks that the servers of agents exist."""
    for name, each in agents.items():
        if each.server and each.server not in info.data.get("servers", {}):
            raise ValueError(
                f"{name!r} names the server {each.server!r}, but there is no"
                f" [servers.{each.server}]"
            )
    return agents
