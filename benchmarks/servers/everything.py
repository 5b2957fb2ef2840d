"""What the official conformance suite asks a server for, as plain functions.

The suite (npm @modelcontextprotocol/conformance) names the tools, resources and prompts, and says
what each of them has to answer. `benchmarks.conformance` has Toolcrib serve this file.
"""

import asyncio
import json
from base64 import b64decode
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from tools.authoring import (
    DeclinedError,
    EmbeddedResource,
    Media,
    Message,
    RequestContext,
    prompt,
    resource,
    tool,
)

BESIDE = Path(__file__).with_name("beside.py")
"""Another function file, which comes and goes."""


PIXEL = Media.of(
    b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
    )
)
SILENCE = Media.of(b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="))


@tool
def test_simple_text() -> str:
    """Answers with text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> Media:
    """Answers with an image."""
    return PIXEL


@tool
def test_audio_content() -> Media:
    """Answers with a sound."""
    return SILENCE


@tool
def test_embedded_resource() -> EmbeddedResource:
    """Answers with a resource."""
    return EmbeddedResource("test://embedded-resource", "This is an embedded resource content.")


@tool
def test_multiple_content_types() -> list[str | Media | EmbeddedResource]:
    """Answers with text, an image and a resource."""
    data = EmbeddedResource(
        "test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json"
    )
    return ["Multiple content types test:", PIXEL, data]


@tool
async def test_tool_with_logging(context: RequestContext) -> str:
    """Logs while it runs."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.log("info", step)
        await asyncio.sleep(0.05)
    return "Tool with logging executed successfully"


@tool
async def test_tool_with_progress(context: RequestContext) -> str:
    """Reports how far it is."""
    for step in (0, 50, 100):
        await context.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0.05)
    return "Tool with progress executed successfully"


@tool
async def test_sampling(prompt: str, context: RequestContext) -> str:
    """Asks the client's model.

    Args:
        prompt: What it is asked.
        context: The call.
    """
    reply = await context.sample(prompt, max_tokens=100)
    return f"LLM response: {reply.text}"


class UserResponse(BaseModel):
    """What a person says."""

    response: str = Field(description="User's response")


async def _answered(context: RequestContext, kind: type[BaseModel], message: str) -> str:
    try:
        answer = await context.ask(kind, message)
    except DeclinedError as error:
        return f"action={'cancel' if error.dismissed else 'decline'}, content={{}}"
    return f"action=accept, content={answer.model_dump_json()}"


@tool
async def test_elicitation(message: str, context: RequestContext) -> str:
    """Asks the person.

    Args:
        message: What they read.
        context: The call.
    """
    return f"User response: {await _answered(context, UserResponse, message)}"


class Defaults(BaseModel):
    """A default of each kind (SEP-1034)."""

    name: str = Field(default="John Doe", description="User name")
    age: int = Field(default=30, description="User age")
    score: float = Field(default=95.5, description="User score")
    status: Literal["active", "inactive", "pending"] = Field(
        default="active", description="User status"
    )
    verified: bool = Field(default=True, description="Verification status")


@tool
async def test_elicitation_sep1034_defaults(context: RequestContext) -> str:
    """Asks by a form with defaults."""
    answered = await _answered(context, Defaults, "Please provide user information")
    return f"Elicitation result: {answered}"


class Priority(StrEnum):
    """How soon."""

    LOW_PRIORITY = "low"
    MEDIUM_PRIORITY = "medium"
    HIGH_PRIORITY = "high"


class Topic(StrEnum):
    """What about."""

    NEW_FEATURE = "feature"
    BUG_FIX = "bug"
    DOCUMENTATION = "docs"


class Choices(BaseModel):
    """Each way to let a person choose (SEP-1330)."""

    untitledSingle: Literal["option1", "option2", "option3"]  # noqa: N815  # the suite names it
    titledSingle: Priority  # noqa: N815  # the suite names it
    untitledMulti: list[Literal["option1", "option2", "option3"]]  # noqa: N815  # the same
    titledMulti: list[Topic]  # noqa: N815  # the suite names it
    legacyEnum: Literal["opt1", "opt2", "opt3"] = Field(  # noqa: N815  # the same
        json_schema_extra={"enumNames": ["Option One", "Option Two", "Option Three"]}
    )


@tool
async def test_elicitation_sep1330_enums(context: RequestContext) -> str:
    """Asks by a form with choices."""
    answered = await _answered(context, Choices, "Please select values")
    return f"Elicitation completed: {answered}"


@tool
def test_error_handling() -> str:
    """Fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool
def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "<none>",  # noqa: PT028  # no test
) -> str:
    """Takes a parameter that HTTP clients repeat in a header (SEP-2243).

    Args:
        region: Where.
    """
    return f"region={region}"


@tool
async def test_missing_capability(context: RequestContext) -> str:
    """Asks the client's model, which not every client offers (SEP-2575)."""
    return (await context.sample("Say hello", max_tokens=10)).text


