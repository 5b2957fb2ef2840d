"""A real server over stdio, killed in the middle of adding: what it answered is there."""

import json
import random
import re
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import command_path
from storage.database import Database
from storage.keeping.examination import damage

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def _line(method: str, params: dict[str, Any], number: int | None = None) -> str:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    return json.dumps(message) + "\n"


def _add(number: int) -> str:
    arguments = {"title": f"doc{number}", "text": f"doc{number} lies here. " * 200}
    return _line("tools/call", {"name": "add_document", "arguments": arguments}, number)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_server_that_is_killed_has_kept_all_that_it_answered(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # an instant, not a secret
    (tmp_path / "root").mkdir()
    data = tmp_path / "data"
    answered: list[str] = []
    for life in range(2):
        server = subprocess.Popen(
            [command_path(), "serve", "--root", tmp_path / "root", "--data-dir", data],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(_line("initialize", HELLO, 0))
        server.stdin.write(_line("notifications/initialized", {}))
        for number in range(life * 100 + 1, life * 100 + 41):
            server.stdin.write(_add(number))
        server.stdin.flush()
        wanted = chance.randrange(1, 30)
        while wanted:
            wanted -= _note(server.stdout.readline(), answered)
        server.kill()
        for line in server.stdout.read().splitlines(keepends=True):
            if line.endswith("\n"):
                _note(line, answered)
        server.wait()
        for stream in (server.stdin, server.stdout):
            try:
                stream.close()
            except BrokenPipeError:
                continue
    assert answered
    with closing(Database(data / "toolcrib.db")) as database, database.read() as connection:
        assert damage(connection) == ""
        stored = {row[0] for row in connection.execute("SELECT title FROM contexts")}
        texts = dict(
            connection.execute(
                "SELECT x.title, sum(length(c.content)) FROM contexts x"
                " JOIN chunks c ON c.context_seq = x.seq GROUP BY x.seq"
            ).fetchall()
        )
    assert set(answered) <= stored
    assert all(length >= 200 * len("doc1 lies here.") for length in texts.values())
    assert texts.keys() == stored


def _note(line: str, answered: list[str]) -> bool:
    """Notes the answer to an addition; whether it was one."""
    message = json.loads(line)
    result = message.get("result", {})
    if "content" not in result:
        assert "error" not in message
        return False
    assert not result.get("isError"), line
    added = re.match(r"added: (\S+) ", result["content"][0]["text"])
    assert added is not None
    answered.append(added[1])
    return True
