"""Settings of the HTTP and SSE transports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from server.settings.group import GivenName, Names, SettingsGroup, Tables, split_commas
from server.settings_file import SettingsError

_LOOPBACK_NAMES = {"127.0.0.1", "localhost", "::1"}
_REFERENCE = re.compile(r"\$\{[^}]+\}")


def _check_token(token: SecretStr) -> SecretStr:
    # RFC 6750, section 2.1: the header allows nothing else. What is referred to is checked later.
    is_reference = _REFERENCE.fullmatch(token.get_secret_value())
    if not is_reference and not re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", token.get_secret_value()):
        raise ValueError("may hold letters, digits and . _ ~ + / - only")
    return token


_Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$")]  # RFC 6749, section 3.3


_HOST = r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[1-6]?[0-9]{1,4})?"
_Url = Annotated[str, Field(pattern=rf"^(https?://{_HOST}(/[!$->@-\[\]-~]*)?)?$")]
"""A URL without query and fragment, which may be quoted in a header."""


def _check_issuer(url: str) -> str:
    if url.startswith("http:") and urlsplit(url).hostname not in _LOOPBACK_NAMES:
        raise ValueError("needs https, unless it is on this machine")
    return url


class TokenSettings(SettingsGroup):
    """A bearer token, or an account at http.issuer, and the identity whose context it opens."""

    token: Annotated[SecretStr, AfterValidator(_check_token)] | None = None
    subject: str = Field("", max_length=256)  # the account, as the claim http.claim names it
    user_id: str = Field(min_length=1, max_length=256)
    device_id: str = Field("", max_length=256)
    agent_id: str = Field("", max_length=256)

    @model_validator(mode="after")
    def _has_one_proof(self) -> TokenSettings:
        if (self.token is None) != bool(self.subject):
            raise ValueError("needs either token or subject")
        return self


class HttpSettings(SettingsGroup):
    """Addresses, tokens and accepted headers of the HTTP and SSE transports."""

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to listen on; any address but loopback requires a token.",
    )
    port: int = Field(
        8765, ge=0, le=65535, description="Port to listen on, 0 to 65535; 0 picks a free one."
    )
    token: Annotated[SecretStr, AfterValidator(_check_token)] | None = Field(
        None,
        description="Bearer token that requests must carry; it gives access to the context of the "
        "default identity. If neither a token nor an issuer is set, none is required.",
    )
    issuer: Annotated[_Url, AfterValidator(_check_issuer)] = Field(
        "",
        description="Issuer URL of an OAuth authorization server, whose access tokens are accepted "
        "too.",
    )
    resource: _Url = Field(
        "",
        description="URL by which clients reach this server, for which its access tokens must be "
        "issued (aud). The default is its own address, if that is on loopback.",
    )
    scopes: Annotated[tuple[_Scope, ...], BeforeValidator(split_commas)] = Field(
        (),
        description="Scopes that an access token must have. Separated by commas in the "
        "environment.",
    )
    claim: str = Field(
        "sub",
        min_length=1,
        description="Claim of an access token that is compared with the subjects in http.tokens.",
    )
    tokens: Tables[GivenName, TokenSettings] = Field(
        {},
        description="More bearer tokens, one for each person or device, each under a name that you "
        "choose (a-z, 0-9, _ and -): a table of token, user_id and, optionally, device_id and "
        "agent_id. With subject instead of token, it names an account at http.issuer. A JSON "
        "object in the environment.",
    )
    allowed_hosts: Names = Field(
        (),
        description="Host headers to accept besides loopback and http.host, as name:port; name:* "
        "means any port. Separated by commas in the environment.",
    )
    allowed_origins: Names = Field(
        (),
        description="Origin headers to accept besides loopback, as https://name; https://name:* "
        "means any port. Separated by commas in the environment.",
    )

    @field_validator("tokens")
    @classmethod
    def _tell_apart(
        cls, tokens: Mapping[str, TokenSettings], info: ValidationInfo
    ) -> Mapping[str, TokenSettings]:
        issuer = info.data.get("issuer")
        owners = {info.data.get("token"): "http.token"}
        for name, each in tokens.items():
            owner = owners.setdefault(each.token or each.subject, name)
            if owner != name:
                what = "token" if each.token else "subject"
                raise ValueError(f"{name} has the same {what} as {owner}; give each its own")
            if each.subject and issuer == "":
                raise ValueError(f"{name} has a subject, which needs http.issuer")
        return tokens

    def with_values(self, value_of: Callable[[SecretStr, str], str]) -> HttpSettings:
        """Returns the settings with tokens instead of references to them, checked again."""
        tokens = {
            name: {
                **dict(each),
                "token": each.token and value_of(each.token, f"http.tokens.{name}.token"),
            }
            for name, each in self.tokens.items()
        }
        token = self.token and value_of(self.token, "http.token")
        values = {**dict(self), "token": token, "tokens": tokens}
        try:
            return HttpSettings.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            key = ".".join(map(str, ("http", *first["loc"])))
            reason = first["msg"].removeprefix("Value error, ")
            raise SettingsError(f"{key}, which refers to a secret, {reason}.") from None
