"""Settings of secrets: `[secrets.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from server.settings.group import SettingsGroup, expand, split_commas

if TYPE_CHECKING:
    from tools.sandbox.secrets.origin import Origin
    from tools.sandbox.secrets.secrets import Secret

AUTHORIZATION = "Authorization"
PLAIN_FORM = "{secret}"


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Variable = Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,127})?$")]


class SecretSettings(SettingsGroup):
    """A secret that calls name; its value is never in a call, a result or a record.

    Attributes:
        env: The environment variable of the server that contains it.
        file: The file that contains it, readable by its owner alone.
        keyring: Its entry in the keyring, as service/username.
        hosts: Hosts whose requests may use it, each as host, host:port or *.host.
        header: The header that carries it, Authorization by default.
        query: The query parameter that carries it, instead of a header.
        format: The sent text with {secret} or {base64} for the value: "Bearer {secret}" by default
         in Authorization, otherwise "{secret}".
        programs: Commands that get it, written as in rules, such as npm publish *.
        variable: The environment variable for those programs.
    """

    env: _Variable = ""
    file: Annotated[Path, AfterValidator(expand)] | None = None
    keyring: Annotated[str, Field(pattern=r"^([^/]+/.+)?$")] = ""
    hosts: Annotated[tuple[str, ...], BeforeValidator(split_commas)] = ()
    header: Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]*$")] = ""
    query: Annotated[str, Field(max_length=128)] = ""
    format: Annotated[
        str, Field(pattern=r"^([\x20-\x7a|~]*\{(secret|base64)\}[\x20-\x7a|~]*)?$", max_length=256)
    ] = ""
    programs: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    variable: _Variable = ""

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

    def to_secret(self, name: str) -> Secret:
        """Builds the secret.

        Raises:
            ValueError: If a host, a header or a program is invalid.
        """
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
            origin=self._origin(),
            hosts=hosts,
            header=header,
            query=self.query,
            form=self.format or default,
            programs=tuple(map(ProgramPattern.parse, self.programs)),
            variable=self.variable,
        )

    def _origin(self) -> Origin:
        from tools.sandbox.secrets.origin import File, KeyringEntry, Variable

        if self.file is not None:
            return File(self.file)
        service, _, username = self.keyring.partition("/")
        return KeyringEntry(service, username) if service else Variable(self.env)


def secret_hosts(secrets: Mapping[str, SecretSettings]) -> dict[str, tuple[str, ...]]:
    """Maps secrets that requests may use to their hosts."""
    return {name: each.hosts for name, each in secrets.items() if each.hosts}
