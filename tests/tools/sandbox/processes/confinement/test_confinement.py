"""Programs under confinement: what is kept from them, what is closed, and what still works."""

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from storage.outbound import OPT_OUT
from tests.tools.sandbox.processes.conftest import opened
from tests.tools.sandbox.processes.conftest import run_script as run
from tools.core.errors import ToolError, UnavailableError
from tools.sandbox.processes.models import Command, Level, Prepared
from tools.sandbox.processes.processes import inherited_variables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

CONFINED = pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])
EVERYWHERE = pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK, Level.NONE])


@EVERYWHERE
async def test_the_level_is_told(root: Path, level: Level) -> None:
    async with opened(root, level) as processes:
        assert await processes.level() is level
        assert await processes.is_confined() is (level is not Level.NONE)
        assert await processes.is_offline() is (level is not Level.NONE)
        program = await processes.start(Command(argv=("true",)))
        assert program.level is level
        assert await program.wait() == 0
        await program.aclose()


@EVERYWHERE
async def test_programs_that_may_reach_a_host_are_not_offline_at_any_level(
    root: Path, level: Level
) -> None:
    async with opened(root, level, network=["example.com:443"]) as processes:
        assert not await processes.is_offline()


WORK = {
    "git": "git init -q . && echo x > a && git add a && "
    "git -c user.name=a -c user.email=b commit -qm x && git log --oneline | grep -q x && "
    "git checkout -qb other && git status --short && git gc -q",
    "python": "python3 -c 'import json, sqlite3, ssl, tempfile; tempfile.mkdtemp()'",
    "multiprocessing": "python3 -c 'import subprocess, threading; "
    'subprocess.run(["true"], check=True)\'',
    "moving": "mkdir a b && touch a/f && python3 -c '"
    'import os; os.rename("a/f", "b/f"); os.link("b/f", "a/g")\'',
    "sort": "seq 200000 | sort -S 1M -R | sort -S 1M -n | tail -1 | grep -q 200000",
    "tar": "mkdir d && touch d/a && tar czf d.tgz d && rm -r d && tar xf d.tgz && test -f d/a",
    "find": "mkdir -p a/b && touch a/b/c && find . -name c -exec cat {} + && test -d a",
    "temporary files": 'f=$(mktemp) && echo x > "$f" && test -s "$f" && touch "$HOME/.cache"',
    "a document within": "cat <<'END' | grep -q x\nx\nEND",
    "a substituted process": "diff <(echo a) <(echo a)",
    "null and random": "head -c 10 /dev/urandom > /dev/null && echo x > /dev/null",
    "awk and sed": "seq 10 | awk '{s += $1} END {print s}' | sed -n 's/55/ok/p' | grep -q ok",
    "rights of its own": "touch a && chmod 755 a && touch -d 2001-01-01 a && ln -s a b && ln a c",
    "a background job": "sleep 0.05 & wait",
    "processors": 'test "$(nproc)" -gt 0',
}
TOOLS = {
    "make": "printf 'a:\\n\\techo x > a\\n' > Makefile && make -s && test -s a",
    "gcc": "echo 'int main(void) { return 0; }' > a.c && gcc -o a a.c && ./a",
    "node": 'node -e \'require("fs").writeFileSync("a", require("os").tmpdir())\' && test -s a',
    "rg": "echo needle > a && rg -q needle",
}
WORK |= {name: script for name, script in TOOLS.items() if shutil.which(name)}


@EVERYWHERE
async def test_a_program_works_in_the_root_that_was_held_whatever_takes_its_name(
    root: Path, level: Level
) -> None:
    """The name is another's whenever the program is started after the plan was made."""
    other = root.parent / "other"
    other.mkdir()
    (other / "file").write_text("private")
    (root / "file").write_text("ours")
    async with opened(root, level) as processes:
        await processes.level()
        start = processes._launcher.start

        async def replace_and_start(prepared: Prepared, **more: Any) -> Any:
            root.rename(root.with_name("old"))  # noqa: ASYNC240  # a test waits for nothing else
            root.symlink_to(other)  # noqa: ASYNC240  # the same
            return await start(prepared, **more)

        processes._launcher.start = replace_and_start  # type: ignore[method-assign]  # at that moment
        fds = "ls -l /proc/self/fd /proc/1/fd 2>/dev/null | grep -c /root/\\|/old"
        code, output, _ = await run(processes, f"cat file; touch made; {fds}")
    assert output.strip() in {"ours0", "ours\n0"}
    assert code == 1  # of grep
    assert (root.with_name("old") / "made").exists()
    assert [path.name for path in other.iterdir()] == ["file"]


