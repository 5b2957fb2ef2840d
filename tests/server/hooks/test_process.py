"""The real command, as clients start it: under every failure it exits with 0 and leaves nothing."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import command_path
from server.hooks.process import AGENT_VARIABLE
from server.hooks.unstored import FOLDER
from storage.database import RECORD, Database
from storage.memory.captured import CONVERSATION
from tools.agent.agents.agent import TOKEN_VARIABLE

HEAVY = {"chromadb", "mcp", "numpy", "onnxruntime", "pydantic", "typer"}
GAVE_UP = "gave up after"
TOKEN = "ghp_" + "a1B2" * 9
pytestmark = pytest.mark.slow


class Hooks:
    """A project and a data directory, on which hooks run."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.project = folder / "shop"
        self.project.mkdir()

    def start(
        self, event: str, data: bytes, client: str = "claude-code"
    ) -> subprocess.Popen[bytes]:
        words = [command_path(), "hook", client, event, "--data-dir", self.data]
        process = subprocess.Popen(
            [*map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        process.stdin = None
        return process

    def payload(self, session: str, **fields: Any) -> bytes:
        return json.dumps({"session_id": session, "cwd": str(self.project), **fields}).encode()

    def fire(
        self, event: str, session: str = "1", client: str = "claude-code", **fields: Any
    ) -> dict[str, Any]:
        """Runs a hook to its end, which is always 0, and returns its reply."""
        return self.finish(self.start(event, self.payload(session, **fields), client))

    def finish(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, b"")
        reply: dict[str, Any] = json.loads(out) if out else {}
        return reply

    def turn(self, session: str, prompt: str, answer: str) -> None:
        self.fire("UserPromptSubmit", session, prompt=prompt)
        self.fire("Stop", session, last_assistant_message=answer)

    def stored(self) -> set[str]:
        """What is in the conversations, and the prompts that wait for an answer."""
        database = Database(self.data / RECORD)
        rows = database.rows(
            "SELECT c.content FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
            " WHERE x.raw_type = ? UNION SELECT said FROM entries WHERE action LIKE '%:prompt'",
            (CONVERSATION,),
        )
        database.close()
        return {row[0] for row in rows}

    def conversations(self) -> list[str]:
        """The whole text of each conversation."""
        with closing(Database(self.data / RECORD)) as database:
            rows = database.rows(
                "SELECT group_concat(content, char(10)) FROM (SELECT c.content, c.context_seq"
                " FROM chunks c JOIN contexts x ON x.seq = c.context_seq WHERE x.raw_type = ?"
                " ORDER BY c.context_seq, c.position) GROUP BY context_seq",
                (CONVERSATION,),
            )
        return sorted(row[0] for row in rows)

    def waiting(self) -> list[Path]:
        """The files of events that are not stored yet."""
        return sorted((self.data / FOLDER).glob("*.json"))

    @contextmanager
    def busy_record(self) -> Iterator[None]:
        """Another process that writes all the time."""
        with closing(sqlite3.connect(self.data / RECORD, isolation_level=None)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            yield
            holder.rollback()

    @property
    def log(self) -> str:
        path = self.data / "logs" / "toolcrib.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    return Hooks(tmp_path)


def test_a_session_is_shown_what_an_earlier_one_decided(hooks: Hooks) -> None:
    hooks.turn("1", "We decided to use tabs.", "All right.")
    reply = hooks.fire("SessionStart", "2", source="startup")["hookSpecificOutput"]
    assert reply["hookEventName"] == "SessionStart"
    assert "We decided to use tabs." in reply["additionalContext"]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_a_hook_loads_nothing_heavy(hooks: Hooks, event: str) -> None:
    hooks.turn("1", "We decided to use tabs.", "All right.")
    command = [str(command_path()), "hook", "claude-code", event, "--data-dir", str(hooks.data)]
    fields = {"prompt": "Go.", "last_assistant_message": "Gone.", "source": "startup"}
    traced = subprocess.run(
        command,
        input=hooks.payload("2", **fields),
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        check=True,
    ).stderr.decode()
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in traced.splitlines()}
    assert "storage" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "JSONDecodeError"),
        (b"{", "JSONDecodeError"),
        (b"[1]", "the payload is list"),
        (b"\x80abc", "UnicodeDecodeError"),
        (b'{"session_id": "1", "x": "' + b"a" * 8_000_000 + b'"}', "more than 8000000 bytes"),
        (b"[" * 100_000, "RecursionError"),
    ],
    ids=["empty", "cut", "list", "bytes", "long", "deep"],
)
def test_a_broken_payload_is_logged_and_nothing_else(
    hooks: Hooks, data: bytes, problem: str
) -> None:
    assert hooks.finish(hooks.start("Stop", data)) == {}
    assert problem in hooks.log


