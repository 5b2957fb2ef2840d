"""What programs see beside the root, what they are given, and Apple's profile of both."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.processes.confinement.etc_copy import EtcCopy
from tools.sandbox.processes.confinement.plan import Kept, Plan
from tools.sandbox.processes.confinement.reach import Reach, find_reach, is_beneath
from tools.sandbox.processes.confinement.sandbox_exec import SandboxExec, profile_text
from tools.sandbox.processes.confinement.variables import chosen_variables, process_variables
from tools.sandbox.processes.models import Level
from tools.sandbox.processes.protection.repository_config import is_harmless


def test_private_places_are_not_in_reach() -> None:
    reach = find_reach([])
    for place in ("/etc/shadow", "/etc/ssh", "/etc/sudoers", "/etc/ssl/private", "/var", "/run"):
        assert not reach.has(place), place
    for place in ("/root/.ssh", "/home", "/mnt", "/srv", "/boot", "/etc", "/"):
        assert not reach.has(place), place


def test_programs_and_the_interpreter_are_in_reach() -> None:
    reach = find_reach([])
    for place in ("/usr/bin/env", "/bin/sh", sys.executable, sys.prefix, sys.base_prefix):
        assert reach.has(place), place


def test_what_lies_within_another_is_not_named_twice(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    reach = find_reach([tmp_path / "a", tmp_path / "a" / "b", tmp_path / "link", tmp_path / "no"])
    assert str(tmp_path / "a") in reach.readable
    assert str(tmp_path / "a" / "b") not in reach.readable
    assert (str(tmp_path / "link"), str(tmp_path / "a" / "b")) in reach.links
    assert not reach.has(str(tmp_path / "no"))


def test_the_home_is_spelled_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".nvm").mkdir()
    assert find_reach([Path("~/.nvm")]).has(str(tmp_path / ".nvm"))


@pytest.mark.parametrize(
    ("path", "top", "beneath"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/", True)],
)
def test_a_path_is_beneath_by_whole_names(path: str, top: str, *, beneath: bool) -> None:
    assert is_beneath(path, top) is beneath


@pytest.mark.skipif(sys.platform != "linux", reason="it is for bubblewrap")
def test_the_copy_of_etc_has_what_is_in_reach_and_goes() -> None:
    copy = EtcCopy(find_reach([]))
    assert Path(copy.path, "passwd").read_text() == Path("/etc/passwd").read_text()
    assert not Path(copy.path, "shadow").exists()
    assert not any(is_beneath(path, "/etc") for path in copy.reach.readable)
    copy.close()
    assert not Path(copy.path).exists()


def test_the_servers_own_variables_are_never_chosen() -> None:
    environ = {"PATH": "/bin", "LC_ALL": "C", "HOME": "/x", "TOOLCRIB_TOKEN": "t", "A": "a"}
    assert chosen_variables(environ, ["A", "TOOLCRIB_TOKEN", "B"]) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "A": "a",
    }


def test_the_path_has_what_is_seen_and_what_a_call_gives_beats_all() -> None:
    found = process_variables(
        {"PATH": "/seen:/unseen:relative::/seen", "HOME": "/theirs"},
        {"TERM": "xterm"},
        home="/h",
        temporary="/t",
        cwd="/c",
        sees=lambda folder: folder == "/seen",
    )
    assert found["PATH"] == "/seen"
    assert (found["HOME"], found["TMPDIR"], found["PWD"]) == ("/h", "/t", "/c")
    assert found["TERM"] == "xterm"


def plan(**named: object) -> Plan:
    given = {
        "argv": ("/bin/ls", "-l"),
        "cwd": "/r",
        "environment": {"A": "a"},
        "root": "/r",
        "scratch": "/s",
        "reach": Reach(("/usr", "/private/etc"), (("/etc", "/private/etc"),)),
    }
    return Plan(**(given | named))  # type: ignore[arg-type]  # a few of its fields


def test_a_profile_denies_all_but_what_is_named() -> None:
    text = profile_text(
        plan(
            kept=Kept(hidden=("/r/data",), locked=("/r/f.py",), pinned=("/r/own",)),
            closed=("/r/.git/hooks",),
            own=("/r/.git",),
        )
    )
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in text
    allowed = {line for line in lines if line.startswith("(allow file-write")}
    assert allowed == {'(allow file-write* (subpath "/r"))', '(allow file-write* (subpath "/s"))'}
    assert '(allow file-read* (subpath "/etc"))' in lines
    # The last rule that fits decides.
    assert lines[-5:] == [
        '(deny file-write-unlink (literal "/r/.git"))',
        '(deny file-write-unlink (literal "/r/own"))',
        '(deny file-write* (subpath "/r/.git/hooks"))',
        '(deny file-write* (subpath "/r/f.py"))',
        '(deny file-read* file-write* (subpath "/r/data"))',
    ]


def test_a_profile_without_writing_allows_the_temporary_directory_alone() -> None:
    lines = profile_text(plan(writes=False)).splitlines()
    assert [line for line in lines if line.startswith("(allow file-write*")] == [
        '(allow file-write* (subpath "/s"))'
    ]


@given(st.text(alphabet='ab"\\/()\n ', max_size=12))
def test_no_path_breaks_out_of_a_profile(name: str) -> None:
    text = profile_text(plan(root=f"/r/{name}"))
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    assert f'(allow file-write* (subpath "/r/{quoted}"))' in text


def test_the_profile_is_put_before_the_program() -> None:
    prepared = SandboxExec().prepare(plan())
    assert SandboxExec.level is Level.SANDBOX_EXEC
    assert prepared.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert prepared.argv[3:] == ("/bin/ls", "-l")


PLAIN = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"


@pytest.mark.parametrize(
    "added",
    [
        b'[remote "origin"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/x/*\n',
        b'[remote "origin"]\n\turl = git@example.com:a.git\n',
        b'[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n',
        b"[user]\n\tname = A B\n\temail = a@b\n",
        b"# a remark\n\n; another\n",
        b'[submodule "a/b"]\n\tactive = true\n\turl = ../b\n',
    ],
)
def test_settings_that_run_nothing_may_be_added(added: bytes) -> None:
    assert is_harmless(PLAIN + added, PLAIN)
    assert is_harmless(PLAIN + added, None)
    assert is_harmless(PLAIN, PLAIN + added)


@pytest.mark.parametrize(
    "added",
    [
        b"[core]\n\tfsmonitor = ./evil\n",
        b"[CORE]\n\tFSMonitor = ./evil\n",
        b"[core] fsmonitor = ./evil\n",
        b"[core]\n\tbare = \\\nfalse\n\tfsmonitor = evil\n",
        b"[core]\r\n\tfsmonitor = evil\r\n",
        b"[core]\n\thooksPath = x\n",
        b"[core]\n\tworktree = /\n",
        b"[core]\n\tsshCommand = evil\n",
        b"[core]\n\tpager = evil\n",
        b"[alias]\n\tst = !evil\n",
        b"[include]\n\tpath = ../evil\n",
        b'[includeIf "gitdir:/"]\n\tpath = ../evil\n',
        b'[filter "x"]\n\tsmudge = evil\n',
        b'[diff "x"]\n\ttextconv = evil\n',
        b'[remote "o"]\n\turl = ext::sh -c evil\n',
        b'[remote "o"]\n\turl = "ext::sh -c evil"\n',
        b'[remote "o"]\n\turl = ext":":sh -c evil\n',
        b'[remote "o"]\n\turl = -oProxyCommand=evil\n',
        b'[remote "o"]\n\tvcs = evil\n',
        b'[remote "o"]\n\tuploadpack = evil\n',
        b"[remote.o]\n\tuploadpack = evil\n",
        b"[credential]\n\thelper = !evil\n",
        b"[gpg]\n\tprogram = evil\n",
        b'[url "ext::sh -c evil "]\n\tinsteadOf = https:\n',
        b'[submodule "a"]\n\tupdate = !evil\n',
        b"[core]\n\tbare = false ; [core]\n\tfsmonitor = evil\n",
        b"[core]\n\tfsmonitor\n",
        b"garbage \xff\n",
    ],
)
def test_settings_that_may_run_something_may_not(added: bytes) -> None:
    assert not is_harmless(PLAIN + added, PLAIN)
    assert not is_harmless(PLAIN + added, None)
    assert is_harmless(PLAIN + added, PLAIN + added)


@given(st.binary(max_size=200))
def test_no_text_of_settings_is_taken_for_harmless_that_names_a_program(noise: bytes) -> None:
    assert not is_harmless(noise + b"\n[core]\n\tfsmonitor = evil\n", PLAIN)
