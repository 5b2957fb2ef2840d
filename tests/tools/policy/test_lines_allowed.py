"""Lines are judged by their parts: what each runs, sets and opens, whatever form joins them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tools.core.spec import ToolSpec
from tools.policy.calls import Containment, Decision, Verdict
from tools.policy.policy import Policy
from tools.policy.suggested_rules import grant_for, offers_for

Judge = Callable[..., Decision]
CONFINED = Containment.CONFINED
RULES = {"allow": ["bash(git *)", "bash(npm test *)"], "root": Path("/root/of/it")}


def verdict_of(judge: Judge, command: str, **options: object) -> Verdict:
    return judge(
        "bash", {"command": command}, **{"containment": CONFINED, **RULES, **options}
    ).verdict


ALLOWED = [
    # redirections beneath the root
    *("git status > out.log", "git status 2>> logs/x 1>&2", "git status &> 'a b'"),
    *("git apply < fix.patch", "git log > /root/of/it/x"),
    *("git log > a/../b", "(npm test; git status) > log 2>&1"),
    # here-documents and here-strings
    *("git apply <<'E'\n+$(rm x)\nE", "git commit -F - <<E\nIt's done\nE"),
    *("cat > src/a.py <<'E'\nimport os\nE", "cat <<'E' | git apply && git status\nx\nE"),
    "git hash-object --stdin <<< 'x'",
    # variables that change nothing that is run
    "CI=1 npm test",
    "NODE_ENV=test FORCE_COLOR=0 TZ=Europe/Berlin npm test",
    "LC_ALL=C.UTF-8 GIT_PAGER=cat git log",
    "export CI=true NO_COLOR=1 && npm test",
    # a text as a word
    "git commit -m \"$(cat <<'E'\nDo it\n\nIt's $(rm x) `rm x`.\nE\n)\"",
    'git commit -m "$(cat <<E\nx\nE\n)" && git push',
    # what needs no rule
    *("cd a/b && npm test", "cd /root/of/it/a; pwd", "set -euo pipefail; npm test || exit 1"),
    *("set -e -o pipefail\nnpm test", 'npm test; echo "exit $?" $?', "npm test 2>&1 | tail -n 20"),
    *("git log | head -5 | wc -l", "[ -f a ] && test -d b || true", "printf '%s\\n' a *.py > list"),
    # lists in lists
    "(cd a && git status)",
    "{ git add .; git status; } && ! git diff",
    "if git diff --quiet; then echo same; elif true; then git add a; else npm test; fi",
    "while ! npm test; do git stash; done",
    # loops
    "for f in a 'b c'; do git add \"$f\"; done",
    'for f in src/*.py; do git add "$f"; done',
    "for d in a b; do (cd $d && npm test); done",
    "for a in x y; do for b in 1 2; do git tag $a-$b > $a/$b; done; done",
    "for s in status diff; do git $s; done",
]


@pytest.mark.parametrize("command", ALLOWED)
def test_a_line_is_allowed_if_each_of_its_parts_is(command: str, judge: Judge) -> None:
    decision = judge("bash", {"command": command}, containment=CONFINED, **RULES)
    assert decision.verdict is Verdict.ALLOW, decision


@pytest.mark.parametrize("command", [each for each in ALLOWED if "git" in each or "npm" in each])
def test_what_runs_in_each_of_them_is_judged(command: str, judge: Judge) -> None:
    assert verdict_of(judge, command, allow=["bash(ls)"]) is Verdict.ASK
    assert verdict_of(judge, command, ask=["bash(git *)", "bash(npm *)"]) is Verdict.ASK
    assert verdict_of(judge, command, deny=["bash(git *)", "bash(npm *)"]) is Verdict.DENY


ASKING = [
    # redirections elsewhere, and to what programs obey
    *("git status > /etc/x", "git status > ../x", "git status > a/../../x"),
    *("git status > /root/of/its/x", "git status >> ~/.bashrc", "git status > ~root/x"),
    *("git status > $HOME/x", "git status > *.log", "git status > /dev/tcp/192.0.2.1/80"),
    *("git status > .git/hooks/pre-commit", "git status > a/.GIT/config"),
    *("git status > .vscode/tasks.json", "git status > .envrc", "cat > .bashrc <<'E'\nx\nE"),
    *("git status < /etc/passwd", "git status < ../x", "git status > a > /etc/x"),
    *("git status 2> /etc/x > a", "cd .. && git status > x", "cd / && git status > x"),
    *("cd /; git status", "cd && git status", "cd - && git status", "cd ~ && git status"),
    *("cd a/../.. && git status", "cd .. && git status && cd a"),
    "cd a && git log > ../b",  # as if cd had failed
    "pushd a && git status > x",
    "for d in .. a; do (cd $d); done; git status",
    "for d in a b; do cd $d; git status > ../x; done",
    "for d in a b; do git status > ../x; cd $d; done",
    "for d in a b; do git status > x; eval 'cd ..'; done",
    "for f in a /etc/x; do git status > $f; done",
    "(git status) > /etc/x",
    "for f in a; do git status; done > /etc/x",
    # what reads a program from its input
    *("sh <<'E'\ngit status\nE", "bash -s <<< 'git status'", "python - <<'E'\nx\nE"),
    *("cat <<'E' | sh\ngit status\nE", "node <<< x", "(sh) <<'E'\ngit status\nE"),
    # variables that change what is run, or may
    *("PATH=. git status", "LD_PRELOAD=./x git status", "GIT_SSH_COMMAND=x git fetch"),
    *("GIT_PAGER=x git log", "NODE_OPTIONS='-r ./x' npm test", "BASH_ENV=x npm test"),
    *("SOMETHING=1 npm test", "CI=1 SOMETHING=1 npm test", "TZ=/etc/x npm test"),
    *("LANG=../x npm test", "CI=$(rm x) npm test", "PATH=. pwd", "export PATH=. && git status"),
    *("export CI=1 PATH=.; git status", "export -f git; git status", "PATH=.; git status"),
    *("X=1; git status", "readonly CI=1; git status"),
    # expansions that are not known
    *('git commit -m "$(cat <<E\n$(rm x)\nE\n)"', "git commit -m \"$(cat <<'E'\nx\nE\nrm x)\""),
    *("git commit -m $(cat <<'E'\nx\nE\n)", 'git commit -m "$(rm x)"'),
    *("git commit -F - <<E\n$(rm x)\nE", "git commit -F - <<E\n`rm x`\nE"),
    *('for f in $(rm x); do git add "$f"; done', 'for f in a; do git add "$f" "$g"; done'),
    *("for f in a; do f=$(rm x); git add $f; done", "for f in '-rf /'; do git $f; done"),
    # commands in the new places
    *("(rm x)", "{ git status; rm x; }", "! rm x"),
    *("if rm x; then git status; fi", "if git status; then rm x; fi"),
    "if git status; then git diff; else rm x; fi",
    "while rm x; do git status; done",
    "for f in a; do rm $f; done",
    "for c in git rm; do $c x; done",
    "for f in *; do $f; done",
    # what would change what the next commands are
    *("f() { rm x; }; f", "git() { rm x; }; git status", "function git { rm x; }; git status"),
    *("alias git=rm; git status", "source x; git status", ". x && git status"),
    *("source .venv/bin/activate && git status", "source x/bin/activate; git status"),
    *("set -a; git status", "set -o posix; git status", "set -o; git status"),
    *("set -- x; git status", "set -k; git status", "shopt -s expand_aliases; git status"),
    *("hash -p ./x git; git status", "enable -n echo; git status", "exec git status"),
    *("exec > x; git status", "trap 'rm x' EXIT; git status", "printf -v PATH .; git status"),
    *("echo $(rm x)", "echo /etc/*", "[ -f /etc/x ]", "test -v 'a[$(rm x)]'", "cat x", "tail -f"),
    *("head a", "head 5", "wc -c 5", "tail -n 5 6", "wait -n -p PATH", "git status &"),
]


@pytest.mark.parametrize("command", ASKING)
def test_a_part_that_no_rule_covers_asks(command: str, judge: Judge) -> None:
    assert verdict_of(judge, command) is Verdict.ASK
    assert verdict_of(judge, command, grants=("bash(git status)",)) is Verdict.ASK


@pytest.mark.parametrize("command", [*ALLOWED, *ASKING])
def test_a_rule_that_asks_about_every_line_asks_about_each_of_these(
    command: str, judge: Judge
) -> None:
    assert verdict_of(judge, command, ask=["bash"]) is Verdict.ASK


HIDDEN = [
    *("git status > $(rm x)", "FOO=$(rm x) git status", "GIT_PAGER='rm x' git log"),
    *("sh <<'E'\nrm x\nE", "cat <<'E' | sh\nrm x\nE", "bash -s <<< 'rm x'", "(bash) <<< 'rm x'"),
    *("make -f - <<'E'\nall:; rm x\nE", "for c in git rm; do $c x; done"),
    *("for f in -rf; do rm $f x; done", "sh -c \"$(cat <<'E'\nrm x\nE\n)\""),
    *("bash <<< \"$(cat <<'E'\nrm x\nE\n)\"", "xargs rm <<< x"),
    *("for f in 'rm x'; do sh -c \"$f\"; done", "for f in *; do $f; done"),
    *("if true; then ! rm x; fi", "{ rm x; } > y", "while true; do (rm x); done", "CI=1 rm x"),
    *("time CI=1 rm x", "echo a > b rm; rm x", "> y CI=1 rm x < z"),
    "git commit -m \"$(cat <<'E'\na\nE\n)\"; rm x",
    'git commit -m "$(cat <<E\n$(rm x)\nE\n)"',
    "source x",
    "source ../x; git status",
]


@pytest.mark.parametrize("command", HIDDEN)
def test_no_form_hides_a_command_that_is_denied(command: str, judge: Judge) -> None:
    rules = {"allow": ["bash", "bash(*)"], "deny": ["bash(rm *)"]}
    assert verdict_of(judge, command, **rules) is not Verdict.ALLOW
    assert verdict_of(judge, command, profile="trusting", deny=rules["deny"]) is not Verdict.ALLOW
    assert verdict_of(judge, command, profile="trusting", ask=rules["deny"]) is Verdict.ASK


def test_the_rules_about_files_hold_for_redirections(judge: Judge) -> None:
    for profile in ("standard", "trusting"):
        rules = {"profile": profile, "deny": ["write(a/**)", "read(b/**)"]}
        rules["ask"] = ["write_file(c/**)"]
        assert verdict_of(judge, "git log > a/x", **rules) is Verdict.DENY
        assert verdict_of(judge, "cd d; git log > ../A/x", **rules) is Verdict.DENY
        assert verdict_of(judge, "git apply < b/x", **rules) is Verdict.DENY
        assert verdict_of(judge, "git log > c/x", **rules) is Verdict.ASK
        assert verdict_of(judge, "git log > d/x", **rules) is Verdict.ALLOW


def test_a_profile_says_of_redirections_what_it_says_of_the_file_tools(judge: Judge) -> None:
    assert verdict_of(judge, "git apply < x", profile="read-only") is Verdict.ALLOW
    assert verdict_of(judge, "git log > x", profile="read-only") is Verdict.DENY
    assert verdict_of(judge, "git log > /tmp/x", profile="trusting") is Verdict.ALLOW


def test_redirections_ask_where_nothing_holds_them_beneath_the_root(judge: Judge) -> None:
    decision = judge("bash", {"command": "git log > x"}, **RULES)
    assert decision.verdict is Verdict.ASK
    assert decision.reason.endswith("It writes x, which is not confined.")
    assert verdict_of(judge, "cd a && git log", containment=Containment.NONE) is Verdict.ALLOW


def test_a_path_is_meant_from_where_the_line_begins(judge: Judge) -> None:
    for cwd, command, verdict in (
        ("a", "git log > ../x", Verdict.ALLOW),
        ("a", "git log > ../../x", Verdict.ASK),
        ("a", "git log > .git/x", Verdict.ASK),
        ("a", "cd .. && git log > x", Verdict.ALLOW),
        ("a", "cd ../.. && git log", Verdict.ASK),
        (".git", "git log > x", Verdict.ASK),
    ):
        call = {"command": command, "cwd": cwd}
        assert judge("bash", call, containment=CONFINED, **RULES).verdict is verdict, command


def test_variables_are_allowed_by_a_rule_that_names_them(judge: Judge) -> None:
    rule = "bash(PYTHONPATH=src pytest *)"
    for command, verdict in (
        ("PYTHONPATH=src pytest -q", Verdict.ALLOW),
        ("CI=1 PYTHONPATH='src' pytest", Verdict.ALLOW),
        ("PYTHONPATH=src X=1 pytest", Verdict.ASK),
        ("PYTHONPATH=. pytest", Verdict.ASK),
        ("PYTHONPATH=src python", Verdict.ASK),
        ("pytest", Verdict.ASK),
    ):
        assert verdict_of(judge, command, allow=[rule]) is verdict, command
    wide = ["bash(PYTHONPATH=* pytest)", "bash(* --version)", "bash(git pull && X=1 make)"]
    assert verdict_of(judge, "PYTHONPATH=a:b pytest", allow=wide) is Verdict.ALLOW
    assert verdict_of(judge, "PYTHONPATH=a:b ls --version", allow=wide) is Verdict.ASK
    assert verdict_of(judge, "git pull && X=1 make", allow=wide) is Verdict.ALLOW
    assert verdict_of(judge, "git pull && make", allow=wide) is Verdict.ASK


def test_variables_of_a_rule_that_denies_are_left_out(judge: Judge) -> None:
    for command in ("X=1 rm y", "rm y", "X=2 rm y"):
        assert verdict_of(judge, command, deny=["bash(X=1 rm *)"]) is Verdict.DENY


def test_a_rule_about_an_activation_allows_that_script_alone(judge: Judge) -> None:
    allow = ["bash(source .venv/bin/activate)", "bash(pytest *)"]
    line = "source .venv/bin/activate && pytest -q > log"
    assert verdict_of(judge, line, allow=allow) is Verdict.ALLOW
    assert verdict_of(judge, line, allow=allow, deny=["bash(rm *)"]) is Verdict.ALLOW
    assert verdict_of(judge, "source x/bin/activate && pytest", allow=allow) is Verdict.ASK


def test_a_rule_of_several_commands_is_about_their_operators_alone(judge: Judge) -> None:
    rules = {"allow": ["bash(make && ls)"]}
    assert verdict_of(judge, "make && ls", **rules) is Verdict.ALLOW
    for command in ("! make && ls", "(make && ls)", "if make; then ls; fi", "make; ls"):
        assert verdict_of(judge, command, **rules) is Verdict.ASK


def test_each_part_is_told_once(judge: Judge) -> None:
    line = "for f in a b; do git add $f > log; done; CI=1 ls < in"
    decision = judge("bash", {"command": line}, containment=CONFINED, **RULES)
    assert decision.parts == (
        "allow: git add a (bash(git *), settings)",
        "allow: writes log (scope:sandboxed, profile standard)",
        "allow: git add b (bash(git *), settings)",
        "ask: CI=1 ls (scope:system+effect:execute, profile standard)",
        "allow: reads in (scope:sandboxed, profile standard)",
    )


def test_nothing_is_remembered_of_a_line_that_does_more_than_run_commands(
    crib: Mapping[str, ToolSpec],
) -> None:
    policy = Policy("standard", find=crib.get)
    for command in ("git log > /etc/x", "PATH=. git log", "(git log)", "sh <<< x", "! git log"):
        assert grant_for(policy, crib["bash"], {"command": command}) == "", command
    assert grant_for(policy, crib["bash"], {"command": "cd a; ls"}) == "bash(cd a ; ls)"


def test_what_no_rule_covers_is_offered_with_its_variables(crib: Mapping[str, ToolSpec]) -> None:
    policy, call = Policy("standard", find=crib.get), {"command": "cd a && X=1 make > log"}
    decision = policy.judge(crib["bash"], call, containment=CONFINED)
    assert decision.reason.startswith("Not covered by a rule: `X=1 make`.")
    offers = offers_for(policy, crib["bash"], call, decision, CONFINED)
    assert offers == (("bash(X=1 make)",),)
    assert offers_for(policy, crib["bash"], call, decision, Containment.NONE) == ()
