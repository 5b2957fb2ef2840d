"""Turns an operation into a tool, which checks arguments and makes requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio.to_thread

from tools.answers.redirects import stays_within
from tools.conversion.arguments.descriptions import describe_schema, show
from tools.conversion.arguments.validation_errors import unknown_name
from tools.conversion.schema_reading import bears_secret
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolResult
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, ToolSpec
from tools.openapi.answers import result_of
from tools.openapi.arguments import Arguments
from tools.openapi.description import PLACE, Operation, text_of
from tools.openapi.encoding import Parameter, written_pairs
from tools.openapi.schemas import clean_text
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.web.url import Url

if TYPE_CHECKING:
    from jsonschema import ValidationError  # type: ignore[import-untyped]  # ships no types


ACCEPTED = "application/json, */*;q=0.5"

_LITERAL = "/!$&'()*+,;=:@%?"  # literal characters of a path template (RFC 3986, 3.3 and 3.4)
MOST_ERRORS = 5

_UNCHECKED = ("pattern", "patternProperties", "uniqueItems")
"""Keywords that could take forever with an untrusted pattern and text."""

SOURCE = "openapi:"  # the prefix of the source of such a tool, before the name of its API
LONGEST_TITLE = 120
LONGEST_DESCRIPTION = 1_000
LONGEST_DETAILS = 8_000
SECONDS = 620.0  # time limit of a call; the setting requests.timeout ends a request earlier


@dataclass(frozen=True)
class OperationCalls:
    """Checks and makes the calls of one operation's tool."""

    name: str  # of the tool
    operation: Operation
    base_url: str
    arguments: Arguments
    schema: Mapping[str, Any]
    secret: str | None  # name of the secret that is sent with each

    def url(self, given: Mapping[str, Any]) -> str:
        """Returns the request's URL."""
        query = written_pairs(
            pair
            for parameter, value in self._of(given, "query")
            for pair in parameter.in_query(value)
        )
        # Some descriptions include a part of the query in their paths: /agents?beta=true.
        path, _, fixed = self._path(given).partition("?")
        query = "&".join(filter(None, (fixed, query)))
        return str(Url.parse(f"{self.base_url}{path}{'?' * bool(query)}{query}"))

    def headers(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Returns the request's headers, except the body's Content-Type."""
        headers = {"Accept": ACCEPTED}
        for parameter, value in self._of(given, "header"):
            headers[parameter.name] = parameter.in_header(value)
        cookies = [
            f"{name}={value}"
            for parameter, given_value in self._of(given, "cookie")
            for name, value in parameter.in_query(given_value)
        ]
        return {**headers, "Cookie": "; ".join(cookies)} if cookies else headers

    def body(self, given: Mapping[str, Any], sandbox: Sandbox) -> tuple[str, bytes] | None:
        """Returns the Content-Type and the bytes of the body, or None."""
        body, value = self.arguments.body, self.arguments.body_of(given)
        return None if body is None or value is None else body.encoded(value, sandbox)

    def _path(self, given: Mapping[str, Any]) -> str:
        values = {each.name: each.in_path(value) for each, value in self._of(given, "path")}
        pieces = PLACE.split(self.operation.path)
        return "".join(
            values[piece] if number % 2 else quote(piece, safe=_LITERAL)
            for number, piece in enumerate(pieces)  # names and literals alternate
        )

    def _of(self, given: Mapping[str, Any], place: str) -> Iterator[tuple[Parameter, Any]]:
        for name, parameter in self.arguments.parameters.items():
            if parameter.place == place and given.get(name) is not None:
                yield parameter, given[name]

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments to call with; the API decides what its schema does not say."""
        given = self.arguments.without_omitted(arguments)
        self._check(given)
        self.url(given)  # rejects an invalid URL before the policy judges it
        return given

    async def invoke(self, arguments: dict[str, Any], context: RequestContext) -> ToolResult:
        """Makes one call."""
        url, headers = self.url(arguments), self.headers(arguments)
        body = await anyio.to_thread.run_sync(self.body, arguments, context.sandbox)
        if body is not None:
            headers["Content-Type"] = body[0]
        response = await context.machine.web.request(
            self.operation.method,
            url,
            headers=headers,
            body=None if body is None else body[1],
            secret=self.secret,
            follows=stays_within(context),
        )
        paths = arguments.get(self.arguments.wanted, ())
        return await result_of(response, paths, method=self.operation.method, url=url)

    def tool(self, api: str) -> ToolSpec:
        """Returns the tool, of the API with this name in the settings."""
        operation = self.operation
        title = clean_text(operation.content.get("summary"), LONGEST_TITLE) or operation.own_id
        text = _description_text(operation)
        description = clean_text(text, LONGEST_DESCRIPTION)
        whole = f"{clean_text(text, LONGEST_DETAILS)} ({operation})"
        return ToolSpec(
            name=self.name,
            title=title,
            description=description or str(operation),
            details=whole if description else "",
            input_schema=self.schema,
            output_schema=None,
            scope=ToolScope.SYSTEM,
            effects=frozenset({Effect.READ if operation.reads else Effect.WRITE, Effect.EXTERNAL}),
            validate=self.validate,
            invoke=self.invoke,
            destructive=operation.method in {"DELETE", "PATCH", "PUT"},
            idempotent=operation.method not in {"PATCH", "POST"},
            tags=("openapi",),
            capabilities=(title, *operation.tags),
            source=f"{SOURCE}{api}",
            timeout=SECONDS,
            subject=Subject(SubjectKind.URL, method=operation.method, read=self.url),
        )

    def _check(self, arguments: Mapping[str, Any]) -> None:
        lines = list(dict.fromkeys(self._lines(arguments)))
        if lines:
            raise InvalidArgumentsError(
                f"The arguments of {self.name} do not match its schema. "
                + " ".join(lines[:MOST_ERRORS]),
                next_actions=["Correct these arguments and call it again."],
            )

    def _lines(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        known = self.schema["properties"]
        for name in arguments:
            if name not in known:
                yield unknown_name("", name, known)
        try:
            yield from map(self._line, self._validator.iter_errors(dict(arguments)))
        except RecursionError:
            return  # a recursive schema or a too deep value: the API decides

    @cached_property
    def _validator(self) -> Any:  # noqa: ANN401  # a class made just now
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend  # type: ignore[import-untyped]  # ships no types

        checked = extend(Draft202012Validator, dict.fromkeys(_UNCHECKED))
        return checked({**self.schema, "additionalProperties": True})

    def _line(self, error: ValidationError) -> str:
        path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.path)
        path = path.removeprefix(".")
        if error.validator == "required":
            missing = next(each for each in error.validator_value if each not in error.instance)
            return f"`{path}{'.' * bool(path)}{missing}` is missing."
        schema = error.schema if isinstance(error.schema, Mapping) else {}
        is_untold = bears_secret(schema, self.schema)
        found = "does not fit" if is_untold else f"is {show(error.instance)}"
        return f"`{path}` {found}; send {describe_schema(schema, self.schema)}."


def _description_text(operation: Operation) -> str:
    summary = text_of(operation.content.get("summary")).strip()
    more = text_of(operation.content.get("description")).strip()
    parts = [] if more.startswith(summary.rstrip(".")) else [summary.rstrip(".") + "."]
    deprecated = "Deprecated. " if operation.content.get("deprecated") is True else ""
    return deprecated + " ".join(filter(None, [*parts, more]))
