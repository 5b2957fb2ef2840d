"""Each call leaves one line in the audit log, whatever it was; the log stops no call."""

import json
import logging
import os
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tools
from storage.models import Identity
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.audit.recording import AWAITING, Audit
from tools.core.audit.trail import rotated, unrotated
from tools.core.calling.call import Call, FinishedCall, Permission
from tools.core.client import Approval
from tools.core.context import Origin, RequestContext
from tools.core.discovery import discover
from tools.core.errors import NotFoundError
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, ToolSpec, tool
from tools.policy.calls import Decision, Verdict

ASKING = RequestContext(
    Origin(Identity("ann", "laptop", "coder"), session_id="s1", client="Cursor")
)
ALLOWED = Permission(Decision(Verdict.ALLOW, "bash(git *)", "settings", "It is allowed."))
SECRET = "hunter2-Zq81xyzZq81xyz"  # noqa: S105  # it opens nothing


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.EXECUTE},
    subject=Subject(SubjectKind.COMMAND, "command"),
)
def shell(command: str, note: str = "") -> str:
    """Stands for a tool that runs commands."""
    return command + note


@tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
def peek(path: str) -> str:
    """Fails where there is nothing."""
    if path == "missing":
        raise NotFoundError(f"There is no {path}.")
    return path


SHELL, PEEK = FunctionToMCP.convert(shell), FunctionToMCP.convert(peek)


@pytest.fixture(scope="module")
def builtin() -> ToolRegistry:
    registry = ToolRegistry()
    discover(registry, tools)
    return registry


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "audit" / "calls.jsonl"


@pytest.fixture
def audit(path: Path) -> Iterator[Audit]:
    audit = Audit(path)
    yield audit
    audit.close()


def finished(
    spec: ToolSpec | None,
    arguments: Mapping[str, Any],
    structured: dict[str, Any] | None = None,
    permission: Permission = ALLOWED,
) -> FinishedCall:
    name = "made_up" if spec is None else spec.name
    return FinishedCall(
        Call(name, arguments, ASKING, found=spec, permission=permission, began=1_790_000_000.25),
        name,
        arguments,
        ToolResult(structured or {}, "text", is_error="error_type" in (structured or {})),
        0.0125,
    )


