"""Rules that deny a command hold, however it is spelled, wrapped or hidden."""

from collections.abc import Callable

import pytest

from tools.policy.calls import Containment, Decision, Verdict

Judge = Callable[..., Decision]


DENIED = {
    "quotes": [
        *("'rm' -rf x", '"rm" -rf x', "r'm' -rf x", 'r"m" -rf x', "r\\m -rf x", "\\rm -rf x"),
        *("''rm -rf x", '""rm x', "rm\\\n x", "r\\\nm x", "$'rm' x"),
    ],
    "directories": ["/bin/rm x", "/usr/bin/rm x", "./rm x", "../../bin/rm x", "~/rm x", "RM x"],
    "blanks": [" rm x", "\trm x", "\nrm x", "rm\tx", "  rm  x"],
    "lists": [
        *("ls; rm x", "ls && rm x", "ls || rm x", "ls | rm x", "ls |& rm x", "ls & rm x"),
        *("ls\nrm x", "ls;rm x", "ls # a\nrm x", "true;\n\n\trm x"),
    ],
    "nesting": [
        *("(rm x)", "{ rm x; }", "! rm x", "$(rm x)", "echo $(rm x)", 'echo "$(rm x)"'),
        *('echo "a `rm x` b"', "echo `rm x`", "cat <(rm x)", "tee >(rm x)", "echo ${y:-$(rm x)}"),
        *('echo "${y:-$(rm x)}"', "echo $((1 + $(rm x)))", "y=$(rm x)", "y=$(rm x) ls"),
        *("y=(a $(rm x))", "ls > $(rm x)", "cat <<< $(rm x)", "cat <<E\n$(rm x)\nE"),
        *("export y=$(rm x)", "[[ $(rm x) ]]", "[ $(rm x) ]", "for i in 1; do rm x; done"),
        *("for i in $(rm x); do ls; done", "while rm x; do ls; done", "until rm x; do ls; done"),
        *("if rm x; then ls; fi", "if ls; then rm x; fi"),
        "if ls; then ls; elif rm x; then ls; else ls; fi",
        *("if ls; then ls; else rm x; fi", "case x in x) rm x;; esac"),
        *("case $(rm x) in x) ls;; esac", "f() { rm x; }; f", "function f { rm x; }; f"),
        *("f() (rm x); f", "rm x &", "rm x > y", "> y rm x", "2>/dev/null rm x"),
        *("y=1 rm x", "y=1 z=2 rm x"),
    ],
    "wrappers": [
        *("sudo rm x", "sudo -n rm x", "sudo -u root rm x", "sudo -uroot rm x"),
        *("sudo --user root rm x", "sudo --user=root rm x", "sudo -E -u root -- rm x"),
        *("sudo y=1 rm x", "sudo -nu root rm x", "/usr/bin/sudo rm x", "'sudo' rm x", "doas rm x"),
        *("doas -u root rm x", "env rm x", "env -i rm x", "env y=1 rm x", "env -u y z=1 rm x"),
        *("env -C / rm x", "env -S 'rm x'", "env -S'rm x'", "env --split-string='rm x'"),
        *("nice rm x", "nice -n 5 rm x", "nice -5 rm x", "nice --adjustment=5 rm x"),
        *("ionice -c 3 rm x", "nohup rm x", "time rm x", "time -p rm x", "timeout 5 rm x"),
        *("timeout -s KILL 5 rm x", "timeout -k 1 5 rm x", "timeout --signal=KILL 5s rm x"),
        *("stdbuf -o0 rm x", "stdbuf -o 0 rm x", "setsid rm x", "setsid -w rm x", "xargs rm"),
        *("xargs -0 rm x", "xargs -n 1 rm", "xargs -I {} rm {}", "xargs -I{} rm {}"),
        *("echo x | xargs rm", "echo x | xargs -n1 -P 2 rm -f", "command rm x", "command -p rm x"),
        *("builtin rm x", "exec rm x", "exec -a y rm x", "busybox rm x", "valgrind rm x"),
        *("valgrind --tool=memcheck rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x"),
        *("ld.so --library-path /lib /bin/rm x", "perf stat rm x", "git bisect run rm x"),
        *("git -C a bisect run rm x", "git submodule foreach rm x"),
        "git submodule --quiet foreach --recursive 'rm x'",
        *("git rebase -x 'rm x' main", "git rebase main --exec='rm x'"),
        *("git rebase main -i --exec 'rm x'", "git difftool -x 'rm x' HEAD"),
        *("git difftool --extcmd='rm x'", "uv run rm x", "uv run --with y -p 3.12 rm x"),
        *("uv --directory y run -- rm x", "poetry run rm x", "poetry -C y run rm x"),
        *("pipenv run rm x", "conda run -n y rm x", "bundle exec rm x", "toybox rm x"),
        *("watch rm x", "watch -n 1 rm x", "watch 'rm x'", "find . -exec rm {} \\;"),
        *("find . -exec rm {} +", "find . -execdir rm {} \\;", "find . -ok rm {} \\;"),
        *("find . -okdir rm {} ';'", "find . -exec ls {} \\; -exec rm {} \\;"),
        *("find . -exec sh -c 'rm x' \\;", "fd -x rm", "fd --exec rm", "chroot / rm x"),
        *("flock y rm x", "flock y -c 'rm x'", "taskset 1 rm x", "unshare rm x", "setpriv rm x"),
        *("strace -f -o y rm x", "caffeinate rm x"),
        *("fakeroot rm x", "sudo env nice timeout 5 rm x"),
        "nohup nice -n 1 sudo -u root env y=1 /bin/r'm' x",
    ],
    "scripts": [
        *("sh -c 'rm x'", "bash -c 'rm x'", "bash -lc 'rm x'", "bash -c 'ls; rm x'"),
        *("bash -x -c 'rm x'", "bash -o pipefail -c 'rm x'", "bash --norc -c 'rm x'"),
        *("bash -c -e 'rm x'", "/bin/sh -ec 'rm x'", "dash -c 'rm x'", "zsh -c 'rm x'"),
        *('bash -c "rm x"', 'bash -c "bash -c \\"rm x\\""', "sh -c 'sh -c \"rm x\"'"),
        *("sudo sh -c 'rm x'", "xargs sh -c 'rm x'", "su -c 'rm x'", "su root -c 'rm x'"),
        *("eval rm x", "eval 'rm x'", "eval 'r''m x'", "eval 'ls; rm x'", "eval eval rm x"),
        *("trap 'rm x' EXIT", "bash <<E\nrm x\nE", "bash <<'E'\nrm x\nE", "sh <<-E\n\trm x\nE"),
        *("bash <<< 'rm x'", 'bash <<< "rm x"', "bash -s <<E\nrm x\nE"),
    ],
}
CASES = [command for commands in DENIED.values() for command in commands]