def test_agents_that_toolcrib_started_are_not_captured(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "token")
    assert AGENT_VARIABLE == TOKEN_VARIABLE
    hooks.fire("UserPromptSubmit", "1", prompt="You are a helper.")
    assert not (hooks.data / RECORD).exists()


def test_a_hook_that_captures_nothing_answers_what_its_client_expects(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_MEMORY__CAPTURE", "false")
    assert hooks.fire("beforeSubmitPrompt", client="cursor", prompt="Go on.") == {"continue": True}
    assert not (hooks.data / RECORD).exists()


def test_a_hook_in_the_middle_of_an_upgrade_fails_nothing(hooks: Hooks) -> None:
    lacking = "import sys; sys.modules['server.hooks.process'] = None; from server.cli import main"
    command = [sys.executable, "-c", f"{lacking}; main()", "hook", "codex", "Stop"]
    done = subprocess.run(command, input=hooks.payload("1"), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_unknown_event_is_logged(hooks: Hooks) -> None:
    assert hooks.fire("Elevenses") == {}
    assert "claude-code has no event 'Elevenses'" in hooks.log


def test_a_locked_record_delays_no_client_for_more_than_two_seconds(hooks: Hooks) -> None:
    hooks.turn("1", "We decided to use tabs.", "All right.")
    began = time.monotonic()
    with hooks.busy_record():
        shown = [hooks.fire("SessionStart", "2", source="startup") for _ in range(2)]
        assert any("tabs" in json.dumps(reply) for reply in shown)  # reading needs no lock
        assert hooks.fire("Stop", "1", last_assistant_message="Late.") == {}
        # Two seconds each, and three starts on a busy machine.
        assert time.monotonic() - began < 2 * 6
    assert hooks.log.count(GAVE_UP) == 3


def test_turns_that_meet_a_busy_record_are_stored_by_the_next_hook(hooks: Hooks) -> None:
    hooks.turn("first", "We decided to use tabs.", "All right.")
    with hooks.busy_record(), ThreadPoolExecutor(10) as pool:
        said = [(f"{number}", f"Prompt {number}.", f"Answer {number}.") for number in range(10)]
        list(pool.map(lambda turn: hooks.turn(*turn), said))
    assert len(hooks.waiting()) == 20
    hooks.turn("first", "Go on.", "Done.")
    assert hooks.waiting() == []
    turns = [f"{prompt}\n{answer}" for _, prompt, answer in said]
    first = "We decided to use tabs.\nAll right.\nGo on.\nDone."
    assert hooks.conversations() == sorted([first, *turns])


def test_what_waits_is_private_and_free_of_secrets(hooks: Hooks) -> None:
    hooks.turn("0", "We decided to use tabs.", "All right.")
    with hooks.busy_record():
        hooks.fire("UserPromptSubmit", "1", prompt=f"Use password=hunter2 and {TOKEN}.")
    (file,) = hooks.waiting()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "hunter2" not in file.read_text("utf-8")
    assert TOKEN not in file.read_text("utf-8")


def test_hooks_killed_while_they_store_what_waits_store_it_once(hooks: Hooks) -> None:
    hooks.turn("0", "We decided to use tabs.", "All right.")
    with hooks.busy_record(), ThreadPoolExecutor(10) as pool:
        for number in range(3):
            said = [(f"{each}", f"Prompt {each}-{number}.", f"Answer {number}.") for each in "abcd"]
            list(pool.map(lambda turn: hooks.turn(*turn), said))
    killed = 0
    while files := hooks.waiting():
        process = hooks.start("SessionEnd", hooks.payload("0"))
        while process.poll() is None and len(hooks.waiting()) > len(files) - 2:
            continue
        killed += process.poll() is None
        process.kill()
        process.communicate()
    assert killed > 0
    turns = ["\n".join(f"Prompt {each}-{n}.\nAnswer {n}." for n in range(3)) for each in "abcd"]
    assert hooks.conversations() == sorted(["We decided to use tabs.\nAll right.", *turns])


def test_a_damaged_file_among_those_that_wait_stops_nothing(hooks: Hooks) -> None:
    hooks.turn("0", "We decided to use tabs.", "All right.")
    with hooks.busy_record():
        hooks.fire("UserPromptSubmit", "1", prompt="Go on.")
    folder = hooks.waiting()[0].parent
    said = json.loads(hooks.waiting()[0].read_bytes())
    never = json.dumps({**said, "event_name": "Stop", "session": "2", "time": 1e300})
    broken = {"0": "{", "00": "[]", "000": '{"identity": {"x": 1}}', "0000": never}
    for name, text in broken.items():
        (folder / f"{name}.json").write_text(text, "utf-8")
    hooks.fire("Stop", "1", last_assistant_message="Done.")
    assert hooks.waiting() == []
    assert {"Go on.", "Done."} <= hooks.stored()


def test_a_client_that_never_closes_stdin_is_left_after_two_seconds(hooks: Hooks) -> None:
    words = [command_path(), "hook", "claude-code", "Stop", "--data-dir", hooks.data]
    process = subprocess.Popen([*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.wait(timeout=10) == 0
    process.communicate()


@pytest.mark.parametrize("file_bytes", [0, 4_096, 65_536])
def test_a_full_disk_stores_nothing_and_fails_nothing(
    hooks: Hooks, full_disk: Callable[[int], AbstractContextManager[None]], file_bytes: int
) -> None:
    hooks.turn("1", "We decided to use tabs.", "All right.")
    with full_disk(file_bytes):
        hooks.turn("2", "Go on.", "Done. " * 10_000)
        reply = hooks.fire("SessionStart", "3", source="startup")
    assert "tabs" in reply["hookSpecificOutput"]["additionalContext"]
    hooks.turn("4", "And now?", "It works.")
    assert {"We decided to use tabs.", "It works."} <= hooks.stored()


def test_a_newer_record_is_left_alone(hooks: Hooks) -> None:
    hooks.turn("1", "We decided to use tabs.", "All right.")
    connection = sqlite3.connect(hooks.data / RECORD)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert hooks.fire("SessionStart", "2", source="startup") == {}
    assert "schema 999" in hooks.log


@pytest.mark.parametrize("place", ["a file", "no permission"])
def test_a_data_directory_that_cannot_be_made_fails_nothing(hooks: Hooks, place: str) -> None:
    if place == "a file":
        hooks.data.write_text("", encoding="utf-8")
    else:
        hooks.data = Path("/proc/toolcrib")
    assert hooks.fire("SessionStart", "1", source="startup") == {}


@pytest.mark.alone
def test_ten_sessions_side_by_side_lose_nothing(hooks: Hooks) -> None:
    def work(number: int) -> None:
        for turn in range(3):
            hooks.turn(f"{number}", f"Prompt {number}-{turn}.", f"Answer {number}-{turn}.")
        hooks.fire("SessionEnd", f"{number}", reason="exit")

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(work, range(10)))
    hooks.turn("last", "Still there?", "Still here.")
    said = {f"{who} {n}-{t}." for who in ("Prompt", "Answer") for n in range(10) for t in range(3)}
    assert said <= hooks.stored()


@pytest.fixture
def killed(hooks: Hooks) -> int:
    """Kills hooks at forty instants; returns how many were killed before they ended."""
    count = 0
    hooks.turn("0", "We decided to use tabs.", "All right.")
    for number in range(40):
        data = hooks.payload(f"{number}", last_assistant_message=f"Answer {number}.")
        process = hooks.start("Stop", data)
        try:
            process.wait(timeout=0.005 * number)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            count += 1
        process.communicate()
    return count


def test_a_killed_hook_leaves_a_whole_record(hooks: Hooks, killed: int) -> None:
    assert killed > 0
    database = Database(hooks.data / RECORD)
    assert database.rows("PRAGMA integrity_check")[0][0] == "ok"
    halves = database.rows(
        "SELECT 1 FROM contexts x WHERE NOT EXISTS"
        " (SELECT 1 FROM chunks c WHERE c.context_seq = x.seq)"
    )
    database.close()
    assert halves == []
    hooks.turn("last", "Still there?", "Still here.")
    assert {"We decided to use tabs.", "Still here."} <= hooks.stored()


@pytest.mark.alone
def test_a_thousand_hooks_leave_no_process_and_little_data(hooks: Hooks) -> None:
    hooks.turn("1", "We decided to use tabs.", "All right.")
    seconds = []
    for number in range(250):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        hooks.fire("SessionStart", f"{number % 50}", source="resume")
        hooks.fire("UserPromptSubmit", f"{number % 50}", prompt=f"Prompt {number}.")
        hooks.fire("Stop", f"{number % 50}", last_assistant_message=f"Answer {number}.")
        hooks.fire("Stop", f"{number % 50}", last_assistant_message=f"Answer {number}.")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds.append(used / 4)
    marker = str(hooks.data).encode()
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _is_hook(path, marker)]
    assert left == []
    size = sum(path.stat().st_size for path in hooks.data.rglob("*") if path.is_file())
    assert size < 4_000_000
    assert len(hooks.stored()) == 2 + 2 * 250
    assert sorted(seconds)[len(seconds) // 2] < 0.15


def _is_hook(path: Path, marker: bytes) -> bool:
    try:
        return marker in path.read_bytes()
    except OSError:  # it ended meanwhile
        return False
