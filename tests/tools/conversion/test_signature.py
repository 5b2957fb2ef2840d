"""How calls are bound: every kind of parameter, hidden ones, and names that must not pass."""

from __future__ import annotations

import functools
from types import EllipsisType
from typing import Annotated, Any, Required, TypedDict

import pytest
import typing_extensions
from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import ReadOnly, Unpack

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError
from tools.core.spec import Subject, SubjectKind, tool


class Options(TypedDict, total=False):
    depth: Required[int]
    follow: bool
    only: ReadOnly[list[str]]


async def call(function: Any, raw: dict[str, Any], **options: Any) -> Any:
    spec = FunctionToMCP.convert(function, **options)
    result = await spec.invoke(spec.validate(raw), RequestContext())
    return result.structured.get("result", result.structured)


def refusal(function: Any, raw: dict[str, Any], **options: Any) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        FunctionToMCP.convert(function, **options).validate(raw)
    return caught.value.message


@pytest.mark.parametrize("unpack", [Unpack, typing_extensions.Unpack])
async def test_an_unpacked_typed_dict_is_flat(unpack: Any) -> None:
    def walk(path: str, **options) -> list[Any]:  # type: ignore[no-untyped-def]  # noqa: ANN003  # annotated below
        return [path, options]

    walk.__annotations__["options"] = unpack[Options]
    schema = FunctionToMCP.convert(walk).input_schema
    assert list(schema["properties"]) == ["path", "depth", "follow", "only"]
    assert schema["required"] == ["path", "depth"]
    assert schema["additionalProperties"] is False
    assert await call(walk, {"path": "a", "depth": 1}) == ["a", {"depth": 1}]
    assert "`deep` is unknown" in refusal(walk, {"path": "a", "depth": 1, "deep": 2})


async def test_an_unpacked_tuple_is_one_list() -> None:
    def pair(*args: Unpack[tuple[int, str]]) -> list[Any]:  # noqa: UP044  # the shape
        return list(args)

    assert await call(pair, {"args": [1, "a"]}) == [1, "a"]
    assert "`args[1]` is missing" in refusal(pair, {"args": [1]})


def find(query: str, budget: str = "s", **rest: Any) -> list[Any]:
    return [query, budget, rest]


async def test_a_hidden_parameter_keeps_its_default_and_is_not_known() -> None:
    spec = FunctionToMCP.convert(find, hidden={"budget", "rest"})
    assert list(spec.input_schema["properties"]) == ["query"]
    assert spec.input_schema["additionalProperties"] is False
    assert await call(find, {"query": "q"}, hidden={"budget"}) == ["q", "s", {}]
    with pytest.raises(InvalidArgumentsError, match="`budget` is unknown") as caught:
        spec.validate({"query": "q", "budget": "x"})
    assert caught.value.suggestions == ()


def test_a_hidden_parameter_does_not_come_through_the_keywords() -> None:
    assert "`budget` is unknown" in refusal(find, {"query": "q", "budget": 1}, hidden={"budget"})


def test_an_injected_parameter_does_not_come_through_the_keywords() -> None:
    def who(context: RequestContext, **rest: Any) -> None: ...

    assert "`context` is unknown" in refusal(who, {"context": 1})


async def test_the_object_of_a_method_does_not_come_through_the_keywords() -> None:
    class Box:
        def put(self, **items: int) -> dict[str, int]:
            return items

    assert await call(Box().put, {"a": 1}) == {"a": 1}
    assert "`self` is unknown" in refusal(Box().put, {"self": 1})


async def test_pydantic_hides_a_parameter_as_well() -> None:
    def ask(question: str, depth: SkipJsonSchema[int] = 7) -> list[Any]:
        return [question, depth]

    assert "depth" not in FunctionToMCP.convert(ask).input_schema["properties"]
    assert await call(ask, {"question": "q"}) == ["q", 7]


async def test_a_hidden_parameter_with_a_field_has_the_default_of_the_field() -> None:
    def ask(
        a: int = Field(5),
        b: list[int] = Field(default_factory=lambda: [1]),  # noqa: B008  # the shape
    ) -> list[Any]:
        return [a, b]

    assert await call(ask, {}, hidden={"a", "b"}) == [5, [1]]


@pytest.mark.parametrize(
    ("hidden", "complaint"),
    [
        ({"budge"}, "no parameter 'budge' to hide; did you mean 'budget'"),
        ({"zzz"}, "no parameter 'zzz' to hide; it has query, budget, rest"),
        ({"query"}, "query of find is hidden and has no value; give it a default"),
    ],
)
def test_what_cannot_be_hidden_is_refused(hidden: set[str], complaint: str) -> None:
    with pytest.raises(ToolDefinitionError, match=complaint):
        FunctionToMCP.convert(find, hidden=hidden)


def look(q: str, /, top: int = 3, *rest: str, **more: int) -> list[Any]:
    """Looks.

    Args:
        q: What for.
        top: How many.
    """
    return [q, top, list(rest), more]


