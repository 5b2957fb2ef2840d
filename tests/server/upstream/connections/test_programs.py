"""Other servers that are programs: they start, fail, end and are started again."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from server.mcp.sessions import SHARED
from server.settings.gateway import ServerSettings
from server.upstream.connections.connection import Callbacks
from server.upstream.upstream import State
from tools.core.errors import UnavailableError, UpstreamError


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends while it is read
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def test_the_tools_of_a_server_are_there_and_answer(frail: Any, gateway_of: Any) -> None:
    async with gateway_of(toy=frail().settings()) as running:
        assert running.names == ["toy__crash", "toy__echo"]
        assert await running.call("toy", "echo", "hello") == "hello"
        assert running["toy"].state is State.UP
        assert running["toy"].home.client.protocol_version == "2025-11-25"
        assert running["toy"].listing.server_info.name == "frail"


async def test_a_crash_fails_the_call_with_its_reason_and_the_server_is_started_again(
    frail: Any, gateway_of: Any, until: Any
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings()) as running:
        with pytest.raises(UpstreamError, match=r"'toy' exited with code 7; .*the last words"):
            await running.call("toy", "crash")
        await until(lambda: len(toy.pids) == 2 and running["toy"].state is State.UP)
        assert await running.call("toy", "echo", "back") == "back"
    assert len(toy.pids) == 2


async def test_the_end_of_a_server_is_noticed_without_a_call(
    frail: Any, gateway_of: Any, until: Any
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings(lazy=True)) as running:
        await running.call("toy", "echo")
        os.kill(toy.pids[0], signal.SIGKILL)
        await until(lambda: running["toy"].state is State.DOWN)
        assert running["toy"].problem == "was killed by SIGKILL"


async def test_a_server_that_never_answers_holds_up_no_other(frail: Any, gateway_of: Any) -> None:
    silent = frail("silent", silent=True, stubborn=True)
    servers = {"silent": silent.settings(start_timeout=600, lazy=True), "toy": frail().settings()}
    async with gateway_of(**servers) as running, anyio.create_task_group() as group:
        group.start_soon(running.call, "silent", "echo")
        assert await running.call("toy", "echo", "here") == "here"
        assert running["silent"].state is State.STARTING
        group.cancel_scope.cancel()
    assert not any(map(_runs, silent.pids))


async def test_a_server_that_ends_on_a_message_of_the_newer_era_is_asked_the_older_way(
    frail: Any, gateway_of: Any
) -> None:
    toy = frail(ends_on_discover=True)
    async with gateway_of(toy=toy.settings()) as running:
        assert await running.call("toy", "echo", "old") == "old"
        assert await running.call("toy", "echo", session_id="another") == "echo"
    assert len(toy.pids) == 3  # what worked is tried first


@pytest.mark.parametrize("tool", ["malformed", "wrong"])
async def test_an_answer_that_is_none_fails_its_call_alone(
    tool: str, frail: Any, gateway_of: Any
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings()) as running:
        with pytest.raises(MCPError, match="not a valid message"):
            await running.call("toy", tool)
        assert await running.call("toy", "echo", "fine") == "fine"
    assert len(toy.pids) == 1


async def test_what_else_a_server_prints_is_no_matter(frail: Any, gateway_of: Any) -> None:
    junk = 'Listening…\n{"level": 30, "msg": "ready"}\n\n[1, 2]\n\x00\x01'
    async with gateway_of(toy=frail(junk=junk).settings()) as running:
        assert await running.call("toy", "echo", "fine") == "fine"


async def test_a_message_beyond_all_bounds_ends_the_connection(frail: Any, gateway_of: Any) -> None:
    async with gateway_of(toy=frail().settings()) as running:
        with pytest.raises(UpstreamError, match="message of more than 32 MB"):
            await running.call("toy", "huge")


async def test_a_flood_of_one_server_drowns_no_other(frail: Any, gateway_of: Any) -> None:
    servers = {"flood": frail("flood").settings(), "toy": frail().settings()}
    async with gateway_of(**servers) as running, anyio.create_task_group() as group:
        group.start_soon(running.call, "flood", "flood")
        for number in range(100):
            assert await running.call("toy", "echo", str(number)) == str(number)
        group.cancel_scope.cancel()


async def test_nothing_of_a_server_is_left(frail: Any, gateway_of: Any) -> None:
    toy = frail(stubborn=True)
    async with gateway_of(toy=toy.settings()) as running:
        left = int(await running.call("toy", "leave"))
        assert _runs(left)
    assert not any(map(_runs, [left, *toy.pids]))


async def test_a_server_ends_with_us_however_we_end(frail: Any, until: Any, tmp_path: Path) -> None:
    toy = frail(stubborn=True)
    settings = toy.settings().model_dump(include={"command", "args"})
    script = f"""
