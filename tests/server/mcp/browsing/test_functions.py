"""Resources, prompts and completion of a function file, as real clients of both eras see them."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from server.settings.gateway import ProfileSettings
from tests.people import text_at

if TYPE_CHECKING:
    from tests.server.mcp.browsing.conftest import Garden


GARDEN = '''
    import os
    from typing import Literal
    from tools.authoring import (
        EmbeddedResource, Media, Message, NotFoundError, RequestContext, ResourceLink, prompt,
        resource, tool,
    )

    BEDS = {"north": ["bean"], "south": ["leek", "rose"]}
    PNG = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(16)

    @resource("garden://beds", title="The beds", audience=("user",), priority=0.5, size=17)
    def beds() -> list[str]:
        """Which beds there are."""
        return list(BEDS)

    @resource("garden://beds/{bed}{?most}", complete={"bed": lambda: list(BEDS)})
    async def bed(bed: str, context: RequestContext, most: int = 9) -> dict[str, list[str]]:
        """What grows in a bed.

        Args:
            bed: Which one.
        """
        await context.report_progress(1, 2, "looking")
        if bed == "gone":
            raise NotFoundError("It is gone.")
        if bed == "ill":
            raise ValueError("An ill bed.")
        return {"plants": BEDS[bed][:most], "for": [context.identity.user_id]}

    @resource("garden://map", mime_type="image/svg+xml", tags=("drawn",))
    def plan_of_beds() -> bytes:
        return b"<svg/>"

    @resource("garden://files/{+path}")
    def file(path: str) -> str | None:
        return None if path == "none" else f"text of {path}"

    @resource("garden://all")
    def everything() -> list[EmbeddedResource | Media | str]:
        return [EmbeddedResource("garden://beds", "north", "text/plain"), Media.of(PNG), "words"]

    @prompt(tags=("drawn",))
    def sow(plant: Literal["bean", "leek"], beds: int = 1) -> str:
        """Plans to sow.

        Args:
            plant: What.
        """
        return f"Sow {plant} in {beds + 1} beds."

    @prompt(title="Look at it", complete={"bed": lambda value, plant="": [plant, value]})
    def look(bed: str, plant: str = "") -> list[Message | Media | EmbeddedResource]:
        embedded = EmbeddedResource(f"garden://beds/{bed}", b"\\0\\1")
        return ["Look:", Media.of(PNG), embedded, Message("assistant", ResourceLink("a://b", "b"))]

    @tool
    def pid() -> int:
        return os.getpid()

    @resource("garden://process")
    def process() -> str:
        return str(os.getpid())
'''


async def test_what_functions_offer_is_listed_beside_ours(served: Garden, mode: str) -> None:
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        tools = {each.name for each in (await client.list_tools()).tools}
    uris = [each.uri for each in listed]
    assert uris[:4] == ["garden://beds", "garden://map", "garden://all", "garden://process"]
    assert "context://documents" in uris
    first = listed[0]
    assert (first.name, first.title, first.size) == ("beds", "The beds", 17)
    assert first.description == "Which beds there are."
    assert first.annotations == types.Annotations(audience=["user"], priority=0.5)
    assert listed[1].mime_type == "image/svg+xml"
    assert [each.uri_template for each in templates][:2] == [
        "garden://beds/{bed}{?most}",
        "garden://files/{+path}",
    ]
    assert prompts.keys() >= {"sow", "look", "recall"}
    assert prompts["look"].title == "Look at it"
    assert prompts["sow"].arguments == [
        types.PromptArgument(name="plant", description="What.", required=True),
        types.PromptArgument(name="beds", required=False),
    ]
    assert "pid" in tools
    assert not tools & {"beds", "sow"}


async def test_text_json_bytes_and_several_contents_are_read(served: Garden, mode: str) -> None:
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        (names,) = (await client.read_resource("garden://beds")).contents
        (one,) = (await client.read_resource("garden://beds/south?most=1")).contents
        (drawn,) = (await client.read_resource("garden://map")).contents
        (file,) = (await client.read_resource("garden://files/a/b%20c.txt")).contents
        several = (await client.read_resource("garden://all")).contents
    assert names == types.TextResourceContents(
        uri="garden://beds", mime_type="application/json", text='["north","south"]'
    )
    assert isinstance(one, types.TextResourceContents)
    assert one.uri == "garden://beds/south?most=1"
    assert one.text.startswith('{"plants":["leek"]')
    assert isinstance(drawn, types.BlobResourceContents)
    assert (b64decode(drawn.blob), drawn.mime_type) == (b"<svg/>", "image/svg+xml")
    assert isinstance(file, types.TextResourceContents)
    assert (file.text, file.mime_type) == ("text of a/b c.txt", "text/plain")
    assert [each.uri for each in several] == ["garden://beds", "garden://all", "garden://all"]
    assert [each.mime_type for each in several] == ["text/plain", "image/png", "text/plain"]


@pytest.mark.parametrize("uri", ["garden://beds/gone", "garden://files/none", "garden://nothing"])
async def test_what_is_not_there_is_told_in_the_code_of_the_era(
    served: Garden, mode: str, uri: str
) -> None:
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        with pytest.raises(MCPError, match=f"Resource not found: {uri}") as caught:
            await client.read_resource(uri)
    assert caught.value.error.code == (-32002 if mode == "legacy" else types.INVALID_PARAMS)


@pytest.mark.parametrize(
    ("uri", "code", "told"),
    [
        ("garden://beds/south?most=x", types.INVALID_PARAMS, "`most` is 'x'; send an integer"),
        ("garden://beds/ill", types.INVALID_PARAMS, "An ill bed."),
        ("garden://files/..%2F..%2Fetc", types.INVALID_PARAMS, "path in .* leads elsewhere"),
        ("garden://files/%2Fetc/passwd", types.INVALID_PARAMS, "path in .* leads elsewhere"),
        ("garden://beds/west", types.INTERNAL_ERROR, "KeyError: 'west'"),
    ],
)
async def test_a_failure_says_why(
    served: Garden, mode: str, uri: str, code: int, told: str
) -> None:
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        with pytest.raises(MCPError, match=told) as caught:
            await client.read_resource(uri)
    assert caught.value.error.code == code


async def test_reading_runs_in_the_process_of_the_file(served: Garden) -> None:
    async with served(GARDEN) as app, Client(app.server) as client:
        called = await client.call_tool("pid", {})
        read = await text_at(client, "garden://process")
    assert called.structured_content is not None
    assert int(read) == called.structured_content["result"]


async def test_prompts_take_typed_arguments_and_give_messages(served: Garden, mode: str) -> None:
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        sown = await client.get_prompt("sow", {"plant": "bean", "beds": "5"})
        looked = await client.get_prompt("look", {"bed": "north"})
        with pytest.raises(MCPError, match="`plant` is 'oak'; send one of 'bean', 'leek'"):
            await client.get_prompt("sow", {"plant": "oak"})
        with pytest.raises(MCPError, match=r"plant.*missing"):
            await client.get_prompt("sow")
    (message,) = sown.messages
    assert (sown.description, message.role) == ("Plans to sow.", "user")
    assert message.content == types.TextContent(text="Sow bean in 6 beds.")
    text, image, embedded, link = (each.content for each in looked.messages)
    assert text == types.TextContent(text="Look:")
    assert isinstance(image, types.ImageContent)
    assert isinstance(embedded, types.EmbeddedResource)
    assert embedded.resource == types.BlobResourceContents(
        uri="garden://beds/north", blob="AAE=", mime_type="application/octet-stream"
    )
    assert link == types.ResourceLink(uri="a://b", name="b")
    assert [each.role for each in looked.messages] == ["user", "user", "user", "assistant"]


async def _completed(client: Client, ref: Any, name: str, typed: str, **given: str) -> list[str]:
    argument = {"name": name, "value": typed}
    result = await client.complete(ref, argument, context_arguments=given or None)
    return result.completion.values


async def test_values_are_completed_from_types_and_by_functions(served: Garden, mode: str) -> None:
    template = types.ResourceTemplateReference(uri="garden://beds/{bed}{?most}")
    sow, look = (types.PromptReference(name=name) for name in ("sow", "look"))
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        assert await _completed(client, sow, "plant", "") == ["bean", "leek"]
        assert await _completed(client, sow, "plant", "l") == ["leek"]
        assert await _completed(client, sow, "beds", "") == []
        assert await _completed(client, template, "bed", "s") == ["south"]
        assert await _completed(client, look, "bed", "no", plant="rose") == ["rose", "no"]
        own = types.PromptReference(name="what_happened")
        assert "Europe/Paris" in await _completed(client, own, "timezone", "paris")


async def test_profiles_name_resources_and_prompts_as_they_do_tools(served: Garden) -> None:
    profile = ProfileSettings(clients=("*",), allow=("tag:drawn", "file"))
    async with (
        served(GARDEN, profiles={"small": profile}) as app,
        Client(app.server, mode="legacy") as client,
    ):
        uris = [each.uri for each in (await client.list_resources()).resources]
        prompts = {each.name for each in (await client.list_prompts()).prompts}
        await client.read_resource("garden://files/a")
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("garden://beds")
        with pytest.raises(MCPError, match="No prompt is called 'look'"):
            await client.get_prompt("look", {"bed": "north"})
    assert uris[:2] == ["garden://map", "context://relevant"]
    assert ("sow" in prompts, "look" in prompts) == (True, False)


async def test_a_read_that_takes_too_long_is_stopped(served: Garden, mode: str) -> None:
    source = """
        import anyio
        from tools.authoring import resource

        @resource("slow://{seconds}", timeout=0.5)
        async def slow(seconds: float) -> str:
            await anyio.sleep(seconds)
            return "slept"
    """
    async with served(source) as app, Client(app.server, mode=mode) as client:
        with anyio.fail_after(20), pytest.raises(MCPError, match=r"within its 0\.5 seconds"):
            await client.read_resource("slow://60")
        assert await text_at(client, "slow://0") == "slept"


async def test_what_is_ours_or_no_template_is_refused(served: Garden) -> None:
    source = """
        from tools.authoring import prompt, resource

        @resource("context://beds")
        def beds() -> str: return ""

        @resource("toolcrib://x")
        def more() -> str: return ""

        @resource("garden://{a}{b}")
        def two(a: str, b: str) -> str: return ""

        @prompt()
        def recall() -> str: return ""

        @resource("garden://good")
        def good() -> str: return ""
    """
    async with served(source) as app, Client(app.server) as client:
        uris = [each.uri for each in (await client.list_resources()).resources]
        problems = app.functions.problems
    assert uris[:2] == ["garden://good", "context://relevant"]
    assert len(problems) == 4
    assert "'context://beds' is reserved by Toolcrib; give beds another scheme" in problems[0]
    assert "is not a valid template" in problems[2]
    assert "'recall' is reserved by Toolcrib" in problems[3]


async def test_of_two_files_with_one_address_the_first_keeps_it(
    served: Garden, folder: Path
) -> None:
    source = """
        from tools.authoring import resource

        @resource("garden://beds")
        def beds() -> str: return "first"
    """
    async with served(source) as app, Client(app.server) as client:
        await app.functions.loaded()
        (folder / "other.py").write_text(dedent(source.replace("first", "second")))
        await app.functions.refresh()
        read = await text_at(client, "garden://beds")
        (problem,) = app.functions.problems
    assert "other.py: The address 'garden://beds' is claimed by beds" in problem
    assert read == "first"


async def test_what_reads_and_writes_may_ask_and_is_run_once(served: Garden, mode: str) -> None:
    source = """
        from tools.authoring import RequestContext, prompt, resource

        runs = []

        @resource("garden://choice")
        async def choice(context: RequestContext) -> str:
            runs.append("read")
            return f"{await context.ask(str, 'Which bed?')}, {len(runs)}"

        @prompt()
        async def sow(context: RequestContext, plant: str) -> str:
            runs.append("got")
            return f"Sow {plant} in {await context.ask(str, 'Where?')}, {len(runs)}."
    """

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        (name,) = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: params.message[-6:]})

    async with (
        served(source) as app,
        Client(app.server, mode=mode, elicitation_callback=answer) as client,
    ):
        read = await text_at(client, "garden://choice")
        (message,) = (await client.get_prompt("sow", {"plant": "leek"})).messages
    assert read.endswith("bed?, 1")
    assert isinstance(message.content, types.TextContent)
    assert message.content.text.endswith("Where?, 2.")


async def test_tools_answer_with_content_in_the_order_of_their_author(
    served: Garden, mode: str
) -> None:
    source = """
        from tools.authoring import EmbeddedResource, Media, ResourceLink

        PNG = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(16)

        def show() -> list[str | Media | EmbeddedResource | ResourceLink]:
            sound = Media("audio", b"RIFF....WAVE", "audio/wav")
            both = [EmbeddedResource("a://b", "words"), EmbeddedResource("a://c", b"1", "x/y")]
            return ["first", Media.of(PNG), sound, *both, ResourceLink("a://d", "d"), "last"]
    """
    async with served(source) as app, Client(app.server, mode=mode) as client:
        result = await client.call_tool("show", {})
    kinds = [each.type for each in result.content]
    assert kinds == ["text", "image", "audio", "resource", "resource", "resource_link", "text"]
    assert result.content[0] == types.TextContent(text="first")
    assert result.content[4] == types.EmbeddedResource(
        resource=types.BlobResourceContents(uri="a://c", blob="MQ==", mime_type="x/y")
    )
    assert result.content[5] == types.ResourceLink(uri="a://d", name="d")