@pytest.mark.parametrize("command", CASES)
@pytest.mark.parametrize("profile", ["standard", "trusting"])
def test_a_denied_command_is_denied_in_any_disguise(
    command: str, profile: str, judge: Judge
) -> None:
    decision = judge(
        "bash",
        {"command": command},
        profile=profile,
        containment=Containment.CONFINED,
        allow=["bash", "bash(*)", "bash(ls *)"],
        deny=["bash(rm *)"],
    )
    allowed_by_half = "su " in command  # what else su takes is not known
    assert decision.verdict is Verdict.DENY or (
        allowed_by_half and decision.verdict is Verdict.ASK
    ), decision
    assert decision.rule == "bash(rm *)"


UNSURE = [
    *("$x y", '$"rm" y', "r$x y", "${x} y", "$(echo rm) y", "`echo rm` y", "r$(true)m y"),
    *("$'\\x72m' y", "$'r\\155' y", "{rm,-rf,y}", "r{m,n} y", "/bin/r? y", "/bin/r* y"),
    *("/bin/[r]m y", "x=rm; $x y", "alias x=rm\nx y", "shopt -s expand_aliases; alias x='rm'; x y"),
    *("sh", "echo rm y | sh", "echo rm y | bash -s", "echo rm y | bash -", "bash /dev/stdin"),
    *('bash -c "$x"', "bash -c $x", "sh -c", "eval $x", 'eval "$x"', "eval \"r\"$'m' y $z"),
    *("sudo $x y", "env $x y", "timeout 5 $x y", "xargs -I{} {} y", "xargs -I% % y"),
    *("xargs -I % sh -c %", "xargs --replace=% sh -c %", "xargs -i {} y", "echo rm y | xargs sudo"),
    *("echo rm y | xargs env", "echo 'rm y' | xargs sh -c", "find . -exec {} y \\;"),
    *("find . -exec sh -c {} \\;", "fd . -x", "fd . -x {} y", "fd . -x sudo", "xargs $x"),
    *("find . -exec $x {} \\;", "find . $x", "python -c 'import os; os.remove(1)'"),
    *("python3 -c 'x'", "python3.11 -Ic 'x'", "python -", "echo x | python", "perl -e 'unlink 1'"),
    *("perl -ne 'unlink'", "ruby -e x", "node -e x", "node --eval x", "node -p x", "php -r x"),
    *("lua -e x", "deno eval x", "awk 'BEGIN { system(\"rm y\") }'", "awk '{ print | \"rm y\" }'"),
    *("gawk '{ \"rm y\" | getline }'", "ssh host rm y", "docker run x rm y", "parallel rm ::: y"),
    *("vim -c '!rm y'", "script -c 'rm y'", "tmux new rm y", "sudo --some-option value rm y"),
    *("env --some-option value rm y", "git $(", "rm\ry", "ls\x0crm y", "ls\u00a0; rm"),
    *("echo 'a\nrm y", "cat <<E\nrm y", "ls \u202e mr", "ls ((( rm y"),
    *("if rm; then", "coproc rm y"),
    "x" * 20_000 + "; rm y",
    "(" * 200 + "rm y" + ")" * 200,
    "$(" * 90 + "rm y" + ")" * 90,
    "sudo " * 600 + "rm y",
    *("ls\0rm y", "ls \ud800; rm y", "source y", ". y"),
    *("hash -p /bin/rm ls; ls y", "enable -f y rm"),
    # a shell that a wrapper starts where it is given no command
    *("x | unshare", "x | unshare -r", "x | x86_64", "x | linux64", "x | setarch x86_64"),
    *("x | setarch -R", "x | env unshare", "x | nice linux32", "x | chroot /", "x | fakeroot"),
    *("x | sudo -s", "x | sudo -u y -i", "x | sudo --sh", "x | doas -s", "x | newgrp"),
    *("x | runuser", "x | timeout 5 unshare"),
    # values of options of wrappers
    *("strace -o '|rm x' true", "strace -o '!rm x' true", "strace -fo '| rm -f x; cat' true"),
    *("strace -o'|rm x' true", "strace --output='|rm x' true", "ltrace -o '|rm x' true"),
    *("strace -o '|true; rm x' ls", "env strace -o '|nice rm x' ls", "rlwrap -z 'rm x' cat"),
    *("rlwrap -z'rm x' cat", "rlwrap -z 'nice rm x' cat", "strace -o '|sh -c \"rm x\"' true"),
    # what a program reads
    *("printf 'r%s x' m | bash -v", "printf 'r%s x' m | sh -h", "printf 'r%s x' m | dash -x -v"),
    *("printf 'r%s x' m | bash --rcfile --help", "printf 'r%s x' m | timeout 5 sh -v"),
    *("base64 -d <<< cm0geA== | ksh -v", "printf 'r%s x' m | tcsh"),
    *("printf 'r%s x' m | bash-static -x", "printf 'r%s x' m | python3 -v", "python3 -v -c 'x'"),
    *("python3 -W --version -c 'x'", "python3 -v -m timeit -n1 x", "printf x | tclsh --version"),
    *("printf x | ghci -v", "printf x | python3.13t", "printf x | python3.11-dbg -"),
    *("printf x | x86_64-linux-gnu-python3.11 -", "perl5.36-x86_64-linux-gnu -e x"),
    *("perl -aF'/(?{x})/' a b", "printf x | view -es", "printf x | groff -U"),
    *("(cd /dev/fd; sh ./0)", "(cd ../../dev/fd; make -f 0)", "cd /proc/self/fd && awk -f 0"),
    *("ls | python3 0", "ls | perl ./00", "ls | sh 3"),
    *("ln -s /dev/stdin x; ls | sh x", "ln -s /d*/fd x; ls | sh x/0"),
    # texts that run later
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=y git p",
    "GIT_CONFIG_PARAMETERS=\"'alias.p=push'\" git p",
    "export GIT_CONFIG_PARAMETERS=\"'alias.p=push'\" && git p",
    "export GIT_EXTERNAL_DIFF=./x; git diff --ext-diff > $y",
    "GIT_EXTERNAL_DIFF='printf x|sh;:' git diff --ext-diff",
    "GIT_SSH_COMMAND='./x y' git ls-remote ssh://x/y",
    *("GIT_SEQUENCE_EDITOR=./x git rebase -i y", "MAKEFLAGS=--eval=x make y"),
    *("MANPAGER='x|sh' man ls", "SSH_ASKPASS=./x git fetch", "LESSOPEN='|x %s' less a"),
    *("CUSTOM='printf x | env -i sh' y", "PS4='$(printf x)'; set -x; :"),
    *("x='$(printf y)'; echo \"${x@P}\"", "x='a[$(printf y)]'; echo $((x))"),
    *('x="a[\\$(printf y)]"; (( x ))', "x='a[`printf y`]'; echo ${!x}"),
    *("x='a[$'; x+='(printf y)]'; echo $((x))", "x=a\\[\\$\\(printf\\ y\\)\\]; echo $((x))"),
    *("x=$'a[\\x24(printf y)]'; echo $((x))", "x=('a[$(printf y)]'); echo ${b[x]}"),
    "for x in 'a[$(printf y)]'; do echo $((x)); done",
    "pip config edit --editor 'printf x|exec sh;:'",
    "dpkg --pre-invoke='printf x | command bash' --unpack y",
    "gcc -wrapper 'sh,-c,x' -c y.c",
    "unknown --hook 'printf x | /usr/bin/env -i python3'",
    "unknown --hook 'printf x | busybox sh'",
]


