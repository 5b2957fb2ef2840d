"""Servers with `sandbox = true`: what they reach, and what their errors say they do not."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.settings.safety import PolicySettings
from tests.server.serving import running
from tools.sandbox.processes.confinement.plan import find_visible_paths
from tools.sandbox.processes.lasting import find_installation

# ruff: noqa: ASYNC240  # of a test's own files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

SHELL = Path(__file__).with_name("shell_upstream.py")

Say = Callable[[str], Any]
"""Runs a line in the server; returns its output, or its error after `!`."""


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Say]]:
    """Runs the product with a confined server behind it, whose tool is a shell."""

    @asynccontextmanager
    async def make(
        *, args: tuple[str, ...] = (), deny: tuple[str, ...] = (), **settings: Any
    ) -> AsyncIterator[Say]:
        readable = (SHELL, *settings.pop("readable", ()))
        server = ServerSettings(
            command=sys.executable,
            args=(str(SHELL), *args),
            sandbox=True,
            readable=readable,
            **settings,
        )
        policy = PolicySettings(allow=("*",), deny=deny)
        async with (
            running(tmp_path, policy=policy, servers={"shell": server}) as app,
            Client(InMemoryTransport(app.server)) as client,
        ):

            async def say(line: str) -> str:
                result = await client.call_tool("shell__sh", {"line": line})
                text = "\n".join(each.text for each in result.content)  # type: ignore[union-attr]
                return f"!{text}" if result.is_error else text

            yield say

    return make


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of the user with a private file, a repository and some notes."""
    for name in (".ssh", "notes", "repo/.git/hooks", "repo/.git/objects", "repo/.git/refs"):
        (tmp_path / "user" / name).mkdir(parents=True)
    (tmp_path / "user" / ".ssh" / "id").write_text("private")
    (tmp_path / "user" / "notes" / "one").write_text("a note")
    (tmp_path / "user" / "repo" / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (tmp_path / "user" / "repo" / ".git" / "config").write_text("[core]\n")
    return tmp_path / "user"


async def test_a_server_sees_what_it_is_given_and_no_more(
    shell: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "leaked")
    notes, repo = place / "notes", place / "repo"
    given = {"env": {"GIVEN": "yes"}, "readable": (notes,), "writable": (repo,)}
    async with shell(**given) as say:
        assert await say(f"cat {notes}/one") == "a note"
        assert await say(f"echo two > {repo}/file && echo $GIVEN") == "yes"
        assert (repo / "file").read_text() == "two\n"
        assert await say(f"ls -A {place}") == "notes\nrepo"
        assert "private" not in await say(f"cat {place}/.ssh/id")
        assert "leaked" not in await say("env; cat /proc/*/environ")
        assert str(os.getpid()) not in (await say("ls /proc")).split()


async def test_an_error_names_the_line_that_would_allow_it(shell: Any, place: Path) -> None:
    notes = place / "notes"
    async with shell(readable=(notes,), hosts=("one.example:443",)) as say:
        table = "in [servers.shell]"
        said = await say(f"cat {place}/.ssh/id")
        assert f'writes readable = ["{SHELL}", "{notes}", "{place}/.ssh/id"] {table}' in said
        said = await say(f"ls {place}/repo")
        assert f'to write there, writes writable = ["{place}/repo"] {table}' in said
        said = await say(f"touch {notes}/new")
        assert f'the user writes writable = ["{notes}"] {table}' in said
        said = await say("curl -sS https://two.example/")
        assert f'writes hosts = ["one.example:443", "two.example:443"] {table}' in said
        assert "hosts" not in await say("curl -sS --noproxy '*' http://127.0.0.1:9/")
        assert "[" not in await say("echo fine")


async def test_what_other_programs_obey_is_closed_where_it_writes(shell: Any, place: Path) -> None:
    git = place / "repo" / ".git"
    async with shell(writable=(place / "repo",)) as say:
        for line in (f"echo x > {git}/hooks/pre-commit", f"echo x >> {git}/config", f"mv {git} x"):
            assert (await say(line)).startswith("!"), line
        assert await say(f"echo x > {git}/index && echo done") == "done"
    assert (git / "config").read_text() == "[core]\n"
    assert not list((git / "hooks").iterdir())


async def test_its_home_stays_and_belongs_to_it_alone(shell: Any, tmp_path: Path) -> None:
    async with shell() as say:
        home = Path(await say("echo kept > ~/file && echo ~"))
    async with shell() as say:
        assert await say("cat ~/file") == "kept"
    assert home.name == "shell"
    assert home.stat().st_mode & 0o077 == 0
    assert not home.is_relative_to(tmp_path / "data")


async def test_nothing_that_it_started_outlives_it(shell: Any) -> None:
    async with shell() as say:
        await say("setsid sleep 4242 >/dev/null 2>&1 & disown")
    running_now = [each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline")]
    assert b"sleep\x004242\x00" not in running_now


async def test_a_fork_bomb_ends_it_and_the_error_says_why(shell: Any) -> None:
    async with shell() as say:
        said = await say("bomb() { bomb | bomb & }; bomb; sleep 60")
        assert "more than 1024 processes and threads (system.processes)" in said


async def test_a_rule_that_denies_a_path_holds_for_it(shell: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "secrets").mkdir(parents=True)
    (root / "secrets" / "key").write_text("hushed")
    async with shell(readable=(root,), deny=("read(secrets/**)",)) as say:
        assert (await say(f"cat {root}/secrets/key")).startswith("!")


@pytest.mark.parametrize("what", ["missing", "link", "data"])
async def test_a_server_that_cannot_have_what_it_is_given_is_not_started(
    shell: Any, tmp_path: Path, place: Path, what: str
) -> None:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    (root / "link").symlink_to(place / ".ssh")
    path, said = {
        "missing": (tmp_path / "missing", "cannot be opened: No such file"),
        "link": (root / "link", "is or passes a link that programs could replace"),
        "data": (tmp_path, "which belongs to Toolcrib, must stay closed to it"),
    }[what]
    async with shell(writable=(path,)) as say:
        assert said in await say("echo started")


async def test_the_reason_for_an_early_end_names_the_path(shell: Any, place: Path) -> None:
    async with shell(args=(str(place / ".ssh" / "id"),)) as say:
        said = await say("echo started")
        assert f"{place}/.ssh/id is probably out of reach" in said
        assert "private" not in said


@pytest.mark.parametrize(
    "given",
    [{"sandbox": True, "url": "http://127.0.0.1:1/"}, {"command": "x", "hosts": ["a.example:1"]}],
)
def test_settings_that_would_confine_nothing_are_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="sandbox"):
        ServerSettings(**given)


def test_an_installation_is_found_without_the_home_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    node, tool, local = tmp_path / "node", tmp_path / "tools" / "x", tmp_path / ".local"
    for each in (node / "bin", node / "lib/node_modules", tool / "bin", local / "bin"):
        each.mkdir(parents=True)
    (local / "lib" / "node_modules").mkdir(parents=True)
    (tool / "pyvenv.cfg").write_text(f"home = {node}/bin\n")
    (node / "bin" / "node").touch(mode=0o700)
    (tool / "bin" / "x").write_text("#!/usr/bin/env node\n")
    (local / "bin" / "x").symlink_to(tool / "bin" / "x")
    found = find_installation(str(local / "bin" / "x"), str(node / "bin"))
    assert set(found) == {local / "bin" / "x", tool, node}
    visible = find_visible_paths(found)
    assert visible.include(str(tool / "bin" / "x"))
    assert not visible.include(str(tmp_path / ".ssh"))
    assert not visible.include(str(local / "share"))
