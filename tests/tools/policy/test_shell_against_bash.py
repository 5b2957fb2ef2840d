"""What is judged plain is what the real bash gives to programs, word for word."""

import os
import posixpath
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools.policy.shell.plain_line import PlainLine, Run
from tools.policy.shell.shell_command import ShellCommand

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")

STUB = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$CI" "$XX" "$@" > "$CALLS/$$"
/bin/cat > "$CALLS/$$.in"
set -- "$CALLS"/*
[ $# -lt 99 ] || kill -9 "$PPID"
case "$0" in */ff) exit 1 ;; esac
"""
NAMES = ("aa", "bb", "cc", "ff", "git", "ls")
FILES = {"in", "sub/in"}


@dataclass(frozen=True)
class Seen:
    """What a line did.

    Attributes:
        commands: What ran: name, values of CI and XX, words.
        written: Files that were made.
        read: What programs were given to read.
    """

    commands: list[list[str]]
    written: set[str]
    read: set[str]


@pytest.fixture(scope="module")
def bin_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that write down what they are given; ff fails."""
    directory = tmp_path_factory.mktemp("stubs")
    for name in NAMES:
        (directory / name).write_text(STUB)
        (directory / name).chmod(0o755)
    (directory / "cat").symlink_to("/bin/cat")
    return directory