def _against_rm(judge: Judge, command: str) -> Verdict:
    rules = {"deny": ["bash(rm *)"], "allow": ["bash"]}
    return judge(
        "bash", {"command": command}, profile="trusting", containment=Containment.CONFINED, **rules
    ).verdict


@pytest.mark.parametrize("command", UNSURE)
def test_what_may_be_a_denied_command_asks_at_least(command: str, judge: Judge) -> None:
    assert _against_rm(judge, command) is not Verdict.ALLOW
    assert judge("bash", {"command": command}, allow=["bash"]).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        *("python3 -V", "python3 --version", "node -v", "perl -v", "php -v", "ruby -v"),
        *("bash --version", "python3 -v script.py", "bash -v script.sh"),
        *("python3.11-dbg script.py", "python3-config --cflags", "GIT_PAGER=cat git log"),
        *("GIT_EDITOR=true git rebase --continue", "GIT_EDITOR=: git commit --amend"),
        *("MAKEFLAGS=-j4 make test", "CFLAGS='-O2 -g' make > $y", "ENV=production make deploy"),
        *("GIT_CONFIG_GLOBAL=/dev/null git status", "cd dev && ls"),
        *("x=1; PS4='+ $LINENO: '; set -x; make > $x", "cost='$5'; echo \"$cost\" > a"),
        *("cd ../proc && ls", "ln -s /dev/null x", "cd src && python3 run.py 0"),
        *("x=$(awk '{print $1}' a); echo \"$x\"", 'for f in *.py; do wc -l "$f"; done'),
        'name="$USER"; echo "${name%x}"',
        "gh issue create --title 'Fix bash (and zsh) completion'",
        *("pytest -k 'parse or python'", "rg '(ba|z)sh |bash' src", "sed -E 's/(bash|sh) x/y/' a"),
        *("git commit -m 'Fix a|sh and (bash) lines'", "make test", "npm test"),
        # wrappers that run nothing unseen
        *("ls | env", "ls | nice", "time -f '%e (%U)' ls", "strace -o x ls", "sudo -l"),
        *("ls | xargs", "sudo -p 'word: ' ls", "strace -e 'trace=!open' ls"),
        *("xargs -d '\\n' cat", "x | chroot / ls"),
    ],
)
def test_everyday_commands_are_not_taken_for_denied_ones(command: str, judge: Judge) -> None:
    assert _against_rm(judge, command) is Verdict.ALLOW


