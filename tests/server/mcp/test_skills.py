"""Skills as resources and as a prompt, to real clients."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, BlobResourceContents, PromptReference, TextContent

from tests.people import text_at
from tests.server.skill_files import write_pdf

PDF = "---\nname: pdf\ndescription: Reads forms.\n---\n\n# PDF\n\nFill $ARGUMENTS.\n"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    directory = tmp_path / "team" / "pdf"
    write_pdf(directory, PDF)
    return directory.parent


async def test_skills_are_resources_with_the_files_beside_them(
    client_of: Callable[..., Client], mode: str
) -> None:
    async with client_of(mode) as client:
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        found = listed["skill://pdf/SKILL.md"]
        assert (found.name, found.description) == ("pdf", "Reads forms.")
        assert found.mime_type == "text/markdown"
        assert "skill://using-toolcrib/SKILL.md" in listed
        templates = (await client.list_resource_templates()).resource_templates
        assert "skill://{name}/{+file}" in [each.uri_template for each in templates]
        assert await text_at(client, "skill://pdf/SKILL.md") == PDF
        uri = "skill://pdf/references/a%20b%23%C3%BC.md"
        assert await text_at(client, uri) == "\ufeffForms.\r\n"
        (logo,) = (await client.read_resource("skill://pdf/logo.png")).contents
        assert isinstance(logo, BlobResourceContents)
        assert base64.b64decode(logo.blob) == b"\x89PNG\xff"
        assert logo.mime_type == "image/png"


@pytest.mark.parametrize(
    "uri",
    [
        *("skill://pdf/none.md", "skill://pdf/.env", "skill://pdf/key", "skill://pdf/references"),
        *("skill://pdf/..%2f..%2fteam/pdf/SKILL.md", "skill://pdf/%2fetc%2fpasswd"),
        *("skill://pdf/%00", "skill://none/SKILL.md", "skill://pdf", "skill://"),
    ],
)
async def test_what_is_no_file_of_a_skill_is_not_found(
    client_of: Callable[..., Client], uri: str
) -> None:
    async with client_of() as client:
        with pytest.raises(MCPError, match="Resource not found") as raised:
            await client.read_resource(uri)
    assert raised.value.code == INVALID_PARAMS


async def test_a_client_that_may_not_load_skills_browses_none(
    client_of: Callable[..., Client],
) -> None:
    profiles = {"small": {"clients": ["mcp"], "deny": ["load_skill"]}}
    async with client_of(profiles=profiles) as client:
        listed = (await client.list_resources()).resources
        assert not any(each.uri.startswith("skill:") for each in listed)
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("skill://pdf/SKILL.md")
        with pytest.raises(MCPError, match="leaves skills out"):
            await client.get_prompt("skill", {"name": "pdf"})
        reference = PromptReference(type="ref/prompt", name="skill")
        found = await client.complete(reference, {"name": "name", "value": ""})
        assert found.completion.values == []


async def test_a_person_starts_a_skill_that_is_for_people_by_a_prompt(
    client_of: Callable[..., Client], team: Path, mode: str
) -> None:
    (team / "style").mkdir()
    style = "---\nname: style\ndescription: How we write.\nuser-invocable: false\n---\n\nBriefly.\n"
    (team / "style" / "SKILL.md").write_text(style)
    async with client_of(mode) as client:
        given = {"name": "pdf", "task": "form 8a"}
        (message,) = (await client.get_prompt("skill", given)).messages
        assert isinstance(message.content, TextContent)
        text = message.content.text
        assert text.startswith("Follow the skill pdf (")
        assert "for this: form 8a" in text
        assert "loads its other files: logo.png, references/a b#ü.md." in text
        assert text.endswith("# PDF\n\nFill form 8a.")
        reference = PromptReference(type="ref/prompt", name="skill")
        argument = {"name": "name", "value": "p"}
        completed = (await client.complete(reference, argument)).completion
        assert completed.values[0] == "pdf"
        with pytest.raises(MCPError, match="No skill is called 'pfd'") as raised:
            await client.get_prompt("skill", {"name": "pfd"})
        assert raised.value.code == INVALID_PARAMS
        with pytest.raises(MCPError, match="'style' is for models alone"):
            await client.get_prompt("skill", {"name": "style"})
        argument = {"name": "name", "value": "st"}
        assert "style" not in (await client.complete(reference, argument)).completion.values
        loaded = await client.call_tool("load_skill", {"name": "style"})
        assert not loaded.is_error
