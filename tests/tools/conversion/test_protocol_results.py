"""Results of MCP that a function makes itself are passed on, or refused with what to change."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from fastmcp.tools.base import ToolResult as FastResult
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.content import Media
from tools.core.content import ResourceLink as Link
from tools.core.context import RequestContext
from tools.core.errors import ToolDefinitionError, ToolFailedError
from tools.core.result import ToolResult, decode_result, encode_result

PNG = b64encode(b"\x89PNG\r\n\x1a\n".ljust(64, b"\0")).decode()


class Count(BaseModel):
    n: int


class Own(CallToolResult):
    pass


class Held(BaseModel):
    inner: CallToolResult


class Model(BaseModel):
    inner: Any


@dataclass
class Data:
    inner: Any


class Table(TypedDict):
    inner: Any


def texts(*said: str) -> list[Any]:
    return [TextContent(text=each) for each in said]


async def answer(returns: Any, value: object) -> ToolResult:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = returns
    spec = FunctionToMCP.convert(tool, source="function:x")
    result = await spec.invoke(spec.validate({}), RequestContext())
    assert decode_result(json.loads(json.dumps(encode_result(result)))) == result
    return result


FAILURES: list[tuple[Any, Callable[[], object]]] = [
    (CallToolResult, lambda: CallToolResult(content=texts("boom"), is_error=True)),
    (Any, lambda: CallToolResult(content=texts("boom"), is_error=True)),
    (CallToolResult | None, lambda: CallToolResult(content=texts("boom"), is_error=True)),
    (CallToolResult | str, lambda: Own(content=texts("boom"), is_error=True)),
    (Own, lambda: Own(content=texts("boom"), structured_content={"a": 1}, is_error=True)),
    (
        Annotated[CallToolResult, Count],
        lambda: CallToolResult(content=texts("boom"), is_error=True),
    ),
    (FastResult, lambda: FastResult(content="boom", is_error=True)),
    (Any, lambda: FastResult(content="boom", is_error=True)),
]


@pytest.mark.parametrize(("returns", "make"), FAILURES)
async def test_a_failure_is_a_failure_with_its_text(
    returns: Any, make: Callable[[], object]
) -> None:
    with pytest.raises(ToolFailedError, match=r"^boom(\n\{\"a\":1\})?$"):
        await answer(returns, make())


@pytest.mark.parametrize(("content", "message"), [([], '{"a":1}'), (texts('{"a": 1}'), '{"a": 1}')])
async def test_the_structured_content_of_a_failure_is_told_once(
    content: list[Any], message: str
) -> None:
    made = CallToolResult(content=content, structured_content={"a": 1}, is_error=True)
    with pytest.raises(ToolFailedError) as raised:
        await answer(CallToolResult, made)
    assert raised.value.message == message


async def test_content_structured_content_and_meta_are_passed_on() -> None:
    content = [
        *texts("seen"),
        ImageContent(data=PNG, mime_type="image/png"),
        ResourceLink(uri="file:///a", name="a"),
        EmbeddedResource(resource=TextResourceContents(uri="x://y", text="in")),
    ]
    made = CallToolResult(content=content, structured_content={"k": [1]}, _meta={"m": 1})
    result = await answer(CallToolResult, made)
    assert (result.structured, result.text, result.meta) == ({"k": [1]}, "seen", {"m": 1})
    text, image, link, resource = result.blocks
    assert text == "seen"
    assert isinstance(image, Media)
    assert link == Link("file:///a", "a")
    assert (getattr(resource, "uri", ""), getattr(resource, "data", "")) == ("x://y", "in")


@pytest.mark.parametrize(
    ("returns", "value", "structured", "text"),
    [
        (CallToolResult, CallToolResult(content=texts("a", "b")), {"result": "a\nb"}, "a\nb"),
        (CallToolResult | None, None, {"result": None}, "null"),
        (Any, CallToolResult(content=[], structured_content=[1]), {"result": [1]}, "[1]"),
        (FastResult, FastResult(content="t", structured_content={"a": 1}), {"a": 1}, "t"),
        (
            Annotated[CallToolResult, Count],
            CallToolResult(content=texts("three"), structured_content={"n": 3}),
            {"n": 3},
            "three",
        ),
        (
            Annotated[CallToolResult, list[int]],
            CallToolResult(content=texts("x"), structured_content={"result": [1]}),
            {"result": [1]},
            "x",
        ),
    ],
)
async def test_what_is_structured_is_that_or_the_text(
    returns: Any, value: object, structured: dict[str, Any], text: str
) -> None:
    result = await answer(returns, value)
    assert (result.structured, result.text) == (structured, text)


@pytest.mark.parametrize("given", [{"n": "x"}, {}, None, [1]])
async def test_structured_content_is_held_against_its_declared_type(given: Any) -> None:
    made = CallToolResult(content=texts("x"), structured_content=given)
    with pytest.raises(ToolFailedError, match="does not match its return type"):
        await answer(Annotated[CallToolResult, Count], made)


@pytest.mark.parametrize(
    "value",
    [[Own(content=[])], {"a": FastResult(content="x")}, InputRequiredResult(request_state="x")],
)
async def test_one_inside_a_value_is_no_data(value: object) -> None:
    with pytest.raises(ToolFailedError, match=r"return it by itself|which is not a result"):
        await answer(Any, value)


@pytest.mark.parametrize("returns", [Any, "typed"])
@pytest.mark.parametrize("box", [Model, Data, Table])
@pytest.mark.parametrize("inner", [Own(content=[]), [FastResult(content="x")]])
async def test_one_inside_an_object_is_no_data(box: Any, inner: object, returns: Any) -> None:
    with pytest.raises(ToolFailedError, match="return it by itself"):
        await answer(box if returns == "typed" else returns, box(inner=inner))


@pytest.mark.parametrize(
    "returns",
    [
        list[CallToolResult],
        dict[str, FastResult],
        tuple[CallToolResult, int],
        Iterator[CallToolResult],
        Held,
        InputRequiredResult,
        CallToolResult | InputRequiredResult,
    ],
)
async def test_types_that_hold_one_are_refused(returns: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"return it by itself|which is not a result"):
        await answer(returns, None)


async def test_one_that_is_awaited_is_passed_on() -> None:
    async def made() -> CallToolResult:
        return CallToolResult(content=texts("later"))

    assert (await answer(Awaitable[CallToolResult], made())).text == "later"


@pytest.mark.parametrize(
    ("value", "structured", "named"),
    [
        (math.nan, {"result": None}, "it is NaN"),
        ({"v": [1.5, -math.inf]}, {"v": [1.5, None]}, "v.1 is -Infinity"),
        (
            CallToolResult(content=texts("x"), structured_content={"a": math.inf}),
            {"a": None},
            "a is Infinity",
        ),
        ([math.nan] * 9, {"result": [None] * 9}, "4 is NaN and 4 more"),
    ],
)
async def test_a_number_that_json_does_not_have_is_named(
    value: object, structured: object, named: str
) -> None:
    result = await answer(Any, value)
    assert result.structured == structured
    note = result.text.splitlines()[-1]
    assert note.startswith("[Null stands for numbers that JSON does not have: ")
    assert named in note
    assert result.blocks[-1] == note


async def test_the_words_nan_and_infinity_are_texts() -> None:
    result = await answer(Any, {"NaN": "Infinity", "n": None})
    assert (result.text, result.blocks) == ('{"NaN":"Infinity","n":null}', ())
