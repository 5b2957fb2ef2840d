"""Settings of HTTP APIs: `[openapi.NAME]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from server.settings.group import SettingsGroup, expand
from server.settings.secrets import SecretSettings

_ADDRESS = ("http://", "https://")


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], BeforeValidator(_as_tuple)
]


class OpenApiSettings(SettingsGroup):
    """An HTTP API whose operations become tools.

    Attributes:
        description: Its OpenAPI 3 description: a file, or a URL that is fetched once.
        url: The base URL of the API, if it differs from the description's.
        include: Only these operations: operationIds, tag:TAG, GET,HEAD or GET /pets/*; * and ?
         are wildcards.
        exclude: None of these operations.
        secret: The name of a secret in [secrets.NAME] for its requests.
        trusted: Whether its texts are believed; otherwise tools whose texts hide something or
         mention another tool are put in quarantine.
        enabled: Whether it is enabled.
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
        """The description file; None if the description is a URL."""
        is_address = self.description.lower().startswith(_ADDRESS)
        return None if is_address else Path(self.description)


def check_apis(
    apis: Mapping[str, OpenApiSettings],
    servers: Mapping[str, object],
    secrets: Mapping[str, SecretSettings],
) -> None:
    """Checks that names differ from those of servers, and that secrets exist.

    Raises:
        ValueError: If a check fails.
    """
    for name, api in apis.items():
        if name in servers:
            raise ValueError(f"has {name!r}, which is also the name of a server")
        if api.secret and not (api.secret in secrets and secrets[api.secret].hosts):
            raise ValueError(
                f"{name!r} names the secret {api.secret!r}, but there is no [secrets.{api.secret}]"
                " with hosts"
            )


def _path(text: str) -> Path:
    path = Path(os.path.normpath(expand(Path(text))))
    if not path.is_file():
        raise ValueError(f"names {text!r}, which is not a file")
    return path