def done_by_bash(line: str, directory: Path) -> Seen:
    """What the real bash does, in whatever order pipelines run."""
    calls, place = directory / "calls", directory / "place"
    for each in (calls, place):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    for name in FILES:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(f"this is {name}\n")
    environment = {
        "PATH": str(directory),
        "CALLS": str(calls),
        "LC_ALL": "C.UTF-8",
        "HOME": "/home/somebody",
    }
    subprocess.run(
        [str(BASH), "--noprofile", "--norc", "-c", "set -f\n" + line],
        env=environment,
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    records = [each for each in calls.iterdir() if not each.suffix]
    return Seen(
        [[os.fsdecode(word) for word in each.read_bytes().split(b"\0")[:-1]] for each in records],
        {str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()} - FILES,
        {each.with_suffix(".in").read_text() for each in records} - {""},
    )


def read(plain: PlainLine) -> list[list[str]]:
    """What is read of a plain line, in the form in which the programs write it down."""
    commands = []
    for run in plain.runs:
        name, *words = (str(word.text) for word in run.words)
        set_for_it = dict(run.assigned)
        if name in NAMES:
            commands.append([name, set_for_it.get("CI", ""), set_for_it.get("XX", ""), *words])
    return commands


def paths_opened(plain: PlainLine, *, writing: bool) -> set[str]:
    """Where files may be opened; a path that is not known is told as two dots."""
    opened = [each for run in plain.runs for each in run.opened if each.writes is writing]
    return {posixpath.normpath(path) for each in opened for path in each.paths(".") or ("..",)}


def is_certain(line: str, plain: PlainLine) -> bool:
    """Whether all that stands in a line is run, and that once."""
    parents = {posixpath.dirname(path) for path in paths_opened(plain, writing=True)}
    return (
        not any(sign in line for sign in ("||", "!", "if", "while", "until", "ff", "cd"))
        and paths_opened(plain, writing=False) <= FILES
        and parents <= {"", "sub"}
        and "sub" not in paths_opened(plain, writing=True)
        and not any((each.path or "").endswith("/") for run in plain.runs for each in run.opened)
    )


def agrees(line: str, directory: Path) -> bool:
    """Whether bash does what was read in a plain line and nothing else; other lines agree."""
    plain = ShellCommand.parse(line).plain
    if plain is None or not all(map(is_safe, plain.runs)):
        return True
    writes, reads = (paths_opened(plain, writing=writing) for writing in (True, False))
    if any(path.startswith(("/", "..")) for path in (*writes, *reads)):
        return True
    seen = done_by_bash(line, directory)
    expected = read(plain)
    texts = {*plain.texts, *(f"{text}\n" for text in plain.texts)}
    texts |= {f"this is {path}\n" for path in reads}
    if not (seen.written <= writes and seen.read <= texts):
        return False
    if not is_certain(line, plain):
        return all(each in expected for each in seen.commands)
    is_same = sorted(expected) == sorted(seen.commands)
    if "for" in line:  # what does not use the variable is read once
        is_same = set(map(tuple, expected)) == set(map(tuple, seen.commands))
    return is_same and writes - FILES == seen.written


def is_safe(run: Run) -> bool:
    name, *rest = (word.text for word in run.words)
    return name in NAMES or name in {"cd", "true", ":"} or (name == "cat" and not rest)


PLAIN = [
    *("git status", "git  \t status", "git 'a b' \"c d\" e\\ f", "git a'b'\"c\"d", "git '' \"\""),
    *("git \\'", "git \\a\\b \\\\"),
    'git "a\\b" "a\\\\b" "a\\"b" "a\\$b" "a\\`b" "a\\nb"',
    *("git 'a\\b'", "git a\\\n b", 'git "a\\\nb"', "git 'a\nb' \"c\nd\"", "git a#b #c d"),
    *("git # c 'd", "aa\nbb\n\n# only this\ncc", "aa;bb;cc;", "aa && bb && cc", "aa &&\n bb"),
    *("aa | bb | cc", "aa | bb && cc; ls", "git x 2>&1", "git x >/dev/null 2>&1"),
    *("git x > /dev/null", "git x < /dev/null", "git x &>/dev/null"),
    *("git if then fi do done ! case esac in time", "git { x", "git } x"),
    *("git a=b --x=y 1 -2 +3 1.5 a,b a:b a@b %1", "git HEAD~1 HEAD^ a~b @{0} stash@{1} {} {x}"),
    "git * a*b ? [ab] '*' \\*",
    "git ü 日本語 🍅",
    "git '\U0001f600 é'",
    *("git '$x' '`x`' '$(x)' '{a,b}' '~'", "git \\$x \\`x \\~ \\{a,b\\}", "git a]b ] =x x= a==b"),
    *("git [ x", "git -c 'x y' -- -z", "git !x x!y", "git \\;\\|\\&\\<\\>\\(\\)", "git \\#a ''#b"),
    *("'git' status", "g\\it status", '"git" status', "g'i't status"),
    # redirections
    *("git > x", "git >x a >> sub/y b", "> x git a", "git 2> x 3>y <in", "git &> x", "git &>>x"),
    *("git >| 'x y'", "git 2>/dev/null x", "git > x 2>&1", '2>&1 git > "x\\"y"'),
    *("git <sub/in > x | ls > y && aa", "cd sub && git > x < in"),
    "cd sub; (cd .. && git > x); git > y",
    # here-documents and here-strings
    *("git <<E\nx y\n z\nE", "git <<E\nE", "git << 'E' > x a\n$x `y` \\\n b\nE\nls"),
    *('git <<"E" && ls\n$(rm x)\nE\n\naa', "git <<\\E | ls\n${x}\nE", "git <<E # c\nit's \"\nE"),
    *("git - <<'E'\nx\nE", "cat <<'E' > x\na\nE", "git <<< x"),
    *("git <<< 'x  y' a", "{ git; } <<E\nx\nE"),
    # a here-document as a word
    'git -m "$(cat <<\'E\'\nit\'s (a)\n\n"b" $c `d`)\n\n\nE\n)" && ls',
    'git "a $(cat <<E\nb\nE\n) c" d',
    "git \"$(cat <<'E'\na \\\\ \\' ;; #\nE\n\n )\"",
    # assignments
    *("CI=1 git", "CI='a b' XX=\"c\" git d", "CI= git CI=2", "CI=a*b git"),
    *("CI=1 >x XX={} git", "XX=1 git; ls"),
    # lists in lists
    *("(git)", "( git; ls ) | aa", "(git;(ls&&aa))>x", "{ git; ls; } && { aa\n}", "! git"),
    *("! git | ls && ! aa", "if git; then ls; fi"),
    "if ff; then git; elif ls\nthen aa; else bb; fi > x",
    "if ! git\nthen\n\n ls | aa\nelse (bb)\nfi; cc",
    "while ff; do ls; done",
    "until git; do ls; done; aa",
    "while ff\ndo { git; }\ndone && ls",
    # loops
    "for x in a; do git; done",
    'for x in a b \'c d\'; do git "$x" "${x}y" \'z\'"$x$x"; done',
    "for x in a b\ndo\n git $x ${x}.y z$x > $x\ndone",
    'for x in a b; do for y in 1 2; do git $x$y "$y"; done; ls $x; done',
    "for x in a b; do (git > sub/$x); done; ls",
    "for x in a; do for y in $x '$x'; do git \"$y\"; done; done",
    "for c in git ls; do $c a; done",
    'for x in in sub/in; do git < $x; aa <<< "$x"; done > y',
    "for x in '*' 'a  b'; do git \"$x\" \"\\$x\" '$x' \\$x; done",
    "for x in for in do; do git $x do; done",
    'git; ls $? "$?"',
    "git if; ls then",
]


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_are_the_words_that_bash_gives(line: str, bin_directory: Path) -> None:
    plain = ShellCommand.parse(line).plain
    assert plain is not None, ShellCommand.parse(line).reason
    assert agrees(line, bin_directory)


NOT_PLAIN = [
    *("", " ", "# nothing", "git $x", "git ${x}", "git $(ls)", "git `ls`", "git <(ls)"),
    *("git >(ls)", "git $((1+1))", "git $[1+1]", "git {a,b}", "git {1..3}", "git a{b,c}d"),
    *('git {"a",b}', "git ~", "git ~root", "git ~/x", "git x=~", "git x:~", "git x=a:~/b"),
    *("git $'a'", 'git $"a"', "git a$", "x=1", "x+=1 git", "x[1]=2 git", 'x"y"=1 git', "git >&3"),
    *("git >&x", "git 3>&1-", "git <> x", "{x}>/dev/null git", "git {x}>/dev/null", "f() { git; }"),
    *("function f { git; }", "case x in x) git;; esac", "select x in a; do git; done"),
    *("[[ -f x ]]", "((x))", "git &", "git & ls", "coproc git", "coproc x { git; }", "time ! git"),
    *("time { git; }", "time -p { git; }", "time x=1 git", "declare -a x", "unset x", "git 'a"),
    *('git "a', "git \\", "git a;;", "git ;& ls", "; git", "&& git", "git &&", "git ||", "git |"),
    *("git && ; ls", "git | | ls", "git ||| ls", "git !(x)", "git @(x)", "git\r", "git\rls"),
    *("git\x0cls", "git\x0bls", "git\0ls", "git \x1b[2K", "git \x7f", "git \u00a0ls"),
    *("git\u00a0ls", "git\u3000ls", "git\u2028ls", "git\u202els", "git \u200bls", "git \u2066ls"),
    *("git \ufeffls", "git \u115fls", "git \u3164ls", "git \u2800ls", "git \ufe0fls"),
    *("git \U000e0041ls", "git \ud800"),
    "git " + "x" * 5_000,
    *("/bin/l? x", "* x", "[ab] x", "git \\\n#x", "git a\\\nb", "gi\\\nt a", "git <&-", "git 2>&-"),
    *("alias x='git'; $x", "\\\n", "git { }", "git [ ]", "git a\\\tb"),
    # what only looks like what is plain
    *("x=1; git", "export x=1; git $x", "x=$y git", "x=~ git", "x=a:~ git", "x[1]=2 git"),
    *("x[$y]=2 git", "x+=1 git", "x=(a b) git", "x={a,b} git", "> x", "git > $x", "git > ~/x"),
    *("git > {a,b}", "git > >(ls)", "git > $(ls)", "git >", "git > x; >", "git 12> x"),
    *("git {fd}> x", "git<x", "git >x>y>&z", "git <&3", "git 2>&3", "git <<E\n$x\nE"),
    *("git <<E\n`x`\nE", "git <<E\n\\x\nE", "git <<-E\n\tx\n\tE", "git <<E\nx", "git <<E\nx\nE "),
    *("git <<E <<F\nx\nE\ny\nF", 'git <<E "a\nb"\nx\nE', "git <<E \\\n a\nx\nE", "git <<E$x\nx\nE"),
    *("git <<'E F'\nx\nE F", "git <<< $x", "git <<< ~", "git 3<<E\nx\nE"),
    *("git $(cat <<'E'\nx\nE\n)", 'git "$(cat <<E\n$x\nE\n)"'),
    *("git \"$(cat <<'E'; rm x\ny\nE\n)\"", "git \"$(cat <<'E' | sh\ny\nE\n)\""),
    *("git \"$(cat x <<'E'\ny\nE\n)\"", "git \"$(cat <<'E'\ny\nE\nrm x\n)\""),
    *("git \"$(cat <<'E'\ny\nE\nF\nE\n)\"", "git \"$(sh <<'E'\ny\nE\n)\"", 'git "$(<x)"'),
    *("((git))", "( )", "(git) ls", "(git", "git)", "{ git }", "{git; }", "{ git; } ls"),
    *("f () { git; }", "git () { ls; }", "! ! git", "!", "git | ! ls", "if git; then fi"),
    *("if git; ls; fi", "if git then ls; fi", "then git", "git; done"),
    "if git; then ls; else aa; elif bb; then cc; fi",
    *("x=1 if git; then ls; fi", "while git; done", "for x in a; do $x; done < $x"),
    *("for x in; do git; done", "for x; do git; done", "for x in a do git; done"),
    *("for x in a; { git; }", "for X in a; do git; done", "for PATH in .; do git; done"),
    *("for http_proxy in x; do git; done", "for ((;;)); do git; done", "for x in $y; do git; done"),
    *("for x in {1..3}; do git $x; done", "for x in 'a b'; do git $x; done"),
    *("for x in '*'; do git $x; done", "for x in a*; do git $x; done"),
    "for x in a; do git; done; ls $x",
    "for x in a; do for x in b; do git; done; ls $x; done",
    *("for x in a; do read x; git $x; done", "for x in a; do printf -v x b; git $x; done"),
    *("for x in a; do time read x; git $x; done", "for x in a; do eval x=b; git $x; done"),
    *("for x in a; do . y; git $x; done", "for x in a; do git ${x:-b}; done"),
    "for x in a; do git ${#x} ${!x} ${x%a}; done",
    "for x in a; do git $x[1]; done",
    "for x in a; do y=$x git; done",
    "for x in " + " ".join("ab" for _ in range(30)) + "; do git $x " + "a " * 20 + "; done",
    "git $$",
    "git $1 $@ $# $! $-",
    "git &",
    "git & wait",
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
            *("\r", "\x0c", "\x0b", "\u00a0", "\u3000", "é", "日", "\u0301", "\u200b", "$'", '$"'),
            "${",
        ),
        *(
            *("..", "{a,b}", "~root", "coproc ", "[[ ", " ]]", "git a", "ls -l", "-exec", " in "),
            "do ",
        ),
        *(
            *("\nE\n", "<<E\n", "<<'E'", "<<<", "\ndo ", "; do ", "; done", "for x in a b", "$x"),
            '"$x"',
        ),
        *(
            *("${x}", "> x", " <in", "2>y ", "(", ")", "; }", "; then ", "; fi", "else ", "CI=1 "),
            "XX=",
        ),
        *("cd sub", "while ff", "until ", "elif ", "(cat <<'E'\n", "$?"),
    ]
)
LINES = st.lists(PIECES, max_size=14).map(lambda pieces: "git " + "".join(pieces))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=LINES)
@example(line="git a\\\n#b")
@example(line="git ''#b")
@example(line="git -c {a\\,b}")
@example(line="git 1\\\n>/dev/null")
@example(line="git > x/")
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


