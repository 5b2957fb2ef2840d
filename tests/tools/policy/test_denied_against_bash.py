"""Lines by which the real bash removes a file while `rm` is denied are denied, or ask."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.policy.calls import Containment, Decision, Verdict

Judge = Callable[..., Decision]

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")

VICTIM = "victim"


def removes(line: str, directory: Path) -> bool:
    """Whether the real bash, given a line, removes the victim."""
    place = directory / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / VICTIM).touch()
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    subprocess.run(
        [str(BASH), "--noprofile", "--norc", "-c", line],
        cwd=place,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "LC_ALL": "C.UTF-8",
            **{f"GIT_{name}": "a" for name in names},
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return not (place / VICTIM).exists()


def is_held(line: str, judge: Judge) -> bool:
    """Whether a line is denied or asked about where all else is allowed."""
    decision = judge(
        "bash",
        {"command": line},
        profile="trusting",
        containment=Containment.CONFINED,
        allow=["bash", "bash(*)"],
        deny=["bash(rm *)"],
    )
    return decision.verdict is not Verdict.ALLOW


CODE = "aW1wb3J0e2V4ZWNTeW5jfWZyb20iY2hpbGRfcHJvY2VzcyI7ZXhlY1N5bmMoInJtIHZpY3RpbSIp"
CHARACTERS = "__import__('os').system(chr(114)+'m victim')"
SPELLED = {
    "bash": [
        *("bash -cOo extglob pipefail 'rm victim'", "time -p ! ${x:-rm} victim"),
        *("! ! ${x:-rm} victim", "! ! ! A=1 ${x:-rm} victim", "! time ! ! ${x:-rm} victim"),
        *("bash -rcfile /dev/null -c 'rm victim'", "bash -c - 'rm victim'", "bash +c 'rm victim'"),
        *("bash -ec '\"$@\"' x rm victim", "env 'BASH_FUNC_f%%=() { rm victim; }' bash -c f"),
        *("f() { rm victim; }; export -f f; bash -c f", "BASH_ENV='$(r\"\"m victim)' bash -c :"),
        *("bash --init-file /dev/stdin -i <<< 'r\"\"m victim'", "eval -- rm victim"),
        *("trap -- 'r\"\"m victim' EXIT", "tr x r <<< 'xm victim' | bash -es a b"),
        "tr x r <<< 'xm victim' | bash ../../../../../../../../../../../../dev/stdin",
        *("printf '%s\\n' 'rm victim' > s; sh s", "printf '%s\\n' 'rm victim' | tee s; . ./s"),
        *("cp /bin/rm x; ./x victim", "cat /bin/rm > x; chmod +x x; ./x victim"),
        *("ln -s /bin/rm x; ./x victim", "env --s='r\"\"m victim'"),
        "printf victim | xargs setsid -w rm",
    ],
    "python3": [
        f'python3 -m timeit -n1 -r1 "{CHARACTERS}"',
        f'python3 -Imtimeit -n1 -r1 "{CHARACTERS}"',
        f'python3 -m cProfile -m timeit -n1 -r1 "{CHARACTERS}"',
        f'python3 -W ignore -c "{CHARACTERS}"',
        f'echo "{CHARACTERS}" | python3 -m code',
        f'echo "{CHARACTERS}" | python3 //dev/stdin',
    ],
    "perl": [
        "perl '-MPOSIX;system chr(114).q(m victim)' /dev/null",
        "perl -I . -0777 -ne 'system chr(114).q(m victim)' /etc/passwd",
        "PERL5OPT='-MPOSIX;system+chr(114).chr(109).chr(32).q(victim)' perl /dev/null",
    ],
    "node": [
        f"node --import 'data:text/javascript;base64,{CODE}' /dev/null",
        'node --title x -e \'require("child_process").execSync("r"+"m victim")\'',
    ],
    "git": [
        "git init -q; git config alias.x '!rm victim'; git x",
        "git init -q; git config protocol.ext.allow always; git fetch 'ext::rm victim'",
        "git init -q; git send-pack --receive-pack='rm victim;' . x",
    ],
    "x86_64": ["x86_64 /bin/r? victim", "x86_64 -R bash -c 'r\\m victim'"],
    "setarch": [
        "setarch -R bash -c 'r\"\"m victim'",
        r"setarch -R env -u A -i PATH=/usr/bin:/bin $'\x72m' victim",
        "setarch -R nice -n 5 rm victim",
        "setarch -R rm victim",
    ],
    "capsh": ["capsh --print -- -c 'r\"\"m victim'"],
    "cmake": ["cmake -E env A=1 rm victim", "cmake -E env bash -c 'r\"\"m victim'"],
    "choom": ["choom -n 0 -- bash -c 'r\"\"m victim'"],
    "ssh-agent": ["ssh-agent rm victim"],
    "sg": ['sg "$(id -gn)" \'r""m victim\''],
    "tar": ["tar -I 'rm victim;cat' -cf x /etc/passwd", "tar cfI x 'rm victim' /etc/passwd"],
    "make": ["printf 'x:\\n\\tr\"\"m victim' | make --file=//dev/stdin"],
    "gcc": ["gcc -wrapper sh,-c,'rm victim' -x c -c /dev/null -o x"],
}
CASES = [(program, line) for program, lines in SPELLED.items() for line in lines]


@pytest.mark.parametrize(("program", "line"), CASES)
def test_a_spelling_that_removes_the_file_is_held(
    program: str, line: str, judge: Judge, tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    assert is_held(line, judge)
    if Path("/proc/self").exists():
        assert removes(line, tmp_path)


WRAPPERS = [
    *("", "env ", "env -u A -i PATH=/usr/bin:/bin ", "env A=1 ", "nice -n 1 ", "nohup "),
    *("timeout -k 1 9 ", "timeout --preserve-status 9 ", "stdbuf -oL ", "setsid -w ", "command "),
    *("exec ", "exec -a x ", "time -p ", "! ", "x86_64 ", "setarch -R ", "/usr/bin/env "),
    *("flock -n . ", "ionice -c 3 ", "eval ", "choom -n 0 -- ", "cmake -E env ", "prlimit -n99 "),
    *("find . -maxdepth 0 -exec ", "echo x | xargs -I% ", "ssh-agent ", "fakeroot -- ", "unshare "),
]
NAMES = [
    *(
        *("rm", "/bin/rm", "//bin//rm", "/bin/../bin/rm", "r''m", 'r"m"', "\\rm", "$'\\x72m'"),
        "/bin/r?",
    ),
    *("$(echo rm)", "`echo rm`", "${x:-rm}", "/bin/r[m]"),
]
SHELLS = ["bash", "sh", "/bin/bash", "dash", "'bash'", "ba\\sh"]
LONG = ["", "--norc ", "-norc ", "--noprofile ", "--rcfile /dev/null ", "-init-file /dev/null "]
STDIN = [
    *("", "-", "--", "-s", "-es a b", "-euo noglob", "/dev/stdin", "//dev/stdin", "/dev/fd/0"),
    *("/dev/./fd/0", "/proc/self/fd/0", "/proc//self/fd/0", "-e /dev/stdin x", "-- /dev/stdin"),
    *("/proc/thread-self/fd/0", "/dev/../dev/stdin", "-s -- a", "+e", "-O extglob"),
]


@st.composite
def clusters(draw: st.DrawFn) -> str:
    """Options of a shell, `c` among them in any place, and the values that they take."""
    letters = draw(st.permutations(["c", *draw(st.sets(st.sampled_from("euxvbfo"), max_size=4))]))
    at = draw(st.integers(0, len(letters) - 1))
    first, second = "".join(letters[:at]), "".join(letters[at:])
    words = []
    for cluster in filter(None, (first, second)):
        sign = draw(st.sampled_from("--+")) if "c" not in cluster else "-"
        words += [sign + cluster, *["noglob"] * cluster.count("o")]
    return " ".join([*words, *draw(st.sampled_from([[], ["--"], ["-"], ["-e"]]))])


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A command that removes the victim: its name in some spelling, a script, or standard input."""
    command = f"{draw(st.sampled_from(NAMES))} {VICTIM}"
    for _ in range(draw(st.integers(0, 2))):
        quoted = "'" + command.replace("'", "'\\''") + "'"
        shell = draw(st.sampled_from(SHELLS)) + " "
        match draw(st.sampled_from(["script", "stdin", "string", "coded", "wrapped"])):
            case "script":
                command = f"{shell}{draw(st.sampled_from(LONG))}{draw(clusters())} {quoted}"
            case "stdin":
                command = f"echo {quoted} | {shell}{draw(st.sampled_from(STDIN))}"
            case "string":
                command = f"{shell}{draw(st.sampled_from(STDIN))} <<< {quoted}"
            case "coded":
                command = f"tr x r <<< 'xm {VICTIM}' | {shell}{draw(st.sampled_from(STDIN))}"
            case _:
                command = draw(st.sampled_from(WRAPPERS)) + command
        if command.startswith("echo x | xargs") or "<<<" in command:
            break
    ends = " \\;" if command.startswith("find") else ""
    return draw(st.sampled_from(["", "ls; ", "true && "])) + command + ends


