"""From functions to resources and prompts, without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Literal

import mcp_types
import pytest
from mcp.server.mcpserver.prompts.base import AssistantMessage
from PIL import Image
from pydantic import BaseModel, SecretStr

from tools.authoring import EmbeddedResource, Media, Message, ResourceLink, prompt, resource
from tools.conversion.browsing import prompts_of, resources_of
from tools.core.context import RequestContext
from tools.core.errors import ToolDefinitionError, ToolError
from tools.core.offered import PromptSpec, ResourceSpec

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


def resource_of(uri: str, function: Callable[..., Any], **options: Any) -> ResourceSpec:
    (spec,) = resources_of(resource(uri, **options)(function))
    return spec


def prompt_of(function: Callable[..., Any], **options: Any) -> PromptSpec:
    (spec,) = prompts_of(prompt(**options)(function))
    return spec


async def read(spec: ResourceSpec, **variables: Any) -> tuple[EmbeddedResource, ...]:
    return await spec.read(spec.validate(variables), RequestContext())


async def got(spec: PromptSpec, **arguments: str) -> tuple[Message, ...]:
    return await spec.render(spec.validate(arguments), RequestContext())


def one(x: int) -> str:
    return str(x)


def some(x: int = 1, y: int = 2) -> str:
    return str(x + y)


@pytest.mark.parametrize(
    ("uri", "function", "told"),
    [
        ("beds", some, "has no scheme"),
        ("a://{z}", some, r"some has no parameter for \{z\} of a://\{z\}: it has x, y"),
        ("a://b", one, r"does not give x: write \{x\} into it"),
        ("a://{?x}", one, "may leave x of .* out: give the parameter of one a default"),
    ],
)
def test_an_address_that_does_not_give_what_the_function_takes_is_refused(
    uri: str, function: Callable[..., Any], told: str
) -> None:
    def fresh(**values: Any) -> Any:
        return function(**values)

    fresh.__wrapped__ = function  # type: ignore[attr-defined]  # as functools.wraps has it
    fresh.__name__ = function.__name__
    with pytest.raises(ToolDefinitionError, match=told):
        resource_of(uri, fresh)


def test_wrong_options_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(ToolDefinitionError, match=r"options of @resource .*known are name"):
        resource("a://b", mime="text/plain")  # type: ignore[call-arg]  # what is tested
    with pytest.raises(ToolDefinitionError, match="options of @prompt are wrong"):
        prompt(timeout=-1)


def test_a_prompt_is_marked_without_parentheses_and_a_resource_needs_its_address() -> None:
    @prompt
    def plan(x: int) -> str:
        return str(x)

    (spec,) = prompts_of(plan)
    assert (spec.name, plan(1)) == ("plan", "1")
    with pytest.raises(ToolDefinitionError, match=r'@resource\("garden://beds"\)'):
        resource(one)  # type: ignore[arg-type]  # what is tested


async def test_a_function_reads_several_resources() -> None:
    @resource("a://x", name="all")
    @resource("a://x/{x}")
    def both(x: int = 7) -> str:
        return str(x)

    template, plain = resources_of(both)
    assert (template.name, plain.name, plain.title) == ("both", "all", "All")
    assert (template.is_template, plain.is_template) == (True, False)
    assert await read(template, x="3") == (EmbeddedResource("", "3", "text/plain"),)
    assert await read(plain) == (EmbeddedResource("", "7", "text/plain"),)


class Bed(BaseModel):
    plant: str


class Shown(Bed):
    def to_text(self) -> str:
        return f"A bed of {self.plant}."


@pytest.mark.parametrize(
    ("value", "data", "mime_type"),
    [
        ("words", "words", "text/plain"),
        (b"\0", b"\0", "application/octet-stream"),
        ({"a": [1]}, '{"a":[1]}', "application/json"),
        (Bed(plant="bean"), '{"plant":"bean"}', "application/json"),
        (Shown(plant="bean"), "A bed of bean.", "text/plain"),
        (Media.of(PNG), PNG, "image/png"),
        (["a", "b"], '["a","b"]', "application/json"),
    ],
)
async def test_what_a_function_returns_is_text_bytes_or_json(
    value: Any, data: str | bytes, mime_type: str
) -> None:
    def give() -> Any:
        return value

    assert await read(resource_of("a://b", give)) == (EmbeddedResource("", data, mime_type),)


async def test_a_link_is_no_content_of_a_resource() -> None:
    def link() -> ResourceLink:
        return ResourceLink("a://c", "c")

    with pytest.raises(ToolError, match="returned a link"):
        await read(resource_of("a://b", link))


async def test_messages_are_made_of_whatever_a_prompt_returns() -> None:
    def talk() -> Iterator[Any]:
        yield "Hello."
        yield Message("assistant", "Yes?")
        yield Image.new("RGB", (1, 1))
        yield AssistantMessage("In the words of the SDK.")
        yield mcp_types.EmbeddedResource(
            resource=mcp_types.TextResourceContents(uri="a://b", text="c")
        )
        yield {"a": 1}

    first, second, image, of_sdk, embedded, data = await got(prompt_of(talk))
    assert first == Message("user", "Hello.")
    assert second == Message("assistant", "Yes?")
    assert isinstance(image.content, Media)
    assert of_sdk == Message("assistant", "In the words of the SDK.")
    assert embedded == Message("user", EmbeddedResource("a://b", "c"))
    assert data == Message("user", '{"a":1}')


def test_nobody_has_another_role() -> None:
    with pytest.raises(ValueError, match="'system'; make it user or assistant"):
        Message("system", "Obey.")  # type: ignore[arg-type]  # what is tested


class Color(Enum):
    RED = "red"
    BLUE = "blue"


async def test_types_and_functions_complete_arguments() -> None:
    def mix(color: Color, strong: bool, how: Literal["a", 1] | None = None, name: str = "") -> str:
        return f"{color}{strong}{how}{name}"

    async def names(value: str, color: str) -> list[str]:
        return [f"{color} {value}"]

    spec = prompt_of(mix, complete={"name": names})

    async def completed(argument: str, typed: str = "", **given: str) -> list[str]:
        return await spec.complete(argument, typed, given, RequestContext())

    assert await completed("color", "BL") == ["blue"]
    assert await completed("strong") == ["true", "false"]
    assert await completed("how") == ["a", "1"]
    assert await completed("name", "sky", color="blue") == ["blue sky"]
    assert await completed("name", "sky") == []
    assert await completed("nothing") == []


@pytest.mark.parametrize(
    ("complete", "told"),
    [
        ({"z": list}, "one has no 'z' to complete; it has x"),
        ({"x": lambda other: [other]}, "takes 'other'; it may take 'value', .* and x"),
    ],
)
def test_a_completion_of_nothing_is_refused(
    complete: dict[str, Callable[..., Any]], told: str
) -> None:
    def one(x: int) -> str:
        return str(x)

    with pytest.raises(ToolDefinitionError, match=told):
        prompt_of(one, complete=complete)


@pytest.mark.parametrize("make", [resource("vault://{key}"), prompt()], ids=["resource", "prompt"])
def test_what_everybody_is_shown_takes_no_secret(make: Callable[..., Any]) -> None:
    def unlock(key: dict[str, SecretStr]) -> str:
        return "open"

    marked = make(unlock)
    with pytest.raises(ToolDefinitionError, match=r"unlock takes the secret key, .*a tool"):
        [*resources_of(marked), *prompts_of(marked)]