FILE_NAMES = st.sampled_from(["x", "'x y'", "sub/z", '"y"', "sub/../w"])
OPENED = st.one_of(
    st.builds("{} {}".format, st.sampled_from([">", "2>", ">>", "&>", ">|", "3>"]), FILE_NAMES),
    st.sampled_from(["< in", "<sub/in", "2>&1", ">/dev/null"]),
)
VALUES = st.sampled_from(["a", "'b c'", "''", "-rf", "'*'", "\\$x"])


@st.composite
def simple_commands(draw: st.DrawFn, variable: str = "") -> str:
    """A command, perhaps with variables before it and redirections behind it."""
    assigned = draw(st.sampled_from(["", "CI=1 ", "XX='a b' ", "CI= XX=y "]))
    name = draw(st.sampled_from([*NAMES, "cat", "true"]))
    words = [] if name == "cat" else draw(st.lists(VALUES, max_size=2))
    if variable and name != "cat":
        words.append(
            draw(st.sampled_from([f'"${variable}"', f'a"${{{variable}}}"b', f"'${variable}'"]))
        )
    given = draw(st.sampled_from([[], ["<<< 'a  b'"]]))
    opened = [*given, *draw(st.lists(OPENED, max_size=2))]
    return assigned + " ".join([name, *words, *opened])