@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(line=lines())
def test_whatever_spelling_removes_the_file_is_held(
    line: str, judge: Judge, tmp_path: Path
) -> None:
    assert not removes(line, tmp_path) or is_held(line, judge)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(options=clusters(), shell=st.sampled_from(["bash", "sh", "dash"]))
def test_options_of_a_shell_are_read_as_it_reads_them(
    options: str, shell: str, judge: Judge, tmp_path: Path
) -> None:
    line = f"{shell} {options} 'rm {VICTIM}'"
    decision = judge("bash", {"command": line}, allow=["bash"], deny=["bash(rm *)"])
    if shutil.which(shell) and removes(line, tmp_path):
        assert decision.verdict is Verdict.DENY


@pytest.mark.parametrize(
    "line",
    [
        *("grep rm file", "git commit -m 'rm old files'", "echo rm; printf 'rm %s' x"),
        *("bash -euo pipefail -c 'pytest -q | tail -3'", "bash -e scripts/build.sh --all"),
        "python3 -W ignore -m pytest -p no:cacheprovider",
        *("python3 -u x.py -c x.toml --import y", "node --no-warnings server.js -p 3000"),
        *("make -j4 -f build.mk all", "PYTHONPATH=src pytest -q > out.log; grep rm out.log"),
        *("jq '.rm as $x | $x' x.json", "ruff check . --fix", "npm run form", "tar czf x.tgz rm"),
    ],
)
def test_words_that_only_look_like_the_command_are_not_held(line: str, judge: Judge) -> None:
    assert not is_held(line, judge)


def test_variables_that_are_given_with_a_line_count(judge: Judge) -> None:
    def verdict(**env: str) -> Verdict:
        call = {"command": "ls", "env": env}
        return judge("bash", call, allow=["bash"], deny=["bash(rm *)"]).verdict

    assert verdict(**{"BASH_FUNC_ls%%": "() { rm x; }"}) is Verdict.ASK
    assert verdict(BASH_ENV="$(r''m x)") is Verdict.ASK
    assert verdict(CI="1", PYTHONPATH="src") is Verdict.ALLOW


def test_a_line_too_long_to_be_searched_is_refused_where_a_rule_denies(judge: Judge) -> None:
    line = "ls\n" + "# a comment\n" * 500 + "rm x"
    for rule in ("rm *", "curl * | sh *"):
        decision = judge("bash", {"command": line}, allow=["bash"], deny=[f"bash({rule})"])
        assert decision.verdict is Verdict.DENY
        assert decision.rule == f"bash({rule})"
        assert "Write a script" in decision.reason
    assert judge("bash", {"command": line}, allow=["bash"]).verdict is Verdict.ALLOW
    asked = judge("bash", {"command": line}, allow=["bash"], ask=["bash(rm *)"])
    assert asked.verdict is Verdict.ASK
