"""What is judged plain is what the real bash gives to programs, word for word."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools.policy.shell.plain_line import PlainLine
from tools.policy.shell.shell_command import ShellCommand

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")

STUB = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > "$CALLS/$$"
"""
NAMES = ("aa", "bb", "cc", "git", "ls")


@pytest.fixture(scope="module")
def bin_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that write down what they are given."""
    directory = tmp_path_factory.mktemp("stubs")
    for name in NAMES:
        (directory / name).write_text(STUB)
        (directory / name).chmod(0o755)
    return directory


def given_by_bash(line: str, directory: Path) -> list[list[str]]:
    """What each program was given, in whatever order pipelines ran."""
    calls, empty = directory / "calls", directory / "empty"
    shutil.rmtree(calls, ignore_errors=True)
    calls.mkdir()
    empty.mkdir(exist_ok=True)
    environment = {
        "PATH": str(directory),
        "CALLS": str(calls),
        "LC_ALL": "C.UTF-8",
        "HOME": "/home/somebody",
    }
    subprocess.run(
        [str(BASH), "--noprofile", "--norc", "-c", line],
        env=environment,
        cwd=empty,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    records = [each.read_bytes() for each in calls.iterdir()]
    return [[os.fsdecode(word) for word in each.split(b"\0")[:-1]] for each in records]


def read(plain: PlainLine) -> list[list[str]]:
    return [[str(word.text) for word in words] for words in plain.commands]


def agrees(line: str, directory: Path) -> bool:
    """Whether a line that is judged plain runs the commands that were read; other lines agree."""
    plain = ShellCommand.parse(line).plain
    if plain is None or {"||"} & set(
        plain.operators
    ):  # the stubs succeed: what follows || is not run
        return True
    if any(words[0].text not in NAMES for words in plain.commands):
        return True
    return sorted(read(plain)) == sorted(given_by_bash(line, directory))


PLAIN = [
    "git status",
    "git  \t status",
    "git 'a b' \"c d\" e\\ f",
    "git a'b'\"c\"d",
    "git '' \"\"",
    "git \\'",
    "git \\a\\b \\\\",
    'git "a\\b" "a\\\\b" "a\\"b" "a\\$b" "a\\`b" "a\\nb"',
    "git 'a\\b'",
    "git a\\\n b",
    'git "a\\\nb"',
    "git 'a\nb' \"c\nd\"",
    "git a#b #c d",
    "git # c 'd",
    "aa\nbb\n\n# only this\ncc",
    "aa;bb;cc;",
    "aa && bb && cc",
    "aa &&\n bb",
    "aa | bb | cc",
    "aa | bb && cc; ls",
    "git x 2>&1",
    "git x >/dev/null 2>&1",
    "git x > /dev/null",
    "git x < /dev/null",
    "git x &>/dev/null",
    "git if then fi do done ! case esac in time",
    "git { x",
    "git } x",
    "git a=b --x=y 1 -2 +3 1.5 a,b a:b a@b %1",
    "git HEAD~1 HEAD^ a~b @{0} stash@{1} {} {x}",
    "git * a*b ? [ab] '*' \\*",
    "git ü 日本語 🍅",
    "git '\U0001f600 é'",
    "git '$x' '`x`' '$(x)' '{a,b}' '~'",
    "git \\$x \\`x \\~ \\{a,b\\}",
    "git a]b ] =x x= a==b",
    "git [ x",
    "git -c 'x y' -- -z",
    "git !x x!y",
    "git \\;\\|\\&\\<\\>\\(\\)",
    "git \\#a ''#b",
    "'git' status",
    "g\\it status",
    '"git" status',
    "g'i't status",
]


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_are_the_words_that_bash_gives(line: str, bin_directory: Path) -> None:
    plain = ShellCommand.parse(line).plain
    assert plain is not None, ShellCommand.parse(line).reason
    assert sorted(read(plain)) == sorted(given_by_bash(line, bin_directory))


NOT_PLAIN = [
    "",
    " ",
    "# nothing",
    "git $x",
    "git ${x}",
    "git $(ls)",
    "git `ls`",
    "git <(ls)",
    "git >(ls)",
    "git $((1+1))",
    "git $[1+1]",
    "git {a,b}",
    "git {1..3}",
    "git a{b,c}d",
    'git {"a",b}',
    "git ~",
    "git ~root",
    "git ~/x",
    "git x=~",
    "git x:~",
    "git x=a:~/b",
    "git $'a'",
    'git $"a"',
    "git a$",
    "x=1",
    "x=1 git",
    "x+=1 git",
    "x[1]=2 git",
    'x"y"=1 git',
    "PATH=. git",
    "git > x",
    "git >> x",
    "git < x",
    "git 2> x",
    "git >/dev/nullx",
    "git >/dev/null/../x",
    "git >&3",
    "git >&x",
    "git 3>&1-",
    "git &> x",
    "git <> x",
    "git >| x",
    "git <<E\nx\nE",
    "git <<< x",
    "{x}>/dev/null git",
    "git {x}>/dev/null",
    "git 5>/dev/nullx",
    "(git)",
    "{ git; }",
    "f() { git; }",
    "function f { git; }",
    "for x in a; do git; done",
    "while git; do ls; done",
    "until git; do ls; done",
    "if git; then ls; fi",
    "case x in x) git;; esac",
    "select x in a; do git; done",
    "[[ -f x ]]",
    "((x))",
    "git &",
    "git & ls",
    "! git",
    "coproc git",
    "coproc x { git; }",
    "time ! git",
    "time { git; }",
    "time -p { git; }",
    "time x=1 git",
    "export x=1",
    "declare -a x",
    "unset x",
    "git 'a",
    'git "a',
    "git \\",
    "git a;;",
    "git ;& ls",
    "; git",
    "&& git",
    "git &&",
    "git ||",
    "git |",
    "git && ; ls",
    "git | | ls",
    "git ||| ls",
    "git !(x)",
    "git @(x)",
    "git\r",
    "git\rls",
    "git\x0cls",
    "git\x0bls",
    "git\0ls",
    "git \x1b[2K",
    "git \x7f",
    "git \u00a0ls",
    "git\u00a0ls",
    "git\u3000ls",
    "git\u2028ls",
    "git\u202els",
    "git \u200bls",
    "git \u2066ls",
    "git \ufeffls",
    "git \u115fls",
    "git \u3164ls",
    "git \u2800ls",
    "git \ufe0fls",
    "git \U000e0041ls",
    "git \ud800",
    "git " + "x" * 5_000,
    "/bin/l? x",
    "* x",
    "[ab] x",
    "git \\\n#x",
    "git a\\\nb",
    "gi\\\nt a",
    "git <&-",
    "git 2>&-",
    "alias x='git'; $x",
    "\\\n",
    "git &>>x",
    "git 2>/dev/null x",
    "git { }",
    "git [ ]",
    "git a\\\tb",
]


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_whatever_else_a_shell_knows_is_not_plain(line: str) -> None:
    command = ShellCommand.parse(line)
    assert command.plain is None
    assert command.reason


PIECES = st.sampled_from(
    [
        *NAMES,
        *" \t\n;|&<>()$`'\"\\#{}!~=*?[]-+,.:/%@^012ax",
        *("\\\n", "&&", "||", "|&", ";;", "2>&1", " >/dev/null", " 2>/dev/null", "&>", "<<", "<<<"),
        *("'a b'", '"c d"', "\\ ", " # ", "#", "time ", "if ", "{ ", " }", "!", " ! ", "x=1 "),
        *(
            "\r",
            "\x0c",
            "\x0b",
            "\u00a0",
            "\u3000",
            "é",
            "日",
            "\u0301",
            "\u200b",
            "$'",
            '$"',
            "${",
        ),
        *(
            "..",
            "{a,b}",
            "~root",
            "coproc ",
            "[[ ",
            " ]]",
            "git a",
            "ls -l",
            "-exec",
            " in ",
            "do ",
        ),
    ]
)
LINES = st.lists(PIECES, max_size=14).map(lambda pieces: "git " + "".join(pieces))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=LINES)
@example(line="git a\\\n#b")
@example(line="git ''#b")
@example(line="git -c {a\\,b}")
@example(line="git 1\\\n>/dev/null")
def test_any_line_that_is_judged_plain_runs_what_was_read(line: str, bin_directory: Path) -> None:
    assert agrees(line, bin_directory)


WORDS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6).map(
            lambda text: "'" + text.replace("'", "'\\''") + "'"
        ),
        st.text("ab\\\"' $`*#;|&", max_size=5).map(
            lambda text: "".join(f"\\{character}" for character in text) or "''"
        ),
        st.text("ab '#;|&<>(){}~*?!\n\t", max_size=6).map(lambda text: f'"{text}"'),
        st.sampled_from(["a", "-b", "--c=d", "1", "*", "a#b", "{}", "if"]),
    ),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    commands=st.lists(WORDS, min_size=1, max_size=3),
    joint=st.sampled_from([" && ", ";", "|", "\n"]),
)
def test_quoted_words_arrive_as_they_were_read(
    commands: list[list[str]], joint: str, bin_directory: Path
) -> None:
    line = joint.join(" ".join(["git", *words]) for words in commands)
    assert agrees(line, bin_directory)


def test_the_comparison_sees_a_wrong_reading(bin_directory: Path) -> None:
    def naive(line: str) -> list[list[str]]:
        return [line.split()]

    assert [line for line in PLAIN if naive(line) != given_by_bash(line, bin_directory)]
