"""What can be set of HTTP APIs: `[openapi.NAME]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from server.settings.group import SettingsGroup, expand
from server.settings.secrets import SecretSettings

_ADDRESS = ("http://", "https://")


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], BeforeValidator(_listed)
]


class OpenApiSettings(SettingsGroup):
    """An HTTP API, each operation of which becomes a tool.

    Attributes:
        description: Its description in OpenAPI 3: a file, or an address that is fetched once.
        url: Where the API is, if not where its description says.
        include: Only these operations: operationIds, tag:TAG, GET,HEAD or GET /pets/*, in which
            * and ? stand for any characters.
        exclude: None of these.
        secret: Name of the secret in [secrets.NAME] that its requests are sent with.
        trusted: Whether its texts are believed; else a tool whose texts hide something, or speak
            of another tool, is in quarantine.
        enabled: Whether it is there at all.
    """

    description: str = Field(min_length=1)
    url: Annotated[str, Field(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    include: _Patterns = ()
    exclude: _Patterns = ()
    secret: str = ""
    trusted: bool = False
    enabled: bool = True

    @field_validator("description")
    @classmethod
    def _is_whole(cls, description: str) -> str:
        return description if description.lower().startswith(_ADDRESS) else str(_path(description))

    @property
    def file(self) -> Path | None:
        """The file that describes it; None where an address does."""
        is_address = self.description.lower().startswith(_ADDRESS)
        return None if is_address else Path(self.description)


def check_apis(
    apis: Mapping[str, OpenApiSettings],
    servers: Mapping[str, object],
    secrets: Mapping[str, SecretSettings],
) -> None:
    """Sees that their names are not those of servers, and that their secrets are there.

    Raises:
        ValueError: If not.
    """
    for name, api in apis.items():
        if name in servers:
            raise ValueError(f"has {name!r}, which is the name of a server too")
        if api.secret and not (api.secret in secrets and secrets[api.secret].hosts):
            raise ValueError(
                f"{name!r} names the secret {api.secret!r}, but there is no [secrets.{api.secret}]"
                " with hosts"
            )


def _path(text: str) -> Path:
    path = Path(os.path.normpath(expand(Path(text))))
    if not path.is_file():
        raise ValueError(f"names {text!r}, which is no file")
    return path