EMPTIED = "find . -mindepth 1 -delete; "


@EVERYWHERE
async def test_ordinary_programs_work(root: Path, level: Level) -> None:
    failed = {}
    async with opened(root, level) as processes:
        for name, script in WORK.items():
            code, output, notes = await run(processes, f"{EMPTIED}{script}")
            if code or notes:
                failed[name] = (code, output, notes)
    assert failed == {}


async def test_memory_that_processes_share_is_on_the_disk_and_fills_no_memory(root: Path) -> None:
    script = """python3 -c '
import multiprocessing, os
from multiprocessing import shared_memory as shared
with multiprocessing.Lock():
    shared.SharedMemory(create=True, size=4096).unlink()
assert os.stat("/dev/shm").st_dev == os.stat("/tmp").st_dev'"""
    async with opened(root, Level.BUBBLEWRAP) as processes:
        assert await run(processes, script) == (0, "", "")


@EVERYWHERE
async def test_the_environment_is_a_short_list(
    root: Path, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("NAMED", "given")
    chosen = inherited_variables(os.environ, ["NAMED", "TOOLCRIB_TOKEN"])
    async with opened(root, level, environment=chosen) as processes:
        _code, output, _notes = await run(processes, "env", environment={"OWN": "own"})
    names = {line.partition("=")[0] for line in output.splitlines()}
    fixed = {"HOME", "TMPDIR", "PWD", "SHELL", "TERM", "PATH", "LANG", "SHLVL", "_"}
    fixed |= OPT_OUT.keys()
    assert {"OWN", "NAMED"} < names <= fixed | {"OWN", "NAMED"} | chosen.keys()
    assert "secret" not in output


def test_the_servers_own_settings_are_never_inherited() -> None:
    environ = {"PATH": "/bin", "LC_ALL": "C", "HOME": "/x", "TOOLCRIB_TOKEN": "t", "A": "a"}
    assert inherited_variables(environ, ["A", "TOOLCRIB_TOKEN", "B"]) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "A": "a",
    }


@EVERYWHERE
async def test_the_path_names_visible_directories_and_a_call_overrides_any_variable(
    root: Path, level: Level, tmp_path: Path
) -> None:
    visible, hidden = (tmp_path / name for name in ("visible", "hidden"))
    visible.mkdir()
    hidden.mkdir()
    inherited = {"PATH": f"{visible}:{hidden}:relative::{visible}:/usr/bin", "HOME": "/theirs"}
    script = 'printf "%s " "$PATH" "$HOME" "$PWD" "$TERM"'
    async with opened(root, level, environment=inherited, readable=[visible]) as processes:
        _, output, _ = await run(processes, script, environment={"TERM": "xterm"})
    path, home, cwd, term = output.split()
    own = str(Path(sys.executable).parent)
    seen = [visible, hidden] if level is Level.NONE else [visible]
    assert path.split(":") == [*map(str, seen), "/usr/bin", own]
    assert "/home" in home
    assert (cwd, term) == (str(root), "xterm")


@CONFINED
async def test_what_a_call_gives_reaches_the_confined_program_alone(
    root: Path, level: Level, tmp_path: Path
) -> None:
    # Whatever loads this library leaves a mark outside, if it can.
    (root / "a.c").write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void mark(void) "
        f'{{ FILE *f = fopen("{tmp_path}/marked", "w"); if (f) fclose(f); }}\n'
    )
    async with opened(root, level) as processes:
        code, output, _ = await run(processes, "gcc -shared -fPIC -o a.so a.c")
        if code:
            pytest.skip(f"no compiler: {output}")
        given = {"LD_PRELOAD": str(root / "a.so"), "BASH_ENV": "/etc/shadow", "PATH": "/nowhere"}
        code, _, _ = await run(processes, "/bin/true", environment=given)
    assert code == 0
    assert not (tmp_path / "marked").exists()


@EVERYWHERE
async def test_home_and_temporary_files_are_private_and_removed(root: Path, level: Level) -> None:
    async with opened(root, level) as processes:
        first = await run(processes, 'echo x > "$TMPDIR/mine"; echo x > "$HOME/mine"; ls "$TMPDIR"')
        second = await run(processes, 'ls "$TMPDIR" "$HOME"')
        _, where, _ = await run(processes, 'cd "$TMPDIR" && pwd -P')
    assert "mine" in first[1]
    assert "mine" not in second[1]
    assert level is Level.BUBBLEWRAP or not Path(where.strip()).exists()  # noqa: ASYNC240  # a test waits for nothing else


