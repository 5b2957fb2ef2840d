"""The pages about functions: their files are written, commands run, and tools called."""

import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from tests.docs.following import DOCS, Step, blocks, clean_home, follow, steps
from tests.people import text_at

pytestmark = pytest.mark.slow

PAGES = ("functions", "function-context", "function-resources")
FOLLOWED = {page: (DOCS / f"{page}.md").read_text(encoding="utf-8") for page in PAGES}
STEPS = [
    (page, step)
    for page, text in FOLLOWED.items()
    for block in blocks(text)
    for step in steps(block)
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def printed(home: Path) -> dict[str, dict[str, str]]:
    """What each command printed, by page; each is followed in a folder of its own."""
    found = {}
    for page, text in FOLLOWED.items():
        (home / page).mkdir()
        found[page] = follow(text, home / page, clean_home(home))
    return found


@asynccontextmanager
async def served(home: Path, page: str, file: str, **options: Any) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=str(Path(sysconfig.get_path("scripts"), "toolcrib")),
        args=["serve", "--functions", file],
        cwd=home / page,
        env=clean_home(home),
    )
    async with Client(server, **options) as client:
        yield client


@pytest.mark.parametrize(("page", "step"), STEPS, ids=[step.command for _, step in STEPS])
def test_a_command_prints_what_the_page_shows(
    page: str, step: Step, printed: dict[str, dict[str, str]]
) -> None:
    told = printed[page][step.command]
    assert step.pattern.fullmatch(told.strip()), told


async def test_the_function_that_asks_does_all_that_the_page_says(
    home: Path, printed: dict[str, dict[str, str]]
) -> None:
    del printed  # it writes the files

    async def fill_in(_context: object, _params: object) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"plant": "leek"})

    async def answer(_context: object, _params: object) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="Sow leeks deep.")
        return types.CreateMessageResult(role="assistant", model="m", content=text)

    asking = {"elicitation_callback": fill_in, "sampling_callback": answer}
    async with served(home, "function-context", "sow.py", **asking) as client:
        result = await client.call_tool("sow", {"when": "Monday"})
    assert result.structured_content == {"result": "Sow leeks deep."}
    assert (home / "function-context" / "sown.md").read_text() == "Sow leeks deep."


async def test_the_resources_and_the_prompt_are_what_the_page_says(
    home: Path, printed: dict[str, dict[str, str]]
) -> None:
    del printed  # it writes the files
    async with served(home, "function-resources", "garden.py") as client:
        assert [each.name for each in (await client.list_tools()).tools if each.name == "bed"] == []
        await client.call_tool("plant", {"bed": "north", "what": "pea"})
        read = await text_at(client, "garden://beds/north?most=2")
        messages = (await client.get_prompt("plan", {"season": "spring"})).messages
    assert read == '{"plants":["bean","pea"]}'
    assert [each.role for each in messages] == ["user", "user", "assistant"]


async def test_the_secret_arguments_of_the_page_are_marked_and_taken(
    home: Path, printed: dict[str, dict[str, str]]
) -> None:
    del printed  # it writes the files
    async with served(home, "functions", "account.py") as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        properties = tools["log_in"].input_schema["properties"]
        arguments = dict.fromkeys(("user", "password", "key", "token"), "12345678")
        result = await client.call_tool("log_in", {**arguments, "pin": 1234})
    secret = {name for name, schema in properties.items() if schema.get("writeOnly")}
    assert secret == {"password", "pin", "key", "token"}
    assert result.structured_content == {"result": "12345678 has a password of 8 characters."}