def entries(path: Path) -> list[dict[str, Any]]:
    """The lines as a strict reader takes them."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line.decode(), parse_constant=refuse) for line in lines if line]


def test_a_line_tells_all_that_is_known_of_a_call(audit: Audit, path: Path) -> None:
    permission = Permission(
        Decision(Verdict.ASK, "scope:system", "profile standard", "It runs something."),
        Approval("client", "t1"),
    )
    audit.keep(finished(SHELL, {"command": "git status"}, {"sandbox": "landlock"}, permission))
    (entry,) = entries(path)
    assert len(entry.pop("call")) == 16
    assert entry == {
        "time": "2026-09-21T14:13:20.250Z",
        "user": "ann",
        "device": "laptop",
        "agent": "coder",
        "session": "s1",
        "client": "Cursor",
        "called_by": None,
        "tool": "shell",
        "source": "function",
        "scope": "system",
        "effects": ["execute"],
        "arguments": {"command": "git status"},
        "verdict": "ask",
        "rule": "scope:system",
        "rule_source": "profile standard",
        "approved_by": "client",
        "outcome": "ok",
        "milliseconds": 12.5,
        "sandbox": "landlock",
        "pid": os.getpid(),
    }


def test_what_came_of_a_call_is_told(audit: Audit, path: Path) -> None:
    audit.keep(finished(SHELL, {"command": "a"}))
    audit.keep(finished(SHELL, {"command": "a"}, {"error_type": "permission_denied"}))
    audit.keep(finished(SHELL, {"command": "a"}, {"error_type": "unavailable"}), is_final=False)
    cancelled = Call("shell", {}, ASKING, found=SHELL)
    audit.keep(FinishedCall(cancelled, "shell", {}, None, 0.0))
    unknown = {"error_type": "unknown_tool"}
    audit.keep(finished(None, {"a": 1}, unknown, Permission()))
    assert [entry["outcome"] for entry in entries(path)] == [
        *("ok", "permission_denied", AWAITING, "cancelled", "unknown_tool")
    ]
    assert entries(path)[-1]["verdict"] is None


async def test_calls_of_every_ending_pass_through_the_log(
    toolbox: Callable[..., SandboxToolManager], audit: Audit, path: Path
) -> None:
    manager = toolbox(peek, audit=audit)
    await manager.execute("peek", {"path": "here"}, ASKING)
    await manager.execute("peek", {"path": "missing"}, ASKING)
    await manager.execute("peek", {"paht": "here"}, ASKING)
    await manager.execute("pek", {"path": "here"}, ASKING)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await manager.execute("peek", {"path": "here"}, ASKING)
    outcomes = [entry["outcome"] for entry in entries(path)]
    assert outcomes == ["ok", "not_found", "invalid_arguments", "unknown_tool", "cancelled"]


def test_what_only_passes_on_leaves_a_line_unless_it_did(
    builtin: ToolRegistry, audit: Audit, path: Path
) -> None:
    passing = builtin.find("call_tool")
    denied = Permission(Decision(Verdict.DENY, "call_tool", "settings", "No."))
    unanswered = Permission(Decision(Verdict.ASK, "call_tool", "settings", "Who knows."))
    passed = Permission(ALLOWED.decision, passed_on=True)
    for permission in (passed, denied, unanswered, Permission(), ALLOWED):
        audit.keep(finished(passing, {"name": "call_tool"}, permission=permission))
    assert [entry["verdict"] for entry in entries(path)] == ["deny", "ask", None, "allow"]


@pytest.mark.parametrize(
    "command",
    [
        f"curl -H 'Authorization: Bearer {SECRET}' https://example.com",
        f"mysql -u root -p{SECRET} shop",
        f"deploy --password {SECRET}",
        f"git clone https://ann:{SECRET}@example.com/a.git",
        f"curl 'https://example.com/?access_token={SECRET}&x=1'",
        f"API_KEY={SECRET} ./run",
        f"export DB_PASSWORD='{SECRET}'; ./run",
    ],
)
def test_a_command_is_there_without_its_secrets(audit: Audit, path: Path, command: str) -> None:
    audit.keep(finished(SHELL, {"command": f"cd /srv && {command} && ls -la"}))
    kept = path.read_text()
    assert "hunter2" not in kept
    assert "xyzZq81" not in kept
    assert "cd /srv &&" in kept
    assert "redacted" in kept


def test_what_was_run_is_there_whole_and_what_was_written_in_short(
    builtin: ToolRegistry, audit: Audit, path: Path
) -> None:
    command = "echo one; " * 2_500 + "rm -rf build"
    audit.keep(finished(SHELL, {"note": "n" * 90_000, "command": command}))
    code = "x = 1\n" * 4_000 + "last()"
    audit.keep(finished(builtin.find("execute_python_code"), {"code": code}))
    written = {"content": "c" * 90_000, "file_path": "src/" + "a" * 3_000}
    audit.keep(finished(builtin.find("write_file"), written))
    shell_call, python_call, write_call = (entry["arguments"] for entry in entries(path))
    assert shell_call["command"] == command
    assert python_call["code"] == code
    assert write_call["file_path"] == written["file_path"]
    assert len(write_call["content"]) < 3_000


def test_what_may_be_forgotten_is_never_told(
    builtin: ToolRegistry, audit: Audit, path: Path
) -> None:
    word = "aubergine"
    wild = {"content": word, "title": word, word: word, "top_k": 3, "importance": 7.5}
    wild |= {"entities": [word, [word], {word: word}], "metadata": {word: word}, "query": word}
    wild |= {"ids": ["0f" * 16, word], "operation": "get_profile", "time_range": {"start": word}}
    for spec in builtin.specs():
        if spec.scope is ToolScope.CONTEXT:
            audit.keep(finished(spec, wild))
    audit.keep(finished(None, wild))
    assert word not in path.read_text()
    told = {entry["tool"]: entry["arguments"] for entry in entries(path)}
    assert told["query"] == {"query": "[9 characters]", "top_k": 3}
    assert told["retrieve_profile_context"]["operation"] == "get_profile"
    assert told["forget"]["ids"] == ["0f" * 16, "[9 characters]"]
    assert told["made_up"] == {}


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=12,
)


@given(
    arguments=st.dictionaries(st.sampled_from(["command", "note"]) | st.text(), anything),
    client=st.text(st.characters()),
    scope=st.sampled_from([None, SHELL, PEEK]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_call_is_one_line_of_json_that_steers_no_terminal(
    arguments: Any, client: str, scope: ToolSpec | None, audit: Audit, path: Path
) -> None:
    path.unlink(missing_ok=True)
    context = RequestContext(Origin(Identity(client or "ann"), session_id=client, client=client))
    call = Call(client, arguments, context, found=scope)
    audit.keep(FinishedCall(call, client, arguments, None, float(len(client))))
    (entry,) = entries(path)
    assert entry["outcome"] == "cancelled"
    shown = path.read_text(encoding="utf-8").removesuffix("\n")
    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(each) for each in shown} & {"RLO", "LRO", "RLI", "LRI"}


@pytest.mark.parametrize("kind", ["cycle", "deep", "huge", "object", "keys"])
def test_arguments_that_are_no_json_leave_a_line(kind: str, audit: Audit, path: Path) -> None:
    cycle: dict[str, Any] = {}
    cycle["note"] = [cycle]
    deep: Any = "end"
    for _ in range(50_000):
        deep = [deep]
    given_arguments: dict[str, dict[Any, object]] = {
        "cycle": cycle,
        "deep": {"note": deep},
        "huge": {"note": 10**10_000, "command": "x" * 5_000_000},
        "object": {"note": object(), "command": object()},
        "keys": {3: "three", None: "none", ("a",): "tuple"},
    }
    audit.keep(finished(SHELL, given_arguments[kind]))
    assert len(entries(path)) == 1
    assert path.stat().st_size < 40_000
    while isinstance(deep, list) and deep:  # else its end is 50,000 calls deep
        deep = deep.pop()


def test_the_file_is_its_owners_alone(audit: Audit, path: Path) -> None:
    audit.keep(finished(SHELL, {"command": "a"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    audit.close()
    path.chmod(0o644)
    audit.keep(finished(SHELL, {"command": "b"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["symlink", "dangling", "directory", "fifo", "file above", "full"])
def test_a_log_that_cannot_be_written_is_said_once_and_fails_no_call(
    kind: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = path.parents[2] / "outside"
    path.parent.parent.mkdir()
    if kind == "file above":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
    if kind == "symlink":
        outside.write_text("as it was")
        path.symlink_to(outside)
    elif kind == "dangling":
        path.symlink_to(outside)
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "full":
        path.symlink_to("/dev/full")
    audit = Audit(path)
    with caplog.at_level(logging.ERROR, "toolcrib"):
        for _ in range(3):
            audit.keep(finished(SHELL, {"command": "a"}))
    assert len(caplog.records) == 1
    assert not outside.exists() or outside.read_text() == "as it was"


def test_a_log_that_can_be_written_again_goes_on(
    audit: Audit, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    call = finished(SHELL, {"command": "a"})
    path.mkdir(parents=True)
    audit.keep(call)
    path.rmdir()
    audit.keep(call)
    assert len(entries(path)) == 1
    path.unlink()
    audit.keep(call)
    assert len(entries(path)) == 1
    assert len(caplog.records) == 1


LIMITED = """
import resource, sys
from pathlib import Path
from tools.core.audit.recording import AuditFile
file = AuditFile(Path(sys.argv[1]), max_bytes=10**9, backups=3)
file.append(b'{"time":"1"}')
resource.setrlimit(resource.RLIMIT_FSIZE, (30, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        file.append(b'{"time":"' + b"2" * 40 + b'"}')
    except OSError:
        print("said")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.append(b'{"time":"3"}')
"""


def test_a_line_after_one_that_was_cut_short_is_whole(path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == ("said\nsaid\n", "")
    lines = path.read_bytes().split(b"\n")
    assert lines[0] == b'{"time":"1"}'
    assert lines[-2:] == [b'{"time":"3"}', b""]


def test_a_line_after_another_process_died_in_one_is_whole(audit: Audit, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"time":"2026')
    audit.keep(finished(SHELL, {"command": "a"}))
    assert json.loads(path.read_bytes().split(b"\n")[1])["tool"] == "shell"


WRITER = """
import sys
from pathlib import Path
from tools.core.audit.recording import AuditFile
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
file = AuditFile(path, max_bytes=int(sys.argv[4]), backups=1000)
sys.stdin.readline()
for number in range(count):
    file.append(f'{{"time":"{name}-{number}","pad":"{"x" * (number % 97 * 11)}"}}'.encode())
"""


def test_several_processes_lose_and_mix_no_line_while_the_log_is_rotated(path: Path) -> None:
    writers, count, size = 4, 1_500, 30_000
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(name), str(count), str(size)],
            stdin=subprocess.PIPE,
        )
        for name in range(writers)
    ]
    for writer in started:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.close()
    assert [writer.wait(60) for writer in started] == [0] * writers
    files = rotated(path)
    told = [entry["time"] for file in files for entry in entries(file)]
    assert sorted(told) == sorted(f"{name}-{n}" for name in range(writers) for n in range(count))
    assert len(files) > 5


def test_a_rotated_log_keeps_as_many_files_as_it_is_told(path: Path) -> None:
    audit = Audit(path, max_bytes=1_000, backups=3)
    for number in range(40):
        audit.keep(finished(SHELL, {"command": f"call {number}"}))
    names = sorted(each.name for each in path.parent.iterdir())
    assert names == ["calls.jsonl", *(f"calls.jsonl.{n}" for n in (1, 2, 3)), "calls.jsonl.lock"]
    kept = [
        entry["arguments"]["command"]
        for name in ("calls.jsonl.3", "calls.jsonl.2", "calls.jsonl.1", "calls.jsonl")
        for entry in entries(path.with_name(name))
    ]
    assert kept == [f"call {number}" for number in range(40 - len(kept), 40)]
    fewer = Audit(path, max_bytes=1_000, backups=1)
    for _ in range(4):
        fewer.keep(finished(SHELL, {"command": "call"}))
    assert len(list(path.parent.glob("calls.jsonl.[0-9]"))) == 1


def test_whoever_rotates_holds_up_nobody(audit: Audit, path: Path) -> None:
    small = Audit(path, max_bytes=1_000, backups=3)
    path.parent.mkdir(parents=True)
    with unrotated(path, wait=True):
        for _ in range(20):
            small.keep(finished(SHELL, {"command": "a"}))
    assert len(entries(path)) == 20