@st.composite
def lists_of_commands(draw: st.DrawFn, depth: int = 2, variable: str = "") -> str:
    """A list of commands, groups, loops and conditions."""
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["simple", "(", "{", "for", "if", "while", "!"]))
        if kind == "simple" or not depth:
            parts.append(draw(simple_commands(variable)))
            continue
        inner = draw(lists_of_commands(depth - 1, variable))
        match kind:
            case "(":
                parts.append(f"( {inner})")
            case "{":
                parts.append(f"{{ {inner}; }}")
            case "for":
                name = "xy"[depth - 1]
                looped = draw(lists_of_commands(depth - 1, name))
                values = " ".join(draw(st.lists(VALUES, min_size=1, max_size=2)))
                parts.append(f"for {name} in {values}; do {looped}; done")
            case "if":
                parts.append(f"if {inner}\nthen {draw(simple_commands())}; else aa; fi")
            case "while":
                parts.append(f"while ff; do {inner}; done")
            case "!":
                parts.append(f"! {draw(simple_commands(variable))}")
    return draw(st.sampled_from([" && ", "; ", "\n", " || "])).join(parts)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=lists_of_commands())
@example(line="for y in a a; do aa '$y'; done")
def test_lists_in_lists_run_and_open_what_was_read(line: str, bin_directory: Path) -> None:
    assert ShellCommand.parse(line).plain is not None
    assert agrees(line, bin_directory)


TEXTS = st.text("ab $`\\'\"()\n#;<>E", max_size=12).filter(lambda text: "E" not in text.split("\n"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=TEXTS,
    line=st.sampled_from(
        [
            "git <<'E' && ls > x\n{}\nE\naa",
            "git \"$(cat <<'E'\n{}\nE\n)\" b; ls",
            "git <<E\n{}\nE",
            'git "a$(cat <<E\n{}\nE\n)"',
        ]
    ),
)
def test_here_documents_hold_what_was_read(text: str, line: str, bin_directory: Path) -> None:
    assert agrees(line.format(text), bin_directory)


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
        name, *words = line.split()
        return [[name, "", "", *words]]

    seen = {line: done_by_bash(line, bin_directory).commands for line in PLAIN[:9]}
    assert [line for line in seen if naive(line) != seen[line]]
