"""Shell commands: what they wrote and how they ended; nothing of them is left, however that was."""

import json
import os
import re
import subprocess
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tools.core.context import Origin, RequestContext

pytestmark = pytest.mark.boundary

ALLOWED = {"policy__allow": ("scope:system",)}


@pytest.fixture
async def crib(open_crib: Callable[..., Any]) -> AsyncIterator[Any]:
    async with open_crib(**ALLOWED) as crib:
        yield crib


@pytest.fixture(scope="module")
async def shared(open_shared: Callable[..., Any]) -> AsyncIterator[Any]:
    async with open_shared(**ALLOWED) as crib:
        yield crib


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[str]:
    """Seconds that no other program sleeps, which is what survivors are known by."""
    marker = f"{os.getpid() + 100_000}.{abs(hash(tmp_path.name)) % 10**9}"
    yield marker
    for pid in survivors(marker):  # of a naive way, or of a test that fails
        os.kill(pid, 9)


def survivors(marker: str) -> list[int]:
    """The processes that have the marker among their arguments, without this one."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            line = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in line and int(directory.name) != os.getpid():
            found.append(int(directory.name))
    return found


async def until(path: Path) -> None:
    """Waits for a file that a command makes."""
    with anyio.fail_after(20):
        while not path.exists():  # noqa: ASYNC240  # it takes microseconds
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("true", 0, "", ""),
        ("echo one; echo two >&2; exit 3", 3, "one\n", "two\n"),
        ("printf 'no end'", 0, "no end", ""),
        ("false | true", 0, "", ""),
        ("kill -TERM $$", 143, "", ""),
        ("kill -KILL $$", 137, "", ""),
        ("(exit 300)", 44, "", ""),
        ("[[ a == a ]] && echo bash", 0, "bash\n", ""),
        ("echo a; exec 1>&- 2>&-; echo b; exit 4", 4, "a\n", ""),
        ('read line; echo "got:$line"', 0, "got:\n", ""),
        ("cat; echo end", 0, "end\n", ""),
        ("[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo no terminal", 0, "no terminal\n", ""),
        ("(: < /dev/tty) 2> /dev/null || echo nobody to ask", 0, "nobody to ask\n", ""),
        ("yes | head -n 2", 0, "y\ny\n", ""),
    ],
)
async def test_a_command_tells_what_it_wrote_and_how_it_ended(
    shared: Any, command: str, code: int, out: str, err: str
) -> None:
    found = await shared.call("bash", command=command)
    assert (found["exit_code"], found["stdout"], found["stderr"]) == (code, out, err)
    assert (found["state"], found["truncated"], "job_id" in found) == ("exited", False, False)
    level = await shared.app.machine.processes.level()
    assert found["sandbox"] == level


async def test_an_error_of_the_shell_is_what_the_command_wrote(shared: Any) -> None:
    unknown = await shared.call("execute_shell_command", command="no-such-program-at-all")
    assert unknown["exit_code"] == 127
    assert "not found" in unknown["stderr"]
    wrong = await shared.call("bash", command="if then")
    assert wrong["exit_code"] == 2
    assert "syntax error" in wrong["stderr"]


async def test_the_model_reads_how_it_ended_first_and_errors_last(shared: Any) -> None:
    text = await shared.text("bash", command="echo two >&2; echo one; exit 7")
    level = await shared.app.machine.processes.level()
    head, *rest = text.split("\n")
    assert head == f"[exit code 7; sandbox: {level}]"
    assert rest[-3:] == ["one", "[stderr]", "two"]


SPAWNS = {
    "background": "sleep {m} &",
    "own session": "setsid sleep {m} &",
    "nohup": "nohup sleep {m} > /dev/null 2>&1 &",
    "disowned": "sleep {m} & disown",
    "forked twice": "( ( sleep {m} & ) & )",
    "own session, forked twice": "( setsid setsid sleep {m} & )",
    "deaf": "(trap '' TERM HUP INT QUIT; sleep {m}) &",
    "coprocess": "coproc sleep {m}",
    "pipes closed": "setsid sleep {m} < /dev/null > /dev/null 2>&1 &",
    "pipes held": "setsid bash -c 'sleep {m}; true' &",
    "subreaper's child": "bash -c 'sleep {m} & setsid sleep {m} & exec sleep {m}' &",
}
BY_SPAWN = pytest.mark.parametrize("spawn", SPAWNS.values(), ids=SPAWNS)
BY_HARD_SPAWN = pytest.mark.parametrize("spawn", [SPAWNS["deaf"], SPAWNS["subreaper's child"]])


async def test_the_naive_way_waits_for_what_holds_the_pipe_and_leaves_it_behind(
    marker: str,
) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(  # noqa: ASYNC221  # the naive way blocks
            ["bash", "-c", f"setsid sleep {marker} & echo done"],  # noqa: S607
            capture_output=True,
            timeout=0.5,
            check=False,
        )
    assert survivors(marker)


@BY_SPAWN
async def test_what_a_command_leaves_running_ends_with_it_and_holds_up_nothing(
    shared: Any, spawn: str, marker: str
) -> None:
    with anyio.fail_after(20):
        found = await shared.call(
            "bash", command=f"echo begun; {spawn.format(m=marker)}\necho done"
        )
    assert (found["stdout"], found["exit_code"]) == ("begun\ndone\n", 0)
    assert not survivors(marker)


@BY_HARD_SPAWN
async def test_nothing_outlives_the_deadline(shared: Any, spawn: str, marker: str) -> None:
    with anyio.fail_after(20):
        found = await shared.call(
            "bash",
            command=f"echo begun; {spawn.format(m=marker)}\nsleep {marker}",
            timeout_seconds=0.3,
        )
    assert (found["state"], found["stdout"]) == ("timed_out", "begun\n")
    assert not survivors(marker)


@BY_HARD_SPAWN
async def test_nothing_outlives_a_cancelled_call(crib: Any, spawn: str, marker: str) -> None:
    app, started = crib.app, crib.root / "started"
    context = RequestContext(Origin(app.identity))
    command = f"{spawn.format(m=marker)}\ntouch started; sleep {marker}"
    async with anyio.create_task_group() as group:
        group.start_soon(app.manager.execute, "bash", {"command": command}, context)
        await until(started)
        assert survivors(marker)
        group.cancel_scope.cancel()
    assert not survivors(marker)


async def test_a_deadline_kills_what_ignores_every_signal(crib: Any, marker: str) -> None:
    command = f"trap '' TERM INT HUP QUIT; echo deaf; while :; do sleep {marker}; done"
    found = await crib.call("bash", command=command, timeout_seconds=0.3)
    assert (found["state"], found["exit_code"], found["stdout"]) == ("timed_out", 137, "deaf\n")
    assert not survivors(marker)


async def test_half_a_gigabyte_of_output_costs_little_memory_and_keeps_both_ends(
    open_crib: Any,
) -> None:
    async with open_crib(limits__result_tokens=0) as crib:
        await crib.call("bash", command="true")
        tracemalloc.start()
        try:
            flood = "echo first; head -c 500000000 /dev/zero; echo; echo last; echo error >&2"
            found = await crib.call("bash", command=flood)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert found["truncated"]
    assert found["stdout"].startswith("first\n\0")
    assert found["stdout"].endswith("\0\nlast\n")
    assert found["stderr"] == "error\n"
    assert "bytes with" in found["stdout"]
    assert 900_000 < len(found["stdout"]) < 1_000_100
    assert peak < 100_000_000  # of 500 MB, of which each zero is shown as four characters


async def test_output_and_errors_share_what_is_kept(open_crib: Any) -> None:
    fill = "head -c {} /dev/zero | tr '\\0' {}"
    async with open_crib(limits__result_tokens=0) as crib:
        both = f"{fill.format(3_000_000, 'o')}; {fill.format(3_000_000, 'e')} >&2"
        found = await crib.call("bash", command=both)
        assert 490_000 < len(found["stdout"]) < 510_000
        assert 490_000 < len(found["stderr"]) < 510_000
        one = await crib.call("bash", command=f"{fill.format(900_000, 'e')} >&2")
        assert (len(one["stderr"]), one["truncated"]) == (900_000, False)


async def test_both_ends_of_long_output_are_shown_and_its_middle_can_be_read(crib: Any) -> None:
    text = await crib.text("bash", command="seq -f 'line %g' 40000; echo wrong >&2")
    assert 14_000 < len(text) < 16_000
    assert "line 500\n" in text
    assert "\nline 39600\n" in text
    assert text.endswith("line 40000\n[stderr]\nwrong")
    handle = re.search(r"handle='(r[0-9a-f]{16})'", text)
    assert handle is not None
    assert "line 20000" in await crib.text("read_result", handle=handle[1], grep="line 20000")


async def test_wild_bytes_become_text_that_steers_nothing(crib: Any) -> None:
    broken, steering = (
        r"a\xff\xfe\xc3(\xe2\x82 \xf0\x9f\x98\x80\n",
        r"\033[31mred\033[0m\r\n\033]0;title\a\0\x7f",
    )
    wild = f"printf '{broken}{steering}'"
    found = await crib.call("bash", command=wild)
    assert found["stdout"].startswith("a\ufffd\ufffd\ufffd(\ufffd 😀\n\x1b[31mred\x1b[0m\r\n")
    text = await crib.text("bash", command=wild)
    assert "␛[31mred␛[0m\n␛]0;title␇␀␡" in text
    assert all(character.isprintable() or character == "\n" for character in text)
    every = await crib.call(
        "bash", command="head -c 5000 /dev/urandom; head -c 5000 /dev/urandom >&2"
    )
    json.dumps(every).encode()


async def test_a_command_starts_in_the_root_or_beneath_it(crib: Any) -> None:
    (crib.root / "sub" / "deep").mkdir(parents=True)
    (crib.root / "file").write_text("")
    (crib.root / "out").symlink_to("/")
    assert (await crib.call("bash", command="ls"))["stdout"] == "file\nout\nsub\n"
    assert (await crib.call("bash", command="pwd", cwd="sub/deep"))["stdout"].endswith(
        "/sub/deep\n"
    )
    inside = str(crib.root / "sub")
    assert (await crib.call("bash", command="ls", cwd=inside))["stdout"] == "deep\n"
    for outside in ("..", "/", "out", "sub/../..", "../root2"):
        kind, text = await crib.failure("bash", command="pwd", cwd=outside)
        assert kind == "outside_sandbox", text
    assert (await crib.failure("bash", command="pwd", cwd="missing"))[0] == "not_found"
    assert (await crib.failure("bash", command="pwd", cwd="file"))[0] == "invalid_arguments"


async def test_variables_are_given_and_the_servers_own_are_not(
    crib: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_SECRET", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    (crib.root / "trap.sh").write_text("echo caught")
    found = await crib.call(
        "bash", command='echo "$A/$B"; env', env={"A": "one two", "B": "$HOME `id`"}
    )
    assert found["stdout"].startswith("one two/$HOME `id`\n")
    assert "hunter2" not in found["stdout"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": ""},
        {"command": "a\0b"},
        {"command": "x" * 30_001},
        {"command": "true", "env": {"A=B": "c"}},
        {"command": "true", "env": {"": "c"}},
        {"command": "true", "env": {"BASH_FUNC_ls%%": "() { id; }"}},
        {"command": "true", "env": {"A": "a\0b"}},
        {"command": "true", "env": {"A": 1}},
        {"command": "true", "env": {f"A{n}": "" for n in range(101)}},
        {"command": "true", "cwd": "a\0b"},
        {"command": "true", "timeout_seconds": 0},
        {"command": "true", "timeout_seconds": -1},
        {"command": "true", "timeout_seconds": 3_601},
        {"command": "true", "timeout_seconds": "soon"},
        {"command": "true", "run_in_background": "perhaps"},
        {"cmd": "true"},
    ],
)
async def test_arguments_that_no_program_can_be_given_are_refused(
    shared: Any, arguments: dict[str, Any]
) -> None:
    assert (await shared.failure("bash", **arguments))[0] == "invalid_arguments"


async def test_half_characters_are_refused(crib: Any) -> None:
    result = await crib.app.manager.execute("bash", {"command": "echo \ud800"}, RequestContext())
    assert result.structured["error_type"] == "invalid_arguments"


async def test_a_command_as_long_as_any_runs(crib: Any) -> None:
    command = "echo " + "é" * 29_995
    assert (await crib.text("bash", command=command)).count("é") > 12_000


async def test_commands_run_side_by_side(crib: Any) -> None:
    meet = "touch {mine}; until [ -e {other} ]; do sleep 0.01; done; echo met"
    found: list[str] = []

    async def run(mine: str, other: str) -> None:
        command = meet.format(mine=mine, other=other)
        found.append((await crib.call("bash", command=command))["stdout"])

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(run, "a", "b")
            group.start_soon(run, "b", "a")
    assert found == ["met\n", "met\n"]


async def test_commands_hold_up_neither_files_nor_the_end_of_a_job(crib: Any) -> None:
    job = await crib.call("bash", command="sleep 1000", run_in_background=True)
    command = "until [ -e go ]; do sleep 0.01; done"
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(partial(crib.call, "bash", command=command))
            await crib.call("bash_kill", job_id=job["job_id"])
            await crib.call("write_file", file_path="go", content="")
            assert (await crib.call("read_file", file_path="go"))["size"] == 0


async def test_progress_is_reported_while_a_command_runs(crib: Any) -> None:
    reports: list[tuple[float, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))
        (crib.root / "go").touch()

    client: Client = crib.client
    with anyio.fail_after(20):
        result = await client.call_tool(
            "bash",
            {"command": "echo begun; until [ -e go ]; do sleep 0.01; done"},
            progress_callback=report,
        )
    assert result.structured_content is not None
    assert result.structured_content["exit_code"] == 0
    assert reports[0][0] >= 1
    assert "6 bytes" in str(reports[0][1])


async def test_a_command_runs_by_default_and_deletes_no_repository_where_nobody_answers(
    open_crib: Callable[..., Any], tmp_path: Path
) -> None:
    async with open_crib() as crib:
        context = RequestContext(Origin(crib.app.identity))
        call = partial(crib.app.manager.execute, "bash", context=context)
        ran = await call({"command": "git init -q kept && touch kept/ran"})
        refused = await call({"command": "rm -rf kept"})
    assert ran.structured["exit_code"] == 0
    assert refused.structured["error_type"] == "approval_required"
    assert "It deletes a git repository (kept)." in refused.text
    assert (tmp_path / "root" / "kept" / "ran").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"policy__profile": "cautious"},
        {"system__sandbox": "off"},
        {"system__network": ("example.com:443",)},
    ],
)
async def test_a_command_asks_where_it_is_not_held_back_or_the_profile_is_cautious(
    settings: dict[str, Any], open_crib: Callable[..., Any], tmp_path: Path
) -> None:
    async with open_crib(**settings) as crib:
        context = RequestContext(Origin(crib.app.identity))
        result = await crib.app.manager.execute("bash", {"command": "touch ran"}, context)
    assert result.structured["error_type"] == "approval_required"
    assert not (tmp_path / "root" / "ran").exists()


async def test_a_call_is_audited_with_its_level_and_without_its_secrets(crib: Any) -> None:
    found = await crib.call("bash", command="true --password hunter2; echo 'a b'")
    (line,) = crib.app.settings.audit_file.read_text().splitlines()
    entry = json.loads(line)
    assert entry["tool"] == "bash"
    assert entry["arguments"]["command"] == "true --password [redacted]; echo 'a b'"
    assert (entry["sandbox"], entry["outcome"]) == (found["sandbox"], "ok")
    assert entry["verdict"] == "allow"


async def test_a_server_in_the_background_is_asked_by_the_next_command(crib: Any) -> None:
    (crib.root / "page.txt").write_text("the page")
    command = "exec python3 -u -m http.server 8000 2>&1"
    job = await crib.call("bash", command=command, run_in_background=True)
    assert "port 8000" in (await _next_output(crib, job["job_id"]))["output"]
    asked = "curl -sS http://127.0.0.1:8000/page.txt"
    assert (await crib.call("bash", command=asked))["stdout"] == "the page"
    code = "import urllib.request as u; u.urlopen('http://localhost:8000/page.txt').read().decode()"
    assert (await crib.call("execute_python_code", code=code))["stdout"] == "'the page'\n"
    for other in (RequestContext(), RequestContext(Origin(session_id="another"))):
        result = await crib.app.manager.execute("bash", {"command": asked}, other)
        assert "Failed to connect" in result.structured["stderr"]


async def test_a_job_runs_on_and_is_asked_about_and_ended(crib: Any, marker: str) -> None:
    command = (
        f"echo one; until [ -e go ]; do sleep 0.01; done; echo two; touch went; sleep {marker}"
    )
    job = await crib.call("bash", command=command, run_in_background=True)
    assert (job["state"], "exit_code" in job, job["stdout"]) == ("running", False, "")
    told = await _next_output(crib, job["job_id"])
    assert (told["output"], told["first"], told["next"], told["lost"]) == ("one\n", 0, 4, 0)
    (crib.root / "go").touch()
    await until(crib.root / "went")
    assert (await _next_output(crib, job["job_id"]))["output"] == "two\n"
    again = await crib.call("bash_output", job_id=job["job_id"], since=0)
    assert (again["output"], again["state"]) == ("one\ntwo\n", "running")
    assert (await crib.call("bash_output", job_id=job["job_id"], since=-4))["output"] == "two\n"
    assert survivors(marker)
    ended = await crib.call("bash_kill", job_id=job["job_id"])
    assert (ended["was_running"], ended["state"], ended["exit_code"]) == (True, "exited", 137)
    assert not survivors(marker)
    ended = await crib.call("bash_kill", job_id=job["job_id"])
    assert not ended["was_running"]


async def test_what_a_job_wrote_can_be_read_when_it_has_ended(crib: Any) -> None:
    job = await crib.call("bash", command="echo out; echo err >&2; exit 5", run_in_background=True)
    with anyio.fail_after(20):
        while (told := await crib.call("bash_output", job_id=job["job_id"], since=0))[
            "state"
        ] == "running":
            pass
    assert told["exit_code"] == 5
    assert sorted(told["output"].splitlines()) == ["err", "out"]
    text = await crib.text("bash_output", job_id=job["job_id"], since=0)
    assert text.startswith("[exited with exit code 5; bytes 0 to 8; sandbox: ")


@pytest.mark.parametrize("name", ["bash_output", "bash_kill"])
async def test_a_job_that_there_is_not_is_not_found(shared: Any, name: str) -> None:
    kind, text = await shared.failure(name, job_id="0" * 16)
    assert kind == "not_found"
    assert "bash" in text


@pytest.mark.parametrize("name", ["bash_output", "bash_kill"])
async def test_nobody_elses_job_is_found(crib: Any, name: str) -> None:
    from storage.models import Identity

    job = await crib.call("bash", command="sleep 1000", run_in_background=True)
    mallory = RequestContext(Origin(Identity("mallory")))
    result = await crib.app.manager.execute(name, {"job_id": job["job_id"]}, mallory)
    missing = await crib.app.manager.execute(name, {"job_id": "f" * 16}, mallory)
    assert result.structured["error_type"] == "not_found"
    assert result.text.replace(job["job_id"], "f" * 16) == missing.text
    assert (await crib.call("bash_output", job_id=job["job_id"]))["state"] == "running"


async def _next_output(crib: Any, job_id: str) -> dict[str, Any]:
    """What a job wrote next, when it has written something."""
    with anyio.fail_after(20):
        while True:
            told: dict[str, Any] = await crib.call("bash_output", job_id=job_id)
            if told["output"]:
                return told