HARMLESS = [
    *("ls", "echo rm", "git rm x", "grep -r 'rm x' .", "cat rm", "ls -l | head"),
    *("bash -c 'echo rm'", "sudo ls", "find . -name rm", 'for i in 1 2; do echo "$i"; done'),
    *("echo $x ${y} `date`", "python x.py", "bash x.sh", "env x=1 ls", "awk '{ print $1 }' x"),
    *("rmdir x", "./rm.sh", "echo 'ls; ' > x"),
]


@pytest.mark.parametrize("command", HARMLESS)
def test_other_commands_are_not_denied(command: str, judge: Judge) -> None:
    decision = judge("bash", {"command": command}, allow=["bash"], deny=["bash(rm *)"])
    assert decision.verdict is not Verdict.DENY


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("git push *", "git push", "deny"),
        ("git push *", "git push origin", "deny"),
        ("git push *", "git -C . push", "deny"),
        ("git push *", "git -c a=b -C . push --force", "deny"),
        ("git push *", "git --no-pager push", "deny"),
        ("git push *", "git commit -m push", "allow"),
        ("git push *", "git log push", "allow"),
        ("git push *", "git pull", "allow"),
        ("git push *", "git $x", "ask"),
        ("git push *", "git p*", "ask"),
        ("git push *", "git p$x y", "ask"),
        ("rm -rf *", "rm -rf x", "deny"),
        ("rm -rf *", "rm -fr x", "deny"),
        ("rm -rf *", "rm -r -f x", "deny"),
        ("rm -rf *", "rm x -rf", "deny"),
        ("rm -rf *", "rm -vrf x", "deny"),
        ("rm -rf *", "rm -v -rf -- x", "deny"),
        ("rm -rf *", "rm -r x", "allow"),
        ("rm -rf *", "rm x", "allow"),
        ("rm -rf *", "rm $x", "ask"),
        ("rm -rf *", "rm -r*", "ask"),
        ("curl * --upload-file *", "curl x --upload-file=y", "deny"),
        ("curl * --upload-file *", "curl --upload-file y x", "deny"),
        ("/bin/rm *", "rm x", "deny"),
        ("r* *", "/bin/rm x", "deny"),
        ("* --force *", "git push --force", "deny"),
        ("git push", "git push", "deny"),
        ("git push", "git push --dry-run", "allow"),
        ("git push", "sudo git push", "deny"),
        ("curl * | sh *", "curl x | sh", "deny"),
        ("curl * | sh *", "curl x | sudo sh", "deny"),
        ("curl * | sh *", "curl x", "allow"),
        ("curl * | sh *", "ls | sh", "allow"),
        ("curl * | bash *", "x=$(curl y); bash -c z", "deny"),
    ],
)
def test_options_do_not_step_between_the_words_of_a_rule(
    rule: str, command: str, verdict: str, judge: Judge
) -> None:
    decision = judge("bash", {"command": command}, allow=["bash"], deny=[f"bash({rule})"])
    assert decision.verdict == verdict


@pytest.mark.parametrize("command", CASES)
def test_a_rule_that_asks_is_met_in_the_same_disguises(command: str, judge: Judge) -> None:
    rules = {"allow": ["bash", "bash(*)"], "ask": ["bash(rm *)"]}
    decision = judge(
        "bash", {"command": command}, profile="trusting", containment=Containment.CONFINED, **rules
    )
    assert decision.verdict is Verdict.ASK