import anyio
from server.settings.gateway import ServerSettings
from server.upstream.connections.connect import Transports
async def main():
    link = await Transports({{}}).link("toy", ServerSettings(**{settings!r}))
    async with link:
        await anyio.sleep_forever()
anyio.run(main)
"""
    us = subprocess.Popen([sys.executable, "-c", script])  # noqa: ASYNC220  # in a test
    await until(lambda: toy.pids)
    us.kill()
    us.wait()
    await until(lambda: not _runs(toy.pids[0]))


async def test_each_conversation_has_a_server_of_its_own(frail: Any, gateway_of: Any) -> None:
    async with gateway_of(toy=frail().settings()) as running:
        await running.call("toy", "keep", "mine", session_id="ann")
        assert await running.call("toy", "keep", "yours", session_id="bob") == "yours"
        assert await running.call("toy", "keep", "too", session_id="ann") == "mine too"


async def test_conversations_that_are_silent_are_closed_but_not_our_own(
    frail: Any, gateway_of: Any, until: Any
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings(idle_timeout=1)) as running:
        await running.call("toy", "echo", session_id="ann")
        running["toy"].connections["ann"].last_used -= 2
        running["toy"].close_idle()
        home, ann = toy.pids
        await until(lambda: not _runs(ann))
        assert _runs(home)
        assert running["toy"].state is State.UP


async def test_a_connection_made_for_another_client_is_opened_anew_and_ends_what_is_under_way(
    frail: Any, gateway_of: Any
) -> None:
    class Aging(Callbacks):
        old = False

        @property
        def outdated(self) -> bool:
            return self.old

    made: list[Aging] = []

    def make(_server: str, _session_id: str) -> Callbacks:
        made.append(Aging())
        return made[-1]

    toy = frail()
    async with gateway_of(make_callbacks=make, toy=toy.settings()) as running:
        connection = await running["toy"].connection("ann")
        async with connection.used():
            made[-1].old = True
            assert await running["toy"].connection("ann") is not connection
            assert connection.is_open
        await connection.closed.wait()
        assert await running["toy"].connection("ann") is await running["toy"].connection("ann")


async def test_so_many_conversations_are_kept(frail: Any, gateway_of: Any, until: Any) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings(max_connections=1)) as running:
        for session_id in ("ann", "bob"):
            await running.call("toy", "echo", session_id=session_id)
        _home, ann, bob = toy.pids
        await until(lambda: not _runs(ann))
        assert _runs(bob)
        connection = await running["toy"].connection("bob")
        async with connection.used():
            with pytest.raises(UnavailableError, match="its max_connections"):
                await running.call("toy", "echo", session_id="carol")
        assert _runs(bob)


async def test_the_end_of_a_conversation_ends_its_server_once_no_call_uses_it(
    frail: Any, gateway_of: Any, until: Any
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings()) as running:
        await running.call("toy", "echo", session_id="ann")
        home, ann = toy.pids
        connection = await running["toy"].connection("ann")
        async with connection.used():
            running.gateway.end("ann")
            assert await running.call("toy", "echo", "x", session_id="bob") == "x"
            assert _runs(ann)
        await until(lambda: not _runs(ann))
        assert _runs(home)
        running.gateway.end("home")
        await until(lambda: not _runs(home))
        await until(lambda: any(map(_runs, toy.pids)))  # one that lists it


@pytest.mark.parametrize(
    ("sessions", "session_id"), [("per_call", "ann"), ("per_conversation", f"{SHARED}1")]
)
async def test_a_call_of_no_conversation_has_a_server_of_its_own(
    frail: Any, gateway_of: Any, until: Any, sessions: str, session_id: str
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings(sessions=sessions)) as running:
        assert await running.call("toy", "keep", "mine", session_id=session_id) == "mine"
        assert await running.call("toy", "keep", "yours", session_id=session_id) == "yours"
        home, *others = toy.pids
        assert len(others) == 2
        await until(lambda: not any(map(_runs, others)))
        assert _runs(home)


async def test_a_server_is_shared_only_if_the_settings_say_so(frail: Any, gateway_of: Any) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings(sessions="shared")) as running:
        await running.call("toy", "keep", "mine", session_id="ann")
        assert await running.call("toy", "keep", "too", session_id=f"{SHARED}1") == "mine too"
        assert len(toy.pids) == 1


@pytest.mark.parametrize(
    ("switches", "settings", "reason"),
    [
        ({}, {"command": "no-such-command-here"}, "'no-such-command-here' was not found"),
        (
            {},
            {"env": {"KEY": "${NOWHERE}"}},
            r"'toy' cannot be used: its env\.KEY names .* NOWHERE",
        ),
        ({"exits": 3}, {}, r"code 3; .*no token was given\. The next try is in"),
        ({"silent": True}, {"start_timeout": 2}, "within 2 s, its start_timeout.*for the database"),
    ],
)
async def test_a_server_that_cannot_be_started_is_down_and_says_why(
    switches: Any, settings: Any, reason: str, frail: Any, gateway_of: Any
) -> None:
    async with gateway_of(toy=frail(**switches).settings(**settings)) as running:
        with pytest.raises(UnavailableError, match=reason):
            await running.call("toy", "echo")
        assert running["toy"].state is State.DOWN
        assert running["toy"].why_unlisted
        assert running.names == []


async def test_a_program_has_its_own_variables_and_what_is_safe_of_ours(
    frail: Any, gateway_of: Any
) -> None:
    network = {"NODE_EXTRA_CA_CERTS": "/ours.pem", "https_proxy": "http://proxy:1", "LC_ALL": "C"}
    ours = {**os.environ, **network, "SECRET": "s3cret", "AWS_SECRET": "not yours"}
    settings = frail().settings(env={"KEY": "${SECRET}", "OTHER": "${MISSING:-default}"})
    async with gateway_of(environ=ours, toy=settings) as running:
        expected = {**network, "KEY": "s3cret", "OTHER": "default", "PATH": os.environ["PATH"]}
        for name, value in {**expected, "SECRET": "", "AWS_SECRET": ""}.items():
            assert await running.call("toy", "variable", name) == value


async def test_what_a_server_prints_is_kept_without_secrets_and_steers_no_terminal(
    frail: Any, gateway_of: Any, printed: Any, until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with gateway_of(toy=frail().settings()) as running:
        await running.call("toy", "say", "\x1b[31mred")
        await running.call("toy", "say", "no login with token=geheim at https://ann:geheim@host/")
        await until(lambda: "no login with" in printed("toy"))
    assert "␛[31mred" in printed("toy")
    assert "geheim" not in printed("toy")
    assert "red" not in caplog.text


async def test_the_log_of_a_server_keeps_its_latest_lines_and_is_private(
    frail: Any, gateway_of: Any, printed: Any, until: Any, tmp_path: Path
) -> None:
    line = "x" * 400
    async with gateway_of(toy=frail().settings()) as running:
        for number in range(4):
            await running.call("toy", "say", "\n".join([line] * 400 + [f"round {number}"]))
        await until(lambda: "round 3" in printed("toy"))
    files = [each for each in (tmp_path / "server-logs").iterdir() if each.stat().st_size]
    assert sorted(each.name for each in files) == ["toy.jsonl", "toy.jsonl.1"]
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in files)
    assert sum(each.stat().st_size for each in files) <= 1_000_000


async def test_what_an_older_server_says_about_our_probe_is_not_kept(
    frail: Any, gateway_of: Any, printed: Any, until: Any
) -> None:
    page = [
        "WARNING:root:Failed to validate request: 24 validation errors for ClientRequest",
        "PingRequest.method",
        "  Input should be 'ping' [type=literal_error, input_value='server/discover']",
        "    For further information visit https://errors.pydantic.dev/2.11/v/l",
        "    iteral_error",
    ]
    toy = frail(says_on_discover=["loading", *page, "ready"])
    async with gateway_of(toy=toy.settings()) as running:
        await running.call("toy", "echo")
        await until(lambda: "ready" in printed("toy"))
    told = printed("toy")
    assert "loading" in told
    assert "Request" not in told
    assert "error" not in told


async def test_a_server_that_ends_before_it_is_asked_is_reported_at_once(
    gateway_of: Any, printed: Any
) -> None:
    for _ in range(5):  # a race between its end and our first message
        ends = ServerSettings(command="sh", args=("-c", "echo no key >&2; exit 3"))
        settings = ends.model_copy(update={"start_timeout": 3_600.0})
        async with gateway_of(toy=settings) as running:
            assert running["toy"].problem == "exited with code 3; its last lines: no key"
    assert "(exited with code 3)" in printed("toy")
