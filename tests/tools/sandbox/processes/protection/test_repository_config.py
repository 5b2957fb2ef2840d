"""Which changes of a repository's settings are accepted: those that make git run nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.processes.protection.repository_config import is_harmless

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
        b'[branch "x"]\n\tpushRemote = o\n\tvscode-merge-base = o/main\n',
    ],
)
def test_settings_that_run_nothing_may_be_added(added: bytes) -> None:
    assert is_harmless(PLAIN + added, PLAIN)
    assert is_harmless(PLAIN + added, None)
    assert is_harmless(PLAIN, PLAIN + added)


@pytest.mark.parametrize(
    "added",
    [
        *(b"[core]\n\tfsmonitor = ./evil\n", b"[CORE]\n\tFSMonitor = ./evil\n"),
        *(b"[core] fsmonitor = ./evil\n", b"[core]\n\tbare = \\\nfalse\n\tfsmonitor = evil\n"),
        *(b"[core]\r\n\tfsmonitor = evil\r\n", b"[core]\n\thooksPath = x\n"),
        *(b"[core]\n\tworktree = /\n", b"[core]\n\tsshCommand = evil\n"),
        *(b"[core]\n\tpager = evil\n", b"[alias]\n\tst = !evil\n"),
        *(b"[include]\n\tpath = ../evil\n", b'[includeIf "gitdir:/"]\n\tpath = ../evil\n'),
        *(b'[filter "x"]\n\tsmudge = evil\n', b'[diff "x"]\n\ttextconv = evil\n'),
        *(b'[remote "o"]\n\turl = ext::sh -c evil\n', b'[remote "o"]\n\turl = "ext::sh -c evil"\n'),
        b'[remote "o"]\n\turl = ext":":sh -c evil\n',
        *(b'[remote "o"]\n\turl = -oProxyCommand=evil\n', b'[remote "o"]\n\tvcs = evil\n'),
        b'[branch "x"]\n\tremote = ext::sh -c evil\n',
        b'[branch "x"]\n\tpushRemote = ext::sh -c evil\n',
        *(b'[remote "o"]\n\tuploadpack = evil\n', b"[remote.o]\n\tuploadpack = evil\n"),
        *(b"[credential]\n\thelper = !evil\n", b"[gpg]\n\tprogram = evil\n"),
        b'[url "ext::sh -c evil "]\n\tinsteadOf = https:\n',
        b'[submodule "a"]\n\tupdate = !evil\n',
        *(b"[core]\n\tbare = false ; [core]\n\tfsmonitor = evil\n", b"[core]\n\tfsmonitor\n"),
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
