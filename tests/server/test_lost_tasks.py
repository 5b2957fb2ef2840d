"""A real server over stdio that is killed while a call goes on as a task: the next look says so."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import command_path
from server.mcp.tasks import EXTENSION

SOURCE = '''
import asyncio

from tools.authoring import RequestContext, tool

@tool(may_become_job=True)
async def grow(context: RequestContext) -> str:
    """Grows for ever."""
    await context.report_progress(1, 4, "sown")
    await asyncio.sleep(3_600)
    return "ripe"
'''
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}},
}


class Server:
    """A server that is asked in messages of protocol 2026-07-28."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._number += 1
        message = {"method": method, "params": {**params, "_meta": META}}
        line = json.dumps({"jsonrpc": "2.0", "id": self._number, **message})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._number:
            pass
        result: dict[str, Any] = answer["result"]
        return result


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    (tmp_path / "root").mkdir()
    functions = tmp_path / "garden.py"
    functions.write_text(SOURCE, encoding="utf-8")
    places = ["--root", str(tmp_path / "root"), "--data-dir", str(tmp_path / "data")]
    return [*places, "--functions", str(functions)]


@contextmanager
def serving(options: list[str]) -> Iterator[Server]:
    with subprocess.Popen(
        [command_path(), "serve", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


@pytest.mark.slow
def test_a_task_of_a_server_that_was_killed_is_lost_with_what_was_known(options: list[str]) -> None:
    with serving(options) as server, serving(options) as other:
        task = server.ask("tools/call", name="grow", arguments={})
        assert task["resultType"] == "task"
        looked = other.ask("tasks/get", taskId=task["taskId"])
        assert looked["status"] == "working"
        while other.ask("tasks/get", taskId=task["taskId"]).get("statusMessage") != "sown":
            pass
        server.process.kill()
        server.process.wait()
        lost = other.ask("tasks/get", taskId=task["taskId"])
        assert (lost["status"], lost["statusMessage"]) == ("failed", "sown")
    done = subprocess.run(
        [command_path(), "call", "get_task", f"task_id={task['taskId']}", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "was lost" in done.stdout
    assert '1 of 4, "sown"' in done.stdout


@pytest.mark.slow
def test_an_agent_of_a_server_that_was_killed_is_closed_and_its_work_is_found(
    options: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mfirst"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)  # noqa: S607  # of the machine
    agent = (
        "import sys, time; open('half.txt', 'w').write('half done');"
        " print('so far so good', file=sys.stderr, flush=True); time.sleep(600)"
    )
    config = tmp_path / "config.toml"
    config.write_text(
        '[policy]\nallow = ["delegate_to_agent"]\n[agents.small]\nworktree = true\n'
        f"command = {json.dumps([sys.executable, '-c', agent])}\n",
        encoding="utf-8",
    )
    options = [*options[:4], "--config", str(config)]

    def toolcrib(*words: str, answer: str = "") -> str:
        done = subprocess.run(
            [command_path(), *words, *options],
            input=answer,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    with serving(options) as server:
        arguments = {"target_agent": "small", "subtask": "Count the quaggas"}
        task = server.ask("tools/call", name="delegate_to_agent", arguments=arguments)
        looking = ("call", "get_task", f"task_id={task['taskId']}", "wait_seconds=0")
        while "data-worktrees" not in toolcrib(*looking):  # as it is kept
            pass
        server.process.kill()
        server.process.wait()
    [worktree] = (tmp_path / "data-worktrees").iterdir()
    log = tmp_path / "data" / "delegations" / f"{worktree.name}.log"
    lost = toolcrib("call", "get_task", f"task_id={task['taskId']}")
    assert "was lost" in lost
    assert str(worktree) in lost
    assert str(log) in lost
    assert "so far so good" in log.read_text()
    assert "Count the quaggas" in toolcrib("call", "query", "query=quaggas")
    assert f"{worktree}  small, lost" in toolcrib("worktrees")
    assert "kept: it holds changes" in toolcrib("worktrees", "--prune")
    assert "half done" in toolcrib("worktrees", "--discard", worktree.name, answer="n\n")
    assert worktree.exists()
    toolcrib("worktrees", "--discard", worktree.name, answer="y\n")
    assert not worktree.exists()
    assert (
        "prunable"
        not in subprocess.run(
            ["git", "worktree", "list"],  # noqa: S607  # of the machine
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