@CONFINED
async def test_a_program_that_may_not_write_reads_only(root: Path, level: Level) -> None:
    (root / "a").write_text("here")
    async with opened(root, level) as processes:
        _, output, _ = await run(processes, "cat a; echo x > a; rm a; touch b", writes=False)
    assert output.startswith("here")
    assert [path.name for path in root.iterdir()] == ["a"]  # noqa: ASYNC240  # a test waits for nothing else
    assert (root / "a").read_text() == "here"


@CONFINED
async def test_what_the_settings_name_is_readable(root: Path, level: Level, tmp_path: Path) -> None:
    for name in ("given", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("here")
    (tmp_path / "link").symlink_to("given")
    script = "cat ../given/a ../link/a ../other/a; echo x > ../given/a"
    async with opened(root, level, readable=[tmp_path / "link"]) as processes:
        _, output, _ = await run(processes, script)
    assert output.startswith("herehere")
    assert output.count("here") == 2
    assert (tmp_path / "given" / "a").read_text() == "here"


@EVERYWHERE
async def test_it_starts_where_it_is_told_beneath_the_root(root: Path, level: Level) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "out").symlink_to("..")
    async with opened(root, level) as processes:
        assert (await run(processes, "pwd -P", cwd="a/b"))[1].strip() == str(root / "a" / "b")
        with pytest.raises(ToolError):
            await run(processes, "pwd", cwd="out")
        with pytest.raises(ToolError):
            await run(processes, "pwd", cwd="..")