@tool
async def test_streaming_elicitation(context: RequestContext) -> str:
    """Asks the person while the answer streams (SEP-2575)."""
    return await _answered(context, UserResponse, "The streaming probe asks for a word")


@tool
async def test_logging_tool(context: RequestContext) -> str:
    """Logs once; a client of 2026-07-28 hears it if its request says so (SEP-2575)."""
    await context.log("info", "test_logging_tool ran")
    return "logged"


class UserName(BaseModel):
    """Who somebody is."""

    name: str


class Confirm(BaseModel):
    """Whether somebody agrees."""

    ok: bool


class Color(BaseModel):
    """What somebody likes."""

    color: str


@tool
async def test_input_required_result_elicitation(context: RequestContext) -> str:
    """Asks the person (SEP-2322)."""
    return f"Hello, {(await context.ask(UserName, 'What is your name?')).name}!"


@tool
async def test_input_required_result_sampling(context: RequestContext) -> str:
    """Asks the client's model (SEP-2322)."""
    reply = await context.sample("What is the capital of France?", max_tokens=100)
    return f"Model said: {reply.text}"


@tool
async def test_input_required_result_list_roots(context: RequestContext) -> str:
    """Asks where the client works (SEP-2322)."""
    return f"Client exposed {len(await context.roots())} root(s)."


@tool
async def test_input_required_result_request_state(context: RequestContext) -> str:
    """Asks, and goes on where it was (SEP-2322)."""
    await context.ask(Confirm, "Please confirm")
    return "state-ok: confirmation received"


@tool
async def test_input_required_result_multiple_inputs(context: RequestContext) -> str:
    """Asks the person, the model and the client at once (SEP-2322)."""
    async with asyncio.TaskGroup() as group:
        group.create_task(context.ask(UserName, "What is your name?"))
        group.create_task(context.sample("Generate a greeting", max_tokens=50))
        group.create_task(context.roots())
    return "All inputs received."


@tool
async def test_input_required_result_multi_round(context: RequestContext) -> str:
    """Asks one after the other (SEP-2322)."""
    user = await context.ask(UserName, "Step 1: What is your name?")
    liked = await context.ask(Color, "Step 2: What is your favorite color?")
    return f"{user.name} likes {liked.color}."


@tool
async def test_input_required_result_tampered_state(context: RequestContext) -> str:
    """Asks; the state that comes back must be the one that was given (SEP-2322)."""
    await context.ask(Confirm, "Please confirm")
    return "state-ok"


@tool
async def test_input_required_result_capabilities(context: RequestContext) -> str:
    """Asks the client's model, of a client that cannot ask its person (SEP-2322)."""
    return (await context.sample("Say hello", max_tokens=50)).text


@tool
async def test_trigger_tool_change(context: RequestContext) -> str:
    """Saves another function file, with a tool in it, and calls that (SEP-2575)."""
    BESIDE.write_text('def test_dynamic_tool() -> str:\n    """Answers."""\n    return "dynamic"\n')
    return str((await context.call("test_dynamic_tool", {})).structured)


@tool
def test_trigger_prompt_change() -> str:
    """Saves another function file, with a prompt in it (SEP-2575)."""
    BESIDE.write_text(
        "from tools.authoring import prompt\n\n\n"
        '@prompt()\ndef test_dynamic_prompt() -> str:\n    """Says."""\n    return "dynamic"\n'
    )
    return "saved"


@resource("test://static-text")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PIXEL.data


@resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002  # the suite names it
    """A text for each id.

    Args:
        id: Which.
    """
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@resource("test://watched-resource")
def watched() -> str:
    """A text that clients subscribe to."""
    return "Watched resource content"


@prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: The first.
        arg2: The second.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803  # the same
    """A prompt that holds a resource.

    Args:
        resourceUri: Its address.
    """
    embedded = EmbeddedResource(resourceUri, "Embedded resource content for testing.")
    return [
        Message("user", embedded),
        Message("user", "Please process the embedded resource above."),
    ]


@prompt()
def test_prompt_with_image() -> list[Message]:
    """A prompt that holds an image."""
    return [Message("user", PIXEL), Message("user", "Please analyze the image above.")]


class UserContext(BaseModel):
    """What a prompt is about."""

    context: str


@prompt()
async def test_input_required_result_prompt(context: RequestContext) -> str:
    """A prompt that asks the person (SEP-2322)."""
    answer = await context.ask(UserContext, "What context should the prompt use?")
    return f"Use the following context: {answer.context}"
