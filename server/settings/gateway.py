"""What can be set of other servers, of who may call what, and of how tools are found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from server.settings.group import SettingsGroup, expand

Results = Literal["auto", "both", "structured", "text"]
"""What calls answer with."""


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], BeforeValidator(_listed)
]


class ServerSettings(SettingsGroup):
    """Another MCP server, whose tools, resources and prompts are offered here.

    command, args, env, url, headers and token may name variables of the environment: ${NAME}, or
    ${NAME:-default} where one may be missing.

    Attributes:
        command: What starts it, where it speaks over stdio.
        args: Its arguments.
        env: Variables that it is given besides PATH, HOME and their like.
        cwd: Where it is started; by default where Toolcrib was.
        url: Where it listens, where it speaks HTTP.
        transport: How it speaks at its url: auto takes Streamable HTTP and falls back to sse.
        headers: Headers that each request to it carries.
        token: Bearer token for it.
        enabled: Whether it is there at all.
        lazy: Whether it is first started when something of it is used; until then what it offered
            last is shown.
        timeout: Seconds that one call may take.
        start_timeout: Seconds until it must have answered for the first time.
        allow: Only these of its tools, by its own names; * and ? stand for any characters.
        deny: None of these.
        prefix: Whether its tools are listed as server__tool; else under its own names, where no
            other tool goes by them.
        trusted: Whether what it says of its tools is believed, such as that one only reads; else
            each call is judged as one that may do anything.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretStr] = {}
    cwd: Annotated[Path, AfterValidator(expand)] | None = None
    url: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = ""
    transport: Literal["auto", "http", "sse"] = "auto"
    headers: Mapping[str, SecretStr] = {}
    token: SecretStr = SecretStr("")
    enabled: bool = True
    lazy: bool = False
    timeout: float = Field(60.0, gt=0, le=3_600)
    start_timeout: float = Field(30.0, gt=0, le=600)
    allow: Patterns = ()
    deny: Patterns = ()
    prefix: bool = True
    trusted: bool = False

    @model_validator(mode="after")
    def _has_one_address(self) -> ServerSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either command or url")
        return self


class ProfileSettings(SettingsGroup):
    """What a client may find and call, and what it is shown.

    Attributes:
        clients: Names of clients it is for, as they give them; * and ? stand for any characters.
        tokens: Names of tokens in http.tokens it is for.
        allow: Tools it may find and call: names, server:NAME or tag:TAG; * and ? stand for any
            characters; empty means all.
        deny: Tools it may not, whatever is allowed.
        pinned: Names of tools that its list always has.
        token_budget: Tokens that its list may have, at 4 characters each; 0 sets no limit.
        results: What its calls answer with; None leaves it to the setting of that name.
    """

    clients: Patterns = ()
    tokens: Patterns = ()
    allow: Patterns = ()
    deny: Patterns = ()
    pinned: Patterns = ()
    token_budget: int = Field(0, ge=0)
    results: Results | None = None

    @model_validator(mode="after")
    def _is_for_somebody(self) -> ProfileSettings:
        if not (self.clients or self.tokens):
            raise ValueError('needs clients or tokens; clients = "*" is for every client')
        return self


class ToolSearchSettings(SettingsGroup):
    """How tools are found."""

    learn: bool = Field(
        default=True,
        description="Whether search_tools learns which tools are called after it; what it learns "
        "stays on this machine.",
    )
