"""The presets of agents, with the installed programs and a real Toolcrib over HTTP."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.clients.locations import command_path
from tests.clients.programs import PROGRAMS, Home, end_group, run
from tests.clients.wires import Call
from tools.agent.agents.agent import PRESETS, TOKEN_VARIABLE, fill
from tools.agent.agents.programs import mcp_config, read_answer

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-tests"  # noqa: S105  # opens nothing


@pytest.fixture(params=PRESETS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(tmp_path / "home", PROGRAMS[request.param])


@pytest.fixture
def url(home: Home) -> Iterator[str]:
    """The address of a Toolcrib that requires the token."""
    with subprocess.Popen(
        [command_path(), *home.serving, "--transport", "http", "--port", "0"],
        env={"HOME": str(home.path), "TOOLCRIB_HTTP__TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as server:
        try:
            assert server.stderr is not None
            found = filter(None, (re.search(r"http://\S+", line) for line in server.stderr))
            yield next(found)[0]
        finally:
            end_group(server.pid)


def test_an_agent_takes_the_flags_and_calls_tools_with_its_token(home: Home, url: str) -> None:
    agent = PRESETS[home.program.name]
    values = {"url": url, "mcp_config": mcp_config(url), "cost": "1", "prompt": ""}
    for name, text in agent.files.items():
        home.write(name, fill(text, values))
    words = [fill(each, values) for each in (*agent.argv[1:], *agent.confined, *agent.budget)]
    read = Call("read_file", {"file_path": "note.txt"})
    with home.model([read, "Behind the door."]) as model:
        token = {TOKEN_VARIABLE: TOKEN}
        ended = run(home, home.command(model, *words), model, "Task: --help kingfisher", token)
    assert any("kingfisher" in text for text in model.asked()[0].texts), ended
    assert "the keys hang behind the door" in model.asked()[-1].results[0]
    assert read_answer(ended.printed, agent.reply).text == "Behind the door."