@CONFINED
async def test_a_program_is_taken_from_where_it_can_be_seen(
    root: Path, level: Level, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for name in ("env", "own-program"):
        (hidden / name).write_text("#!/bin/sh\necho hidden\n")
        (hidden / name).chmod(0o755)
    chosen = {"PATH": f"{hidden}:{os.environ['PATH']}"}
    async with opened(root, level, environment=chosen) as processes:
        program = await processes.start(Command(argv=("env", "true")))
        assert await program.wait() == 0
        assert os.read(program.stdout, 10) == b""
        await program.aclose()
        with pytest.raises(UnavailableError, match=r"which programs cannot see") as error:
            await processes.start(Command(argv=("own-program",)))
    assert "system.readable" in error.value.next_actions[0]


@EVERYWHERE
async def test_a_program_in_the_root_is_not_taken_by_its_name(root: Path, level: Level) -> None:
    planted = root / "rg-planted"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    chosen = {"PATH": f"{root}:.:{os.environ['PATH']}"}
    async with opened(root, level, environment=chosen) as processes:
        with pytest.raises(UnavailableError, match="'rg-planted' is not installed"):
            await processes.start(Command(argv=("rg-planted",)))


# What is kept from programs inside the root


def keep(root: Path) -> dict[str, Any]:
    """A data directory and files of the server in the root."""
    data = root / "own" / "data"
    data.mkdir(parents=True)
    (data / "library.db").write_text("secret")
    (root / "toolcrib.toml").write_text("secret")
    (root / "functions").mkdir()
    (root / "functions" / "mine.py").write_text("mine")
    return {
        "protected": [data, root / "toolcrib.toml"],
        "read_only": [root / "functions" / "mine.py"],
        "data_dir": data,
    }


KEPT = {
    "reading": "cat own/data/library.db toolcrib.toml",
    "copying": "cp -r . ../c; cp -r own $TMPDIR/c; cat $TMPDIR/c/data/library.db",
    "a link": "ln -s own/data d; cat d/library.db",
    "a hard link": "ln own/data/library.db l; ln toolcrib.toml m; cat l m",
    "moving": "mv own/data d; mv own o; mv toolcrib.toml t; cat d/library.db o/data/library.db t",
    "an archive": "tar c . | cat",
    "unmounting": "umount own/data; umount -l toolcrib.toml; cat own/data/library.db toolcrib.toml",
    "the root of /proc": "cat /proc/self/root$PWD/own/data/library.db",
    "another program's root": "cat /proc/1/root$PWD/own/data/library.db",
    "writing": "echo evil > own/data/library.db; echo evil > toolcrib.toml",
    "writing what runs": "echo evil > functions/mine.py",
    "replacing what runs": "echo evil > e; mv e functions/mine.py; rm -rf functions",
    "replacing its directory": "mv functions f; mkdir functions; echo evil > functions/mine.py",
    "adding": "echo evil > own/data/new",
    "removing": "rm -rf own toolcrib.toml functions",
}


async def test_bubblewrap_keeps_programs_from_places_in_the_root(root: Path) -> None:
    kept = keep(root)
    before = {path: path.read_text() for path in root.rglob("*") if path.is_file()}  # noqa: ASYNC240  # a test waits for nothing else
    async with opened(root, Level.BUBBLEWRAP, **kept) as processes:
        for name, script in KEPT.items():
            _, output, _ = await run(processes, script)
            assert "secret" not in output, name
            after = {path: path.read_text() for path in before if path.is_file()}
            assert after == before, name
            assert not any(path.name == "new" for path in root.rglob("*")), name  # noqa: ASYNC240  # a test waits for nothing else


async def test_what_is_kept_within_a_kept_directory_leaves_programs_runnable(root: Path) -> None:
    data = root / "own"
    (data / "logs").mkdir(parents=True)
    log, function = data / "logs" / "own.log", data / "function.py"
    log.write_text("secret")
    function.write_text("secret")
    kept: dict[str, Any] = {"protected": [data, log], "read_only": [function], "data_dir": data}
    async with opened(root, Level.BUBBLEWRAP, **kept) as processes:
        code, output, _ = await run(processes, "ls own && cat own/*/* own/*; echo there")
    assert (code, output.startswith("there\n"), "secret" in output) == (0, True, False)


async def test_each_way_to_what_is_kept_works_unconfined(root: Path, tmp_path: Path) -> None:
    harmless = {"unmounting", "the root of /proc", "another program's root"}
    for name, script in KEPT.items():
        place = tmp_path / name.replace(" ", "-").replace("/", "") / "root"
        place.mkdir(parents=True)
        kept = keep(place)
        before = {path: path.read_text() for path in place.rglob("*") if path.is_file()}
        async with opened(place, Level.NONE, **kept) as processes:
            _, output, _ = await run(processes, script)
        after = {path: path.read_text() for path in place.rglob("*") if path.is_file()}
        assert "secret" in output or before != after or name in harmless, name


async def test_landlock_does_not_run_what_it_cannot_keep_from_places(root: Path) -> None:
    async with opened(root, Level.LANDLOCK, **keep(root)) as processes:
        with pytest.raises(UnavailableError, match="Landlock cannot keep programs from") as error:
            await run(processes, "true")
    assert any("bubblewrap" in action for action in error.value.next_actions)


async def test_a_data_directory_behind_a_link_in_the_root_is_refused(root: Path) -> None:
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    (root / "real" / "data").mkdir()
    data = root / "link" / "data"
    async with opened(root, Level.BUBBLEWRAP, protected=[data], data_dir=data) as processes:
        with pytest.raises(UnavailableError, match="is a link inside the root"):
            await run(processes, "true")


async def test_a_data_directory_that_was_replaced_is_refused(root: Path) -> None:
    kept = keep(root)
    async with opened(root, Level.BUBBLEWRAP, **kept) as processes:
        await run(processes, "true")
        (root / "own").rename(root / "moved")
        (root / "own" / "data").mkdir(parents=True)
        with pytest.raises(UnavailableError, match="was replaced while the server ran"):
            await run(processes, "true")


# What other programs obey


CLOSED = {
    "a hook": "echo evil > .git/hooks/pre-commit",
    "a hook by its rights": "chmod 755 .git/hooks/pre-commit",
    "a hook by renaming": "echo evil > e; mv e .git/hooks/pre-commit",
    "settings of git": "git config core.fsmonitor evil",
    "settings of git by hand": "echo '[core] fsmonitor = evil' >> .git/config",
    "moving the hooks": "mv .git/hooks .git/h && mkdir .git/hooks; "
    "echo evil > .git/hooks/pre-commit",
    "moving it all": "mv .git g; cp -r g .git; echo evil > .git/hooks/pre-commit",
    "a server": "echo evil > .mcp.json",
    "a server by renaming": "echo evil > e; mv e .mcp.json",
    "a server by a link": "ln -s .mcp.json l; echo evil > l",
    "a server by a hard link": "ln .mcp.json l && echo evil > l",
    "removing": "rm -rf .git/hooks .mcp.json",
    "a new hook": "echo evil > .git/hooks/post-commit",
    "a new server": "mkdir -p s; echo evil > s/.mcp.json",
}


@EVERYWHERE
async def test_what_other_programs_obey_is_as_before_when_a_program_has_ended(
    root: Path, level: Level
) -> None:
    async with opened(root, level) as processes:
        await run(processes, "git init -q .")
        (root / ".git" / "hooks" / "pre-commit").write_text("mine")
        (root / ".mcp.json").write_text("{}")
        before = _obeyed(root)
        for name, script in CLOSED.items():
            _, _, notes = await run(processes, script)
            assert _obeyed(root) == before, name
            if name == "a new server":
                assert "taken away" in notes, name


async def test_bubblewrap_closes_what_exists_while_programs_run(root: Path) -> None:
    async with opened(root, Level.BUBBLEWRAP) as processes:
        await run(processes, "git init -q . && git init -q sub")
        (root / ".git" / "hooks" / "pre-commit").write_text("mine")
        (root / ".mcp.json").write_text("{}")
        for script in (
            *("echo evil > .git/hooks/pre-commit", "echo evil > .git/hooks/post-commit"),
            *("git config core.fsmonitor evil", "git -C sub config core.fsmonitor evil"),
            *("echo evil > .mcp.json", "mv .git g", "rm -rf .git/hooks"),
        ):
            code, _, notes = await run(processes, script)
            assert code != 0, script
            assert notes == "", script


def _obeyed(root: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_text())
        for path in root.rglob("*")
        if path.is_file() and not path.name.endswith(".sample")
        if path.name in {".mcp.json", "config"} or path.parent.name == "hooks"
        if path.relative_to(root).parts[0] in {".git", ".mcp.json", "s"}
    }


