"""Converting functions: refusals, texts, options, injection, and how a call runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import InternalError, ToolDefinitionError, ToolFailedError, as_tool_error
from tools.core.spec import Confirmation, Effect, ToolScope, tool


@dataclass
class Span:
    """A span of lines.

    Attributes:
        start: First line.
        end: Last line, or the end of the file.
    """

    start: int
    end: int | None = None


class Toolbox:
    def method(self, x: int) -> int:
        return x

    def __call__(self, x: int) -> int:
        return x


def double(x: int) -> int:
    return x * 2


def _unknown_annotation(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # the shape


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (_unknown_annotation, "'Nowhere', which cannot be found; import or define it"),
        (lambda: 1, "'<lambda>' cannot be the name of a tool.*name='…'"),
    ],
)
def test_a_shape_that_cannot_be_converted_says_what_to_change(
    function: Callable[..., Any], remedy: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=remedy):
        FunctionToMCP.convert(function)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("getUser", "get_user"),
        ("HTTPGet", "http_get"),
        ("_private", "private"),
        ("__dunder__", "dunder"),
        ("already_fine_2", "already_fine_2"),
    ],
)
def test_a_name_becomes_words_with_underscores(name: str, expected: str) -> None:
    def function() -> None: ...

    function.__name__ = name
    spec = FunctionToMCP.convert(function)
    assert spec.name == expected


def test_an_object_is_named_by_its_class() -> None:
    assert FunctionToMCP.convert(Toolbox()).name == "toolbox"
    assert FunctionToMCP.convert(Toolbox().__call__).name == "toolbox"


@pytest.mark.parametrize("name", ["", "Read", "read-file", "é", "a" * 65, "a\n"])
def test_a_name_outside_the_rule_is_refused(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="name"):
        FunctionToMCP.convert(lambda: None, name=name)


def test_a_text_that_no_client_could_be_sent_is_refused() -> None:
    def shout(text: str) -> str:
        return text.upper()

    shout.__doc__ = "Shouts \ud800 loud."  # in the source Python 3.13 refuses it
    with pytest.raises(ToolDefinitionError, match=r"'shout'.*ud800"):
        FunctionToMCP.convert(shout)
    assert FunctionToMCP.convert(shout, description="Shouts.").description == "Shouts."


def test_texts_come_from_annotations_before_the_docstring() -> None:
    def search(
        query: Annotated[str, "From Annotated."], page: Annotated[int, Doc("From Doc.")]
    ) -> int:
        """Searches.

        Args:
            query: From the docstring.
            page: From the docstring.
        """
        return query.count("") + page

    properties = FunctionToMCP.convert(search).input_schema["properties"]
    assert properties["query"]["description"] == "From Annotated."
    assert properties["page"]["description"] == "From Doc."


def test_texts_of_fields_come_from_annotations_too() -> None:
    @dataclass
    class Box:
        width: Annotated[int, "How wide."]

    class Order(BaseModel):
        box: Annotated[Box, Doc("What it comes in.")]
        count: Annotated[int, "Not this.", Field(description="How many.")]

    def send(order: Order) -> None: ...

    definitions = FunctionToMCP.convert(send).input_schema["$defs"]
    assert definitions["Box"]["properties"]["width"]["description"] == "How wide."
    assert definitions["Order"]["properties"]["box"]["description"] == "What it comes in."
    assert definitions["Order"]["properties"]["count"]["description"] == "How many."


def test_a_mark_gives_the_options_and_convert_overrides_them() -> None:
    @tool(
        scope=ToolScope.CONTEXT,
        effects={Effect.WRITE},
        destructive=True,
        confirmation=Confirmation.REQUIRED,
        tags=("a",),
        aliases=("erase",),
        timeout=5.0,
    )
    def delete_all() -> None: ...

    spec = FunctionToMCP.convert(delete_all)
    assert (spec.name, spec.title, spec.description) == ("delete_all", "Delete all", "")
    assert (spec.scope, spec.effects) == (ToolScope.CONTEXT, frozenset({Effect.WRITE}))
    assert (spec.destructive, spec.confirmation) == (True, Confirmation.REQUIRED)
    assert (spec.tags, spec.aliases, spec.timeout) == (("a",), ("erase",), 5.0)

    overridden = FunctionToMCP.convert(
        delete_all,
        name="wipe",
        description="Wipes.",
        title="Wipe it",
        tags=("b",),
        source="created",
    )
    assert (overridden.name, overridden.title) == ("wipe", "Wipe it")
    assert (overridden.description, overridden.source) == ("Wipes.", "created")
    assert (overridden.tags, overridden.timeout) == (("b",), 5.0)


def test_of_an_unmarked_function_the_worst_is_supposed() -> None:
    spec = FunctionToMCP.convert(double)
    assert (spec.scope, spec.read_only) == (ToolScope.SANDBOXED, False)
    assert (spec.destructive, spec.open_world, spec.idempotent) == (True, True, False)


def test_options_may_be_plain_strings_and_lists() -> None:
    options: dict[str, Any] = {"scope": "context", "effects": ["read"], "tags": ["a"]}
    spec = FunctionToMCP.convert(double, **options)
    assert (spec.scope, spec.effects) == (ToolScope.CONTEXT, frozenset({Effect.READ}))
    assert (spec.tags, spec.destructive) == (("a",), False)


@pytest.mark.parametrize(
    "options", [{"efects": ["read"]}, {"effects": ["reed"]}, {"timeout": 0}, {"scope": "all"}]
)
def test_a_wrong_option_is_refused_with_the_known_ones(options: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match=f"{next(iter(options))}.*known are name, desc"):
        FunctionToMCP.convert(double, **options)


async def test_a_wrong_return_type_is_a_failure_of_the_tool_and_of_ours_a_defect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lie() -> int:
        return "secret"  # type: ignore[return-value]  # the shape

    for source, kind in (("builtin", InternalError), ("function", ToolFailedError)):
        spec = FunctionToMCP.convert(lie, source=source)
        with pytest.raises(kind, match="lie returned the wrong type: str does") as caught:
            await spec.invoke({}, RequestContext())
        assert "secret" not in caught.value.message
    as_tool_error(caught.value, "lie")
    assert "ValidationError: 1 validation error for int" in caplog.text
    assert "output.py" not in caplog.text


async def test_a_synchronous_function_runs_off_the_event_loop() -> None:
    def thread() -> int:
        return threading.get_ident()

    async def loop() -> int:
        await anyio.lowlevel.checkpoint()
        return threading.get_ident()

    off, on = FunctionToMCP.convert(thread), FunctionToMCP.convert(loop)
    here = threading.get_ident()
    assert (await off.invoke({}, RequestContext())).structured["result"] != here
    assert (await on.invoke({}, RequestContext())).structured["result"] == here


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_a_cancelled_read_is_abandoned_and_a_cancelled_write_is_awaited(
    effect: Effect,
) -> None:
    started, release, finished = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        release.wait(5)
        finished.set()

    spec = FunctionToMCP.convert(slow, effects={effect})

    async def call() -> None:
        await spec.invoke({}, RequestContext())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()
            if effect is Effect.WRITE:
                release.set()
    assert finished.is_set() is (effect is Effect.WRITE)
    release.set()
    finished.wait(5)


class Placed(BaseModel):
    """Something at a place.

    Attributes:
        place: Where it is.
        note: What the base says.
        size: Its size.
    """

    place: str
    note: str
    size: int


class Bed(Placed):
    """A bed.

    Attributes:
        note: What the bed says.
    """

    size: Annotated[int, "How long it is."]


@dataclass
class Longer(Span):
    step: int = 1


def test_inherited_fields_have_the_texts_of_the_base_class() -> None:
    def look(bed: Bed, span: Longer) -> Bed:
        return bed

    spec = FunctionToMCP.convert(look)
    assert spec.output_schema is not None
    for definition in (spec.input_schema["$defs"]["Bed"], spec.output_schema):
        texts = {name: each["description"] for name, each in definition["properties"].items()}
        assert texts == {
            "place": "Where it is.",
            "note": "What the bed says.",
            "size": "How long it is.",
        }
    start = spec.input_schema["$defs"]["Longer"]["properties"]["start"]
    assert start["description"] == "First line."
