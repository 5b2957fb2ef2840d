"""Builds the tools of one API in the settings from its description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tools.core.errors import InvalidArgumentsError
from tools.core.spec import ToolSpec
from tools.openapi.arguments import arguments_of
from tools.openapi.description import Description, UnusableError, pairs, text_of
from tools.openapi.operations import Operation, Selection, names_of, operations_of
from tools.openapi.requests import RequestMaker
from tools.openapi.schemas import Schemas
from tools.openapi.tool import operation_tool
from tools.sandbox.web.url import Url


@dataclass(frozen=True, slots=True)
class Scheme:
    """The form in which a request carries a credential.

    Attributes:
        form: The template of its value; `{secret}` or `{base64}` stands for the secret.
    """

    kind: str
    place: str  # header, query or cookie
    name: str
    form: str = "{secret}"

    @property
    def parameter(self) -> str:
        """Its key among hidden parameters, as in `arguments_of`."""
        return f"{self.place}:{self.name.lower()}"

    def settings(self) -> dict[str, str]:
        """Returns the entries that `[secrets.NAME]` needs for it, without defaults."""
        match self.place:
            case "query":
                return {"query": self.name}
            case "cookie":
                return {"header": "Cookie", "format": self.form}
        is_usual = self.form == "Bearer {secret}"
        named = {} if self.name == "Authorization" else {"header": self.name}
        return named if is_usual or self.form == "{secret}" else {**named, "format": self.form}


def schemes_of(description: Description) -> Iterator[Scheme]:
    """Yields the schemes that a secret of the settings can serve."""
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
    """Returns whether an operation is declared to need no credentials."""
    return operation.content.get("security") == []


MOST_OPERATIONS = 10_000
"""Maximum operations of a description; its tools are searched together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """The settings of an API."""

    name: str
    address: str  # the path or URL of its description
    base_url: str = ""  # its own address; empty for the one in its description
    selection: Selection = field(default_factory=Selection)
    secret: str = ""  # name of the secret that is sent to it; empty for none

    @property
    def url(self) -> str:
        """The URL of its description; empty for a file."""
        is_url = self.address.lower().startswith(("http://", "https://"))
        return self.address if is_url else ""


class Api:
    """The tools of an API."""

    def __init__(self, options: ApiOptions, data: bytes) -> None:
        self._options = options
        self.description = Description.parse(data)
        try:
            self.operations = operations_of(self.description)
            self.schemes: Sequence[Scheme] = tuple(schemes_of(self.description))
        except UnusableError as error:
            raise InvalidArgumentsError(
                f"The description cannot be used: {error}.",
                next_actions=["Bundle it into one file: `npx @redocly/cli bundle FILE`."],
            ) from error
        if len(self.operations) > MOST_OPERATIONS:
            raise InvalidArgumentsError(
                f"The description has more than {MOST_OPERATIONS:,} operations.",
                next_actions=["Name a smaller one with only the wanted operations."],
            )

    @cached_property
    def wanted(self) -> dict[str, Operation]:
        """The operations that the settings select, by tool name."""
        named = names_of(self._options.name, self.operations)
        return {name: each for name, each in named.items() if self._options.selection.admits(each)}

    @property
    def tools(self) -> list[ToolSpec]:
        """The tools of the selected operations, without those that cannot become tools."""
        return [spec for _, spec in self._makers_and_tools]

    @property
    def addresses(self) -> list[str]:
        """The distinct addresses that their requests go to."""
        return list(dict.fromkeys(maker.base_url for maker, _ in self._makers_and_tools))

    @cached_property
    def problems(self) -> list[str]:
        """The problems found in the description so far."""
        idle = self._options.selection.idle(self.operations)
        return [f"{pattern!r} matches no operation" for pattern in idle]

    @cached_property
    def _makers_and_tools(self) -> list[tuple[RequestMaker, ToolSpec]]:
        return [made for name, each in self.wanted.items() for made in self._tool(name, each)]

    def _tool(self, name: str, operation: Operation) -> Iterator[tuple[RequestMaker, ToolSpec]]:
        try:
            maker = RequestMaker(
                operation,
                self._base_url(operation),
                arguments_of(operation, self.description, self._schemas, self._hidden),
            )
            schema = maker.arguments.schema(self._schemas)
        except UnusableError as error:
            self.problems.append(f"{operation} is skipped: {error}")
        else:
            secret = "" if is_open(operation) else self._options.secret
            spec = operation_tool(name, self._options.name, maker, schema, secret=secret)
            yield maker, spec

    def _base_url(self, operation: Operation) -> str:
        options = self._options
        given = options.base_url or self.description.base_url(
            options.url, operation.content, operation.item
        )
        try:
            return str(Url.parse(given)).rstrip("/")
        except InvalidArgumentsError as error:
            raise UnusableError(error.message) from error

    @cached_property
    def _schemas(self) -> Schemas:
        return Schemas(self.description)

    @cached_property
    def _hidden(self) -> frozenset[str]:
        return frozenset(each.parameter for each in self.schemes)
