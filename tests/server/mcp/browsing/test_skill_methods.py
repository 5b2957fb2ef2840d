"""Skills over MCP, to real clients of both eras."""

import base64
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.skill_view import EXTENSION, ReadParams, SkillParams
from tests.server.skill_files import write_pdf
from tests.server.skill_requests import Answer, DirectoryRead, SkillsGet, SkillsList
from tools.agent.skillfiles.local import LocalSkill
from tools.agent.skillfiles.skill import FrontMatter

BY_ERA = pytest.mark.parametrize("mode", ["legacy", "auto"])
PDF = """---
name: pdf
description: Reads forms.
license: MIT
metadata: {version: 1.5, tags: [a, b]}
---

# PDF
"""
INNER = "---\nname: forms\ndescription: Fills forms.\n---\n\nFill.\n"


async def _asked(client: Client, request: types.Request[Any, Any]) -> dict[str, Any]:
    answer = await client.session.send_request(request, Answer)
    dumped: dict[str, Any] = answer.model_dump(mode="json", by_alias=True)
    return dumped


async def _listed(client: Client) -> dict[str, dict[str, Any]]:
    """All entries, by their addresses, over all pages."""
    entries: list[dict[str, Any]] = []
    cursor = None
    while True:
        params = types.PaginatedRequestParams(cursor=cursor)
        answer = await _asked(client, SkillsList(params=params))
        assert answer["ttlMs"] >= 0
        assert answer["cacheScope"] == "private"
        entries += answer["skills"]
        cursor = answer.get("nextCursor")
        if cursor is None:
            return {each["uri"]: each for each in entries}


async def _got(client: Client, uri: str) -> dict[str, Any]:
    found = await _asked(client, SkillsGet(params=SkillParams(uri=uri)))
    entry: dict[str, Any] = found["skill"]
    return entry


def _digests(entry: dict[str, Any]) -> dict[str, str]:
    return {each["uri"]: each["digest"] for each in entry["resources"]}


async def _children(client: Client, uri: str) -> dict[str, str | None]:
    """What is in a directory, each with its media type."""
    found: dict[str, str | None] = {}
    cursor = None
    while True:
        params = ReadParams(uri=uri, cursor=cursor)
        answer = await _asked(client, DirectoryRead(params=params))
        found |= {each["uri"]: each.get("mimeType") for each in answer["resources"]}
        cursor = answer.get("nextCursor")
        if cursor is None:
            return found


def _skill(directory: Path, name: str, description: str = "Helps.") -> Path:
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n")
    return directory


@pytest.fixture
def team(tmp_path: Path) -> Path:
    directory = tmp_path / "team" / "pdf"
    write_pdf(directory, PDF)
    (directory / "references" / "forms").mkdir()
    (directory / "references" / "forms" / "SKILL.md").write_text(INNER)
    (directory / "empty").mkdir()
    return directory.parent


