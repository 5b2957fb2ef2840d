"""Settings of other servers, client profiles and tool search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from server.settings.group import SettingsGroup, expand

Results = Literal["auto", "both", "structured", "text"]
"""Forms of results."""


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], BeforeValidator(_as_tuple)
]


class ServerSettings(SettingsGroup):
    """Another MCP server, whose tools, resources and prompts are offered here.

    command, args, env, url, headers and token may refer to environment variables as ${NAME}, or
    ${NAME:-default} for optional ones.

    Attributes:
        command: The command that starts it, for stdio.
        args: Its arguments.
        env: Environment variables in addition to PATH, HOME and the like.
        cwd: Its working directory; that of Toolcrib by default.
        url: Its URL, for HTTP.
        transport: The transport at its url: auto tries Streamable HTTP and falls back to sse.
        headers: Headers of each request to it.
        token: Its bearer token.
        enabled: Whether it is enabled.
        lazy: Whether it starts on first use; until then its last listing is shown.
        timeout: Seconds for one call.
        start_timeout: Seconds for its first answer.
        allow: Only these of its tools, by its own names; * and ? are wildcards.
        deny: None of these tools.
        prefix: Whether its tools are listed as server__tool; otherwise under their own names,
         unless another tool has the name.
        trusted: Whether claims about its tools are believed, such as that one only reads;
         otherwise each call is judged as one that may do anything.
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
    """The tools that a client may find and call, and the form of its lists.

    Attributes:
        clients: Names of clients, as they report them; * and ? are wildcards.
        tokens: Names of tokens in http.tokens.
        allow: Tools it may find and call: names, server:NAME or tag:TAG; * and ? are wildcards;
         empty allows all.
        deny: Tools it may not call, even if allowed.
        pinned: Names of tools that are always in its list.
        token_budget: Maximum tokens of its list, at 4 characters each; 0 sets no limit.
        results: The form of its results; None uses the setting of that name.
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
    """Settings of tool search."""

    learn: bool = Field(
        default=True,
        description="Whether search_tools learns which tools are called after it; what it learns "
        "stays on this machine.",
    )
