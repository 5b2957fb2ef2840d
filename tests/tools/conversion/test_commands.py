"""Commands of click and typer: options become arguments, and what they print is the result."""

from __future__ import annotations

import datetime as dt
import io
import threading
from pathlib import Path
from typing import Annotated, Any

import anyio
import click
import pytest
import typer
from pydantic import BaseModel

from tools.conversion.callables.commands import as_function, leaves
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError, ToolFailedError
from tools.core.spec import Effect, ToolSpec, tool


async def call(spec: ToolSpec, **raw: Any) -> str:
    return (await spec.invoke(spec.validate(raw), RequestContext())).text


@tool(effects={Effect.READ})
@click.command()
@click.argument("beds", nargs=-1)
@click.option("--count", type=click.IntRange(1, 5), default=2, help="How often.", show_default=True)
@click.option("--share", type=click.FloatRange(0, 1, max_open=True))
@click.option("--plant", type=click.Choice(["bean", "leek"]), required=True, help="What grows.")
@click.option("-v", "--verbose", count=True)
@click.option("--at", nargs=2, type=float)
@click.option("--tag", multiple=True)
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), help="When.")
@click.option("--log", type=click.File("r"))
@click.option("--into", type=click.Path(exists=True, path_type=Path))
@click.option("--first", "end", flag_value="first", default=True)
@click.option("--last", "end", flag_value="last")
@click.option("--dry/--wet", default=False)
@click.option("--pair", type=(str, int))
@click.option("--key", prompt=True, hide_input=True)
@click.option("--user", envvar="GARDEN_USER", required=True)
@click.option("--trace", hidden=True, default="none")
@click.version_option("1.0")
@click.confirmation_option(help="Whether it is meant.")
def harvest(**given: Any) -> None:
    """Harvests.

    \b
    A line more.
    \f
    For developers.
    """
    click.echo(given)


PROPERTIES: dict[str, Any] = {
    "beds": {"type": "array", "items": {"type": "string"}},
    "count": {
        "type": "integer",
        "minimum": 1,
        "maximum": 5,
        "description": "How often.",
        "default": 2,
    },
    "share": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "plant": {"type": "string", "enum": ["bean", "leek"], "description": "What grows."},
    "verbose": {"type": "integer", "minimum": 0, "default": 0},
    "at": {
        "type": "array",
        "prefixItems": [{"type": "number"}, {"type": "number"}],
        "minItems": 2,
        "maxItems": 2,
    },
    "tag": {"type": "array", "items": {"type": "string"}},
    "day": {"type": "string", "description": "When. In one of the forms %Y-%m-%d."},
    "log": {"type": "string", "pattern": "^([^-]|-.)"},
    "into": {"type": "string"},
    "end": {"type": "string", "enum": ["first", "last"], "default": "first"},
    "dry": {"type": "boolean", "default": False},
    "pair": {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
        "minItems": 2,
        "maxItems": 2,
    },
    "key": {"type": "string", "writeOnly": True, "format": "password"},
    "user": {"type": "string"},
    "yes": {"type": "boolean", "description": "Whether it is meant."},
}
LEAST = {"plant": "leek", "key": "k", "yes": True, "user": "ann"}


def test_options_of_a_command_are_arguments_with_all_that_they_say() -> None:
    spec = FunctionToMCP.convert(harvest)
    assert (spec.name, spec.description) == ("harvest", "Harvests.\n\nA line more.")
    assert spec.effects == {Effect.READ}
    assert spec.input_schema["properties"] == PROPERTIES
    assert spec.input_schema["required"] == ["plant", "key", "yes"]


async def test_click_makes_the_values_and_what_is_printed_is_the_result(tmp_path: Path) -> None:
    spec = FunctionToMCP.convert(harvest)
    assert eval(await call(spec, **LEAST)) == {  # noqa: S307  # the dictionary that it prints
        "beds": (),
        "count": 2,
        "share": None,
        "plant": "leek",
        "verbose": 0,
        "at": None,
        "tag": (),
        "day": None,
        "log": None,
        "into": None,
        "end": "first",
        "dry": False,
        "pair": None,
        "key": "k",
        "user": "ann",
        "trace": "none",
    }
    more = {"beds": ["-a", "--"], "at": [1, "2.5"], "tag": ["x"], "day": "2026-01-02", "dry": True}
    said = await call(spec, **LEAST, **more, into=str(tmp_path), pair=["p", 3], end="last")
    for text in ("('-a', '--')", "(1.0, 2.5)", "('x',)", "('p', 3)", "'dry': True", "'last'"):
        assert text in said
    assert "datetime.datetime(2026, 1, 2, 0, 0)" in said
    assert f"{tmp_path!r}" in said


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ({"count": 6}, "`count` is 6; send an integer from 1 to 5"),
        ({"plant": "lek"}, "did you mean 'leek'"),
        ({"trace": "all"}, "`trace` is unknown"),
        ({"day": "today"}, "'today' does not match the format"),
        ({"log": "-"}, "`log` is '-'; send a string"),
        ({"into": "/no/such"}, "'/no/such' does not exist"),
        ({"user": None}, "Missing option '--user'"),
    ],
)
async def test_what_a_command_does_not_take_is_refused(raw: Any, complaint: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=complaint):
        await call(FunctionToMCP.convert(harvest), **{**LEAST, **raw})