@BY_ERA
async def test_a_host_lists_skills_with_digests_of_what_it_then_reads(
    client_of: Callable[..., Client], mode: str
) -> None:
    async with client_of(mode) as client:
        capabilities = client.server_capabilities
        assert capabilities.resources is not None
        if mode == "auto":  # the SDK has no room for extensions in the handshake
            assert (capabilities.extensions or {})[EXTENSION] == {"directoryRead": True}
        listed = await _listed(client)
        pdf = listed["skill://pdf/SKILL.md"]
        assert pdf["frontmatter"] == {
            "name": "pdf",
            "description": "Reads forms.",
            "license": "MIT",
            "metadata": {"version": 1.5, "tags": ["a", "b"]},
        }
        assert [each["uri"] for each in pdf["resources"]] == [
            "skill://pdf/SKILL.md",
            "skill://pdf/logo.png",
            "skill://pdf/references/a%20b%23%C3%BC.md",
            "skill://pdf/references/forms/SKILL.md",
        ]
        for entry in listed.values():
            for each in entry["resources"]:
                (content,) = (await client.read_resource(each["uri"])).contents
                if isinstance(content, types.BlobResourceContents):
                    data = base64.b64decode(content.blob)
                else:
                    assert isinstance(content, types.TextResourceContents)
                    data = content.text.encode()
                assert each["size"] == len(data)
                assert each["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
                if each["uri"] == entry["uri"]:
                    assert FrontMatter.of(data.decode()).fields == entry["frontmatter"]
            assert await _got(client, entry["uri"]) == entry


async def test_a_skill_in_the_directory_of_another_has_an_entry_of_its_own(
    client_of: Callable[..., Client],
) -> None:
    async with client_of() as client:
        inner = (await _listed(client))["skill://pdf/references/forms/SKILL.md"]
    assert inner["frontmatter"] == {"name": "forms", "description": "Fills forms."}
    assert [each["uri"] for each in inner["resources"]] == [inner["uri"]]


@BY_ERA
async def test_directories_are_read_down_to_empty_ones(
    client_of: Callable[..., Client], mode: str
) -> None:
    async with client_of(mode) as client:
        assert await _children(client, "skill://pdf") == {
            "skill://pdf/SKILL.md": "text/markdown",
            "skill://pdf/logo.png": "image/png",
            "skill://pdf/empty": "inode/directory",
            "skill://pdf/references": "inode/directory",
        }
        assert await _children(client, "skill://pdf/references") == {
            "skill://pdf/references/a%20b%23%C3%BC.md": "text/markdown",
            "skill://pdf/references/forms": "inode/directory",
        }
        assert await _children(client, "skill://pdf/empty") == {}
        for uri in (
            *("skill://pdf/SKILL.md", "skill://pdf/none", "skill://pdf/..", "skill://none"),
            *("skill:///etc", "file:///etc"),
        ):
            with pytest.raises(MCPError, match="is not the address of a directory") as raised:
                await _children(client, uri)
            assert raised.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize(
    "uri", ["skill://pdf", "skill://pdf/logo.png", "skill://none/SKILL.md", "file:///SKILL.md", ""]
)
async def test_what_is_no_skill_is_refused(client_of: Callable[..., Client], uri: str) -> None:
    async with client_of() as client:
        with pytest.raises(MCPError, match="is not the address of a skill") as raised:
            await _got(client, uri)
    assert raised.value.code == types.INVALID_PARAMS


async def test_skills_that_are_called_the_same_have_their_label_before_their_name(
    client_of: Callable[..., Client], tmp_path: Path
) -> None:
    _skill(tmp_path / "root" / ".claude" / "skills" / "pdf", "pdf", "Another.")
    async with client_of(**{"skills.discover": True}) as client:
        listed = await _listed(client)
        theirs = listed["skill://project-claude/pdf/SKILL.md"]
        assert theirs["frontmatter"]["description"] == "Another."
        assert listed["skill://pdf/SKILL.md"]["frontmatter"]["description"] == "Reads forms."
        assert await _children(client, "skill://project-claude") == {
            "skill://project-claude/pdf": "inode/directory"
        }
        root = await _children(client, "skill://")
        assert root["skill://project-claude"] == "inode/directory"


async def test_a_skill_in_whose_directory_another_has_its_address_is_not_served(
    client_of: Callable[..., Client], tmp_path: Path, team: Path
) -> None:
    # "team/pdf" is both a directory of the skill "team" and the second skill "pdf".
    first = tmp_path / "first"
    _skill(first / "pdf", "pdf")
    (_skill(first / "team", "team") / "pdf").mkdir()
    (first / "team" / "pdf" / "a.md").write_text("A.")
    directories = [str(first), str(team)]
    async with client_of(**{"skills.directories": directories}) as client:
        listed = await _listed(client)
        assert "skill://team/pdf/SKILL.md" in listed
        assert "skill://team/SKILL.md" not in listed


@pytest.mark.parametrize("kind", ["files", "bytes", "name", "description"])
async def test_what_no_host_may_take_is_not_served_and_the_log_says_why(
    client_of: Callable[..., Client], team: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    match kind:
        case "files":
            for number in range(512):
                (team / "pdf" / f"{number}.md").touch()
        case "bytes":
            with (team / "pdf" / "large.bin").open("wb") as file:
                file.truncate(16 * 1024 * 1024)
        case "name":
            (team / "pdf" / "SKILL.md").write_text("---\nname: P D F\ndescription: d\n---\n")
        case _:
            (team / "pdf" / "SKILL.md").write_text("---\nname: pdf\n---\n")
    with caplog.at_level(logging.WARNING, "toolcrib"):
        async with client_of() as client:
            for _ in range(2):
                listed = await _listed(client)
                assert not any("pdf" in uri or "p-d-f" in uri for uri in listed)
                assert "skill://using-toolcrib/SKILL.md" in listed
            with pytest.raises(MCPError):
                await _got(client, "skill://pdf/SKILL.md")
    (said,) = [each for each in caplog.messages if "is not listed" in each]
    assert "more than" in said or "name" in said or "description" in said


async def test_a_file_that_is_saved_has_another_digest_at_once(
    client_of: Callable[..., Client], team: Path
) -> None:
    async with client_of() as client:
        before = await _got(client, "skill://pdf/SKILL.md")
        (team / "pdf" / "logo.png").write_bytes(b"\x89PNG\xfe")
        (team / "pdf" / "new.md").write_text("New.")
        after = await _got(client, "skill://pdf/SKILL.md")
        (team / "pdf" / "SKILL.md").write_text(PDF.replace("forms", "tables"))
        last = await _got(client, "skill://pdf/SKILL.md")
    old, new = _digests(before), _digests(after)
    assert old["skill://pdf/logo.png"] != new["skill://pdf/logo.png"]
    assert new.keys() - old.keys() == {"skill://pdf/new.md"}
    assert last["frontmatter"]["description"] == "Reads tables."


async def test_files_that_stay_as_they_are_are_read_once(
    client_of: Callable[..., Client], team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    data = LocalSkill.data

    def counted(skill: LocalSkill, path: str) -> bytes:
        read.append(path)
        return data(skill, path)

    monkeypatch.setattr(LocalSkill, "data", counted)
    monkeypatch.setattr("tools.agent.skillfiles.local.SETTLED_SECONDS", -1.0)
    for number in range(120):
        _skill(team / f"s-{number}", f"s-{number}")
    async with client_of() as client:
        first = await _listed(client)
        assert len([uri for uri in first if "/s-" in uri]) == 120
        assert len(read) > 120
        read.clear()
        assert await _listed(client) == first
        assert read == []


async def test_a_client_that_may_not_load_skills_is_served_none(
    client_of: Callable[..., Client],
) -> None:
    profiles = {"small": {"clients": ["mcp"], "deny": ["load_skill"]}}
    async with client_of(profiles=profiles) as client:
        assert await _listed(client) == {}
        with pytest.raises(MCPError, match="not the address of a skill"):
            await _got(client, "skill://pdf/SKILL.md")
        with pytest.raises(MCPError, match="not the address of a directory"):
            await _children(client, "skill://pdf")
