"""Settings of safety: policy, programs, requests, web search, approvals, audit, secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from server.settings.group import Names, SettingsGroup, as_tuple, expand, split_commas
from tools.sandbox.processes.models import SandboxMode

if TYPE_CHECKING:
    from tools.sandbox.secrets.secrets import Origin, Secret


def _check_rule(text: str) -> str:
    from tools.policy.rules import Rule  # only where rules are written

    Rule.parse(text)
    return text


_Rules = Annotated[
    tuple[Annotated[str, AfterValidator(_check_rule)], ...], BeforeValidator(split_commas)
]


def _check_host_port(text: str) -> str:
    from tools.core.errors import InvalidArgumentsError  # only where one is written
    from tools.sandbox.web.hosts import host_and_port

    try:
        host_and_port(text)
    except InvalidArgumentsError as error:
        raise ValueError(f"names {text!r}: {error.message} Write host:port.") from None
    return text


def _check_hosts_port(text: str) -> str:
    if text != "packages":
        _check_host_port(text.removeprefix("*."))
    return text


_HostPort = Annotated[str, AfterValidator(_check_host_port)]
HostsPort = Annotated[str, AfterValidator(_check_hosts_port)]


class PolicySettings(SettingsGroup):
    """The policy: calls that run, that ask the user, and that never run."""

    profile: Literal["read-only", "cautious", "standard", "trusting"] = Field(
        "standard",
        description="What applies if no rule matches: read-only, cautious (files are read and "
        "written, programs and requests ask), standard (likewise, but programs run if they are "
        "confined and have no network) or trusting (confined programs and requests run).",
    )
    allow: _Rules = Field(
        (),
        description="Rules for calls that run without asking, such as bash(git status *). In the "
        "environment a list is separated by commas (those in parentheses are part of a rule), or a "
        "JSON array.",
    )
    ask: _Rules = Field((), description="Rules for calls that a person is asked about.")
    deny: _Rules = Field(
        (), description="Rules for calls that never run; they override all others."
    )


class SystemSettings(SettingsGroup):
    """The confinement of programs that agents start."""

    sandbox: SandboxMode = Field(
        SandboxMode.PREFERRED,
        description="If no confinement works, required runs nothing, and preferred runs programs "
        "unconfined and says so; off confines nothing. In every case programs gain no privileges "
        "(no sudo), and end with everything that they started.",
    )
    network: Annotated[tuple[HostsPort, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Hosts that programs may reach, each as host:port (*.host:port for all its "
        "subdomains), or packages for the registries of packages; none by default. A host of the "
        "server's own loopback or network is needed in requests.private too.",
    )
    environment: Names = Field(
        (), description="More variables of the server's environment that are passed to programs."
    )
    readable: Annotated[tuple[Path, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Files and directories outside the root that programs may read and run, such "
        "as ~/.nvm.",
    )
    cpu_seconds: int = Field(
        600, ge=0, description="Seconds of processor time for one process; 0 sets no limit."
    )
    memory_mb: int | None = Field(
        None,
        ge=0,
        description="Megabytes of memory that a program and all that it starts may use together; "
        "half of the machine's by default; 0 sets no limit.",
    )
    processes: int = Field(
        1_024,
        ge=0,
        description="Processes and threads that a program and all that it starts may have at one "
        "time; 0 sets no limit.",
    )
    file_mb: int = Field(
        4_096, ge=0, description="Megabytes that a program may write to one file; 0 sets no limit."
    )


class UndoSettings(SettingsGroup):
    """Undo of file changes, stored in <data_dir>/changes.db."""

    enabled: bool = Field(
        default=True,
        description="Whether what file tools and programs change is kept, to be undone.",
    )
    keep_mb: int = Field(
        500, ge=10, description="Megabytes that it may take; the oldest changes are removed first."
    )
    keep_days: int = Field(30, ge=1, description="Days after which a change is removed.")
    file_mb: int = Field(
        10,
        ge=10,  # the largest file that can be edited
        le=50,
        description="Megabytes of the largest file that is kept when a file tool replaces it.",
    )


class RequestSettings(SettingsGroup):
    """Requests that tools make."""

    private: Annotated[tuple[_HostPort, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Private addresses that requests may reach, each as the exact host:port, such "
        "as localhost:8000.",
    )
    proxy: Annotated[str, Field(pattern=r"^(https?://\S+|\$\{[^}]+\})?$")] = Field(
        "",
        description="Proxy for requests, except those of ddgs; the proxy variables of the "
        "environment are not used.",
    )
    timeout: float = Field(
        30.0, gt=0, le=600, description="Seconds that one request may take, including redirects."
    )
    max_mb: int = Field(
        10,
        ge=1,
        le=100,
        description="Megabytes of one response, compressed and uncompressed, 1 to 100.",
    )


class WebSearchSettings(SettingsGroup):
    """The search engine for web_search."""

    provider: Literal["ddgs", "searxng", "brave"] = Field(
        "ddgs",
        description="ddgs queries public engines as a browser does; searxng, your own instance; "
        "brave, the Brave Search API.",
    )
    engines: Names = Field(
        ("duckduckgo", "brave", "mojeek"),
        description="Engines that ddgs tries in this order until one answers.",
    )
    url: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = Field(
        "", description="URL of the SearXNG instance, or another URL of Brave's API."
    )
    api_key: SecretStr = Field(SecretStr(""), description="Key of the Brave Search API.")
    per_minute: int = Field(20, ge=1, le=1_000, description="Most searches in a minute, 1 to 1000.")

    @model_validator(mode="after")
    def _needs(self) -> WebSearchSettings:
        if self.provider == "searxng" and not self.url:
            raise ValueError("provider searxng needs url")
        if self.provider == "brave" and not self.api_key.get_secret_value():
            raise ValueError("provider brave needs api_key")
        return self


class ApprovalSettings(SettingsGroup):
    """Timeouts of approvals."""

    wait_seconds: float = Field(
        50.0,
        ge=0,
        le=600,
        description="Seconds that a call waits for an answer while the command toolcrib approvals "
        "is open.",
    )
    expire_seconds: int = Field(
        600,
        ge=10,
        le=86_400,
        description="Seconds until an approval that is unanswered or unused expires.",
    )
    grant_seconds: int = Field(
        3_600, ge=60, le=2_592_000, description='Seconds that "for a while" lasts.'
    )


class AuditSettings(SettingsGroup):
    """The audit log, <data_dir>/audit/calls.jsonl."""

    max_bytes: int = Field(
        10_000_000,
        ge=100_000,
        description="Bytes after which the audit log is rotated, at least 100000.",
    )
    backups: int = Field(20, ge=1, le=1_000, description="Rotated audit logs to keep, 1 to 1000.")


AUTHORIZATION = "Authorization"
PLAIN_FORM = "{secret}"


_Variable = Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,127})?$")]


class SecretSettings(SettingsGroup):
    """A secret that calls name; its value is never in a call, a result or a record."""

    env: _Variable = ""  # the environment variable of the server that contains it
    # the file that contains it, readable by its owner alone
    file: Annotated[Path, AfterValidator(expand)] | None = None
    # its entry in the keyring, as service/username, or the name of `toolcrib secret set`
    keyring: Annotated[str, Field(pattern=r"^([^/]+/.+|[a-z0-9_-]{1,64})?$")] = ""
    # hosts whose requests may use it, each as host, host:port or *.host
    hosts: Annotated[tuple[str, ...], BeforeValidator(split_commas)] = ()
    # the header that carries it, Authorization by default
    header: Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]*$")] = ""
    # the query parameter that carries it, instead of a header
    query: Annotated[str, Field(max_length=128)] = ""
    # the sent text with {secret} or {base64} for the value: "Bearer {secret}" by default in
    # Authorization, otherwise "{secret}"
    format: Annotated[
        str, Field(pattern=r"^([\x20-\x7a|~]*\{(secret|base64)\}[\x20-\x7a|~]*)?$", max_length=256)
    ] = ""
    # commands that get it, written as in rules, such as npm publish *
    programs: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()
    variable: _Variable = ""  # the environment variable for those programs

    @model_validator(mode="after")
    def _is_whole(self) -> SecretSettings:
        if sum(map(bool, (self.env, self.file, self.keyring))) != 1:
            raise ValueError("needs one of env, file and keyring")
        if not (self.hosts or self.programs):
            raise ValueError("needs hosts or programs that may use it")
        if self.header and self.query:
            raise ValueError("needs either header or query")
        if (self.header or self.query or self.format) and not self.hosts:
            raise ValueError("has header, query or format, but no hosts")
        if bool(self.programs) != bool(self.variable):
            raise ValueError("needs both programs and variable, or neither")
        self.to_secret("")
        return self

    def to_secret(self, name: str, directory: Path | None = None) -> Secret:
        """Builds the secret; `directory` has those that no keyring keeps."""
        from tools.core.errors import InvalidArgumentsError  # loaded only for secrets
        from tools.sandbox.secrets.secrets import HostPattern, ProgramPattern, Secret
        from tools.sandbox.web.url import checked_headers

        header = "" if self.query else self.header or AUTHORIZATION
        default = f"Bearer {PLAIN_FORM}" if header.lower() == AUTHORIZATION.lower() else PLAIN_FORM
        try:
            checked_headers({header: ""} if header else None)
        except InvalidArgumentsError as error:
            raise ValueError(f"names a header unfit for secrets: {error.message}") from None
        try:
            hosts = tuple(map(HostPattern.parse, self.hosts))
        except InvalidArgumentsError as error:
            raise ValueError(f"{error.message} Write hosts as host, host:port or *.host") from None
        return Secret(
            name=name,
            origin=self._origin(directory),
            hosts=hosts,
            header=header,
            query=self.query,
            form=self.format or default,
            programs=tuple(map(ProgramPattern.parse, self.programs)),
            variable=self.variable,
        )

    def _origin(self, directory: Path | None) -> Origin:
        from tools.sandbox.secrets.secrets import File, KeyringEntry, Variable

        if self.file is not None:
            return File(self.file)
        return KeyringEntry.parse(self.keyring, directory) if self.keyring else Variable(self.env)