@click.command()
@click.argument("how")
@click.pass_context
def end(context: click.Context, how: str) -> str | None:
    click.echo("before")
    if how == "exits":
        context.exit(3)
    if how == "leaves":
        raise SystemExit(0)
    if how == "fails":
        raise click.ClickException("no spade")
    if how == "asks":
        click.confirm("Sure?")
    return "unseen"


async def test_a_command_that_ends_itself_has_answered_or_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = FunctionToMCP.convert(end)
    assert await call(spec, how="leaves") == "before"
    assert await call(spec, how="returns") == "before"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    endings = {"exits": "before\nThe command ended with 3", "fails": "no spade", "asks": "Sure"}
    for how, told in endings.items():
        with pytest.raises(ToolFailedError, match=told):
            await call(spec, how=how)


@click.group()
@click.option("--town", default="Ulm")
@click.pass_context
def garden(context: click.Context, town: str) -> None:
    context.obj = town


@garden.group("bed-s")
def beds() -> None: ...


@beds.command("show-all")
@click.option("--limit", type=int)
@click.option("--town", default="Bern")
@click.option("--from")
@click.pass_obj
def show(outer: str, /, limit: int, town: str, **more: str) -> str:
    """Shows beds."""
    return f"{outer} {limit} {town} {more}"


async def test_a_command_in_groups_runs_behind_them_with_their_options() -> None:
    (chain,) = leaves(garden)
    spec = FunctionToMCP.convert(as_function(*chain))
    assert spec.name == "bed_s_show_all"
    assert list(spec.input_schema["properties"]) == ["town", "limit", "show_all_town", "from_"]
    said = await call(spec, town="Ulm", limit=1, show_all_town="Genf", from_="a")
    assert said == "Ulm 1 Genf {'from': 'a'}"


def test_a_group_and_an_app_are_refused_with_what_to_convert() -> None:
    with pytest.raises(ToolDefinitionError, match="garden is a group of commands; convert each"):
        FunctionToMCP.convert(garden)
    app = typer.Typer()
    app.command()(greet)
    for made in (app, typer.main.get_command(app)):
        with pytest.raises(ToolDefinitionError, match="convert the function itself"):
            FunctionToMCP.convert(made, name="app")


async def test_each_call_has_what_it_prints_alone(capsys: pytest.CaptureFixture[str]) -> None:
    both = threading.Barrier(2)

    @click.command()
    @click.argument("word")
    def say(word: str) -> None:
        both.wait(30)
        click.echo(word)
        both.wait(30)

    spec = FunctionToMCP.convert(say)
    said: dict[str, str] = {}

    async def hear(word: str) -> None:
        said[word] = await call(spec, word=word)

    async with anyio.create_task_group() as group:
        group.start_soon(hear, "a")
        group.start_soon(hear, "b")
    click.echo("elsewhere")
    assert said == {"a": "a", "b": "b"}
    assert capsys.readouterr().out == "elsewhere\n"


def louder(word: str) -> str:
    if word == "no":
        raise typer.BadParameter("say something")
    return word.upper()


def greet(  # noqa: PLR0913, PLR0917  # one option a kind
    who: Annotated[str, typer.Argument(help="Who.", callback=louder)],
    times: Annotated[int, typer.Option(min=1, max=3)] = 2,
    home: Path = typer.Option(..., exists=True, file_okay=False),  # noqa: B008  # the shape
    day: dt.datetime = typer.Option(None, formats=["%Y"]),  # noqa: B008  # the shape
    key: str = typer.Option("k", hide_input=True),
    depth: int = typer.Option(4, hidden=True),
    size: int = typer.Option(default_factory=lambda: 7, parser=None),
) -> None:
    """Greets."""
    typer.echo(f"{who} {times} {home.name} {day and day.year} {key} {depth} {size}")


async def test_what_typer_says_of_a_parameter_holds(tmp_path: Path) -> None:
    spec = FunctionToMCP.convert(greet)
    assert spec.input_schema["properties"] == {
        "who": {"type": "string", "description": "Who."},
        "times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
        "home": {"type": "string", "format": "path"},
        "day": {"type": "string"},
        "key": {"type": "string", "writeOnly": True, "format": "password"},
        "size": {"type": "integer"},
    }
    assert spec.input_schema["required"] == ["who", "home"]
    home = {"home": str(tmp_path)}
    assert await call(spec, who="ann", **home) == f"ANN 2 {tmp_path.name} None k 4 7"
    assert " 2020 " in await call(spec, who="ann", day="2020", **home)
    with pytest.raises(InvalidArgumentsError) as caught:
        spec.validate({"who": "no", "home": "/no/such", "day": "20", "depth": 1})
    for told in (
        "say something",
        "this path does not exist",
        "one of the forms %Y",
        "`depth` is unknown",
    ):
        assert told in caught.value.message


async def test_a_function_of_typers_that_says_what_it_returns_returns_it() -> None:
    class Sum(BaseModel):
        total: int

    def add(a: int, b: int = typer.Option(1)) -> Sum:
        return Sum(total=a + b)

    assert await call(FunctionToMCP.convert(add), a=1) == '{"total":2}'


def test_a_callback_that_wants_a_command_line_is_refused() -> None:
    def check(context: typer.Context, value: str) -> str:
        return value

    def say(word: str = typer.Option("a", callback=check)) -> None: ...

    with pytest.raises(ToolDefinitionError, match="word has a callback that asks for typer's"):
        FunctionToMCP.convert(say)