async def test_callers_know_a_renamed_parameter_by_its_new_name_only() -> None:
    rename = {"q": "query", "rest": "others"}
    spec = FunctionToMCP.convert(look, rename=rename)
    assert list(spec.input_schema["properties"]) == ["query", "top", "others"]
    assert spec.input_schema["properties"]["query"]["description"] == "What for."
    assert spec.input_schema["required"] == ["query"]
    raw = {"query": "a", "others": ["b"], "size": 5}
    assert await call(look, raw, rename=rename) == ["a", 3, ["b"], {"size": 5}]
    assert spec.validate(raw)["query"] == "a"
    assert "`query` is missing" in refusal(look, {"top": 1}, rename=rename)
    assert "`q` is unknown; did you mean `query`?" in refusal(look, {"q": "a"}, rename=rename)


async def test_names_can_be_exchanged() -> None:
    def between(a: int, b: int) -> list[int]:
        return [a, b]

    assert await call(between, {"a": 1, "b": 2}, rename={"a": "b", "b": "a"}) == [2, 1]


async def test_a_renamed_field_of_a_class_is_given_to_it() -> None:
    @tool(rename={"inner": "size"})
    class Box(BaseModel):
        inner: int = Field(alias="in")

    assert await call(Box, {"size": 5}) == {"in": 5}


@pytest.mark.parametrize(
    ("rename", "complaint"),
    [
        ({"zzz": "query"}, "no parameter 'zzz' to rename; it has q, top, rest"),
        ({"more": "others"}, "no parameter 'more' to rename"),
        ({"q": "top"}, "two parameters that callers know as 'top': q and top"),
    ],
)
def test_what_cannot_be_renamed_is_refused(rename: dict[str, str], complaint: str) -> None:
    with pytest.raises(ToolDefinitionError, match=complaint):
        FunctionToMCP.convert(look, rename=rename)


def test_what_a_call_is_about_is_named_as_callers_do() -> None:
    options: Any = {"rename": {"q": "path"}}
    about = Subject(SubjectKind.PATH, "path")
    assert FunctionToMCP.convert(look, subject=about, **options).subject == about
    with pytest.raises(
        ToolDefinitionError, match="look has the subject 'q', which is not an argument"
    ):
        FunctionToMCP.convert(look, subject=Subject(SubjectKind.PATH, "q"), **options)


async def test_a_partial_with_its_value_hidden_wraps_a_function() -> None:
    wrapped = functools.partial(find, budget="l")
    options: Any = {"name": "seek", "hidden": {"budget"}, "rename": {"query": "q"}}
    spec = FunctionToMCP.convert(wrapped, **options)
    assert (spec.name, list(spec.input_schema["properties"])) == ("seek", ["q"])
    assert await call(wrapped, {"q": "a"}, **options) == ["a", "l", {}]
    assert "`budget` is unknown" in refusal(wrapped, {"q": "a", "budget": "s"}, **options)


def test_two_parameters_with_one_name_are_refused() -> None:
    def mail(a: Annotated[str, Field(alias="b")], b: str) -> None: ...

    with pytest.raises(ToolDefinitionError, match="callers know as 'b': a and b; change the alias"):
        FunctionToMCP.convert(mail)


async def test_names_that_mean_something_elsewhere_are_ordinary() -> None:
    def odd(  # one a name
        self: int,
        cls: int,
        context: int,
        type: int,  # noqa: A002  # the shape
        größe: int,  # noqa: PLC2401  # the shape
        _x: int,
    ) -> int:
        return self + cls + context + type + größe + _x

    names = ["self", "cls", "context", "type", "größe", "_x"]
    assert list(FunctionToMCP.convert(odd).input_schema["properties"]) == names
    assert await call(odd, dict.fromkeys(names, 1)) == 6


async def test_eighty_parameters_are_many_and_fine() -> None:
    scope: dict[str, Any] = {}
    names = [f"p{place}" for place in range(80)]
    exec(f"def many({', '.join(f'{name}: int' for name in names)}): return p79", scope)  # noqa: S102  # nobody writes them by hand
    assert await call(scope["many"], dict.fromkeys(names, 5)) == 5
    assert refusal(scope["many"], {}).count("is missing") == 80


def test_what_has_an_ellipsis_for_its_default_is_required_unless_its_type_says_so() -> None:
    def ask(a: int = ..., b: int | EllipsisType = ...) -> None: ...

    schema = FunctionToMCP.convert(ask).input_schema
    assert schema["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert schema["required"] == ["a"]


def test_a_deprecated_parameter_says_so() -> None:
    def ask(old: Annotated[int, Field(deprecated=True)] = 1) -> None: ...

    assert FunctionToMCP.convert(ask).input_schema["properties"]["old"]["deprecated"] is True


def test_keywords_of_a_type_that_no_json_becomes_are_refused() -> None:
    def take(**rest: range) -> None: ...

    with pytest.raises(
        ToolDefinitionError, match=r"The \*\* parameter of take .* becomes <class 'r"
    ):
        FunctionToMCP.convert(take)


def test_the_context_of_another_framework_is_refused_with_what_to_take_instead() -> None:
    async def tell(text: str, context: Context[Any, Any] | None = None) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"tell takes .* as context.* RequestContext of"):
        FunctionToMCP.convert(tell)
    assert FunctionToMCP.convert(tell, hidden={"context"}).input_schema["required"] == ["text"]
