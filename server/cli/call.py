"""`toolcrib call`: calls one tool, as a client would."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, FunctionsOption, RootOption
from server.cli.terminal.screen import echo, forget_typed, wrapped
from tools.core.client import Consent, Question

if TYPE_CHECKING:
    from server.app import App
    from tools.core.result import ToolResult


STOPPED = "So are programs that the call had started. What was done by then stays."
"""Printed after a Ctrl-C."""


def call(  # noqa: PLR0913, PLR0917  # one parameter an option
    name: Annotated[str, typer.Argument(help="Name or alias of the tool.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Arguments; lists and objects as JSON."),
    ] = None,
    as_json: Annotated[
        str | None,
        typer.Option("--json", metavar="OBJECT", help="All arguments as one JSON object instead."),
    ] = None,
    structured: Annotated[
        bool, typer.Option("--structured", help="Print the structured result, as JSON.")
    ] = False,
    functions: FunctionsOption = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Call a tool and print its result; exits with 1 if the call fails."""
    from server import logs
    from server.cli.opened import open_app
    from server.cli.terminal.errors import run, stoppable

    logs.show()
    given = _parse(arguments or [], as_json)
    with (
        stoppable(STOPPED),
        open_app(root=root, data_dir=data_dir, config_file=config, functions=functions) as app,
    ):
        app.check_names()
        result = run(partial(_result, app, name, given, as_json=as_json is not None))
    text = json.dumps(result.structured, ensure_ascii=False) if structured else result.text
    echo(text, err=result.is_error and not structured)
    if result.is_error:
        sys.exit(1)


async def _result(app: App, name: str, given: dict[str, Any], *, as_json: bool) -> ToolResult:
    from tools.retrieval.catalogue import REACHING

    approver = TerminalApprover() if sys.stdin.isatty() else None
    context = replace(app.context, link=replace(app.context.link, approver=approver))
    async with (
        app.machine.running(),
        app.functions.running(watch=False),
        app.gateway.running(eager=False),
        app.catalogue.running(),
    ):
        await app.created.refresh()
        registry = app.registry.of(app.identity.user_id)
        if registry.get(name) is None:
            await app.functions.load()  # unlike clients, a person waits for an installation
            await app.gateway.find(name)
        if app.apis is not None:
            await app.apis.load()
        spec = registry.get(name)
        if spec is not None and REACHING in spec.tags:
            await app.gateway.ready()  # includes the last listings of other servers
        is_typed = spec is not None and not spec.source.startswith(("openapi:", "upstream:"))
        if spec is not None and not (is_typed or as_json):  # our own tools parse strings themselves
            given = {
                key: _parse_value(key, value, spec.input_schema) for key, value in given.items()
            }
        return await app.manager.execute(name, given, context)


def _parse_value(key: str, value: Any, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401  # any JSON
    """Parses a string as its parameter's type; keeps it if that is a string or unknown."""
    from tools.conversion.schema_reading import types

    wanted = types(schema.get("properties", {}).get(key, {}), schema)
    if not wanted or "string" in wanted:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _parse(pairs: list[str], as_json: str | None) -> dict[str, Any]:
    if as_json is not None:
        if pairs:
            raise typer.BadParameter("give KEY=VALUE arguments or --json, not both")
        try:
            value = json.loads(as_json)
        except ValueError as error:
            raise typer.BadParameter(f"--json is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise typer.BadParameter("--json must be an object")
        return value
    given: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
        given[key] = value
    return given


YES = {"y", "yes"}


class TerminalApprover:
    """Asks the local user about a call that they made."""

    tickets: Sequence[str] = ()

    def keep(self, ticket: str) -> bool:  # noqa: ARG002  # one call
        """Never keeps a ticket: the call is not retried."""
        return False

    async def ask(self, question: Question, ticket: str) -> Consent:  # noqa: ARG002  # one at a time
        """Asks and returns the user's answer."""
        from server.mcp.elicitation.forms import asking_text, choices_of

        echo("\n".join(map(wrapped, asking_text(question).split("\n"))), err=True)
        forget_typed()
        if question.program is None:
            said = await _read_line("Run it? [y/N]")
            return Consent.ONCE if said.lower() in YES else Consent.NO
        choices = {str(number): each for number, each in enumerate(choices_of(question).items(), 1)}
        for number, (_, text) in choices.items():
            echo(f"  {number}: {text}", err=True)
        said = await _read_line(f"Your answer (1 to {len(choices)})")
        return choices[said][0] if said in choices else Consent.NONE


async def _read_line(prompt: str) -> str:
    """Reads a line without a thread, which Ctrl-C could not interrupt."""
    echo(f"{prompt}: ", nl=False, err=True)
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline().strip()
