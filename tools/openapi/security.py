"""Security schemes of a description: where its API wants credentials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tools.openapi.description import Description, pairs, text_of
from tools.openapi.operations import Operation


@dataclass(frozen=True, slots=True)
class Scheme:
    """Where a credential stands in a request.

    Attributes:
        kind: What the description calls it, in words.
        place: header, query or cookie.
        name: The name of the header, parameter or cookie.
        form: What stands there; `{secret}` or `{base64}` stands for the secret.
    """

    kind: str
    place: str
    name: str
    form: str = "{secret}"

    @property
    def parameter(self) -> str:
        """As `arguments_of` names parameters that are none of the model's."""
        return f"{self.place}:{self.name.lower()}"

    def settings(self) -> dict[str, str]:
        """What `[secrets.NAME]` says of it, beyond what is so without saying."""
        match self.place:
            case "query":
                return {"query": self.name}
            case "cookie":
                return {"header": "Cookie", "format": self.form}
        is_usual = self.form == "Bearer {secret}"
        named = {} if self.name == "Authorization" else {"header": self.name}
        return named if is_usual or self.form == "{secret}" else {**named, "format": self.form}


def schemes_of(description: Description) -> Iterator[Scheme]:
    """The schemes that a secret of the settings can serve.

    Raises:
        UnusableError: If one is not in the description.
    """
    components = pairs(description.document.get("components"))
    for given in pairs(components.get("securitySchemes")).values():
        scheme = description.follow(given)
        name = text_of(scheme.get("name"))
        match text_of(scheme.get("type")), text_of(scheme.get("scheme")).lower():
            case "apiKey", _ if name and scheme.get("in") == "cookie":
                yield Scheme("an API key", "cookie", name, f"{name}={{secret}}")
            case "apiKey", _ if name and text_of(scheme.get("in")) in {"header", "query"}:
                yield Scheme("an API key", text_of(scheme.get("in")), name)
            case "http", "basic":
                yield Scheme("user:password", "header", "Authorization", "Basic {base64}")
            case "http", "bearer":
                yield Scheme("a bearer token", "header", "Authorization", "Bearer {secret}")
            case "oauth2" | "openIdConnect" as kind, _:
                told = "an access token of OAuth" if kind == "oauth2" else "an access token"
                yield Scheme(told, "header", "Authorization", "Bearer {secret}")


def is_open(operation: Operation) -> bool:
    """Whether a description says that an operation wants no credentials."""
    return operation.content.get("security") == []