@EVERYWHERE
async def test_a_background_program_is_undone_when_it_is_killed(root: Path, level: Level) -> None:
    async with opened(root, level) as processes:
        program = await processes.start(
            Command(argv=("bash", "-c", "echo evil > .envrc; echo ready; sleep 60"))
        )
        await _readable(program.stdout)
        assert (root / ".envrc").exists()
        await program.kill()
        assert not (root / ".envrc").exists()
        assert "taken away: .envrc" in program.notes[0]
        await program.aclose()


async def _readable(fd: int) -> None:
    with anyio.fail_after(20):
        await anyio.wait_readable(fd)


SWAPPER = """
import ctypes, os
rename = ctypes.CDLL(None).renameat2
for name in ("HEAD", "objects", "refs"):
    os.makedirs(f".git/{name}", exist_ok=True)
print("ready", flush=True)
while True:
    for number, target in enumerate(TARGETS):
        link = f"l{number}"
        for make in (
            lambda: os.rmdir(link),
            lambda: os.unlink(link),
            lambda: os.symlink(target, link),
            lambda: os.mkdir(".git/hooks"),
        ):
            try:
                make()
            except OSError:
                pass
        for _ in range(300):
            rename(-100, b".git/hooks", -100, link.encode(), 2)
"""
"""Exchanges a closed directory for links, as fast as it can."""


async def test_a_swapping_program_gets_nothing_bound_or_made_outside(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("the-secret-canary")
    targets = [str(outside), f"/oldroot{outside}", f"/oldroot{outside}/new"]
    looking = "for i in 1 2 3 4; do cat .git/hooks/canary l*/canary; done 2> /dev/null"
    started = 0
    async with opened(root, Level.BUBBLEWRAP) as processes:
        script = SWAPPER.replace("TARGETS", repr(targets))
        program = await processes.start(Command(argv=("python3", "-c", script)))
        await _readable(program.stdout)
        for _ in range(40):
            try:
                _, output, _ = await run(processes, looking)
            except ToolError:
                continue  # not to start is an answer, too
            started += 1
            assert "the-secret-canary" not in output
        await program.aclose()
    assert started
    assert sorted(path.name for path in outside.iterdir()) == ["canary"]


@CONFINED
async def test_the_servers_own_listeners_are_out_of_reach_by_inherited_descriptors(
    root: Path, level: Level
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.set_inheritable(True)  # its only argument
        async with opened(root, level) as processes:
            _, output, _ = await run(processes, "ls -l /proc/self/fd")
    assert "socket:" not in output


@CONFINED
async def test_writing_above_the_root_fails_and_does_not_vanish(root: Path, level: Level) -> None:
    async with opened(root, level) as processes:
        for place in ("../x", "../../x", "/etc/x", "/x", f"/tmp/{root.parts[2]}/x"):  # noqa: S108  # as agents write it
            code, output, _ = await run(processes, f"echo x > {place}")
            assert (code, "x: " in output) == (1, True), place
        assert (await run(processes, "mkdir -p a && cd a && echo x > ../x && cat ../x"))[0] == 0
