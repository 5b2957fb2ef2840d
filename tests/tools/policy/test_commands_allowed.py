"""Rules that allow a command allow nothing else."""

from collections.abc import Callable

import pytest

from tools.policy.calls import Decision, Verdict

Judge = Callable[..., Decision]
ALLOWED = [
    ("git status", "git status"),
    ("git status", "  git   status  "),
    ("git status", "'git' \"status\""),
    ("git status", "git status # only that"),
    ("git status", "git status 2>&1"),
    ("git status", "git status > /dev/null 2>&1"),
    ("git status", "git status; git status && git status"),
    ("git status *", "git status"),
    ("git status *", "git status -s src"),
    ("git status *", "git status 'a b' c"),
    ("git * --stat", "git diff --stat"),
    ("git * --stat", "git diff a b --stat"),
    ("git * --stat", "git --stat"),
    ("* --version", "python --version"),
    ("*", "ls"),
    ("*", "ls -l | head"),
    ("npm run *", "npm run build"),
    ("npm run test:*", "npm run test:unit"),
    ("pytest tests/*", "pytest tests/a.py"),
    ("pytest tests/* *", "pytest tests/a.py -q"),
    ("ls *", "ls *.py"),
    ("ls *.py", "ls *.py"),
    ("ls *.py", "ls a.py"),
    ("ls \\*.py", "ls '*.py'"),
    ("ls '*.py'", "ls \\*.py"),
    ("ls ?.py", "ls ?.py"),
    ("echo 'a b'", "echo a\\ b"),
    ('echo "a b"', "echo 'a b'"),
    ("echo a\\ b", 'echo "a b"'),
    ("grep (x) *", "grep '(x)' y"),
    ("git status && ls", "git status && ls"),
    ("curl * | head", "curl x y | head"),
    ("sudo apt update", "sudo apt update"),
    ("sudo apt *", "sudo apt install x"),
    ("timeout 5 *", "timeout 5 timeout 5"),
    ("sh -c ls", "sh -c ls"),
    ("python x.py *", "python x.py -c"),
    ("python -c *", "python -c 'x'"),
    ("find . -name *", "find . -name '*.py' -type f"),
    ("ssh host *", "ssh host ls"),
    ("git log --format=%H", "git log --format=%H"),
    ("./run.sh *", "./run.sh a"),
    ("time ls", "time ls"),
    ("cat a\\|b", "cat 'a|b'"),
    # operands that run nothing
    ("printf *", "printf '%s[$(x)]' y"),
    ("test *", "test -f a"),
    ("git *", "git switch -c x"),
    ("tar *", "tar -czf A.tar.gz B"),
    ("tar *", "tar xf F.tar"),
    ("sort *", "sort --reverse a"),
    ("rg *", "rg --pretty a"),
    ("git *", "git push -u origin main"),
    ("git *", "git clean -xdn"),
    ("git *", "git grep -n run"),
    ("git *", "git submodule update --init"),
    ("git *", "git rebase -i main"),
    ("git *", "git clone https://example.com/a b"),
    ("make *", "make CC=gcc -j2 test"),
    ("npm *", "npm run build"),
    ("uv *", "uv pip install x"),
    ("sed *", "sed -n '1,5p;$p' a"),
    ("sed *", "sed -i.bak -E 's/(a|b)/x\\1/gI; /^#/d' a"),
    ("sed *", "sed -e 's|a/b|c|' -e y/ab/cd/ a"),
    ("sed *", "sed '/e/!d' a"),
    ("sed *", "sed ':a;N;$!ba;s/\\n/ /g' a"),
    ("sed *", "sed --expression=s/e/e/ e"),
    ("sed *", "sed '2i e' a"),
    ("sed *", "sed '/a/{n;s/b/c/;}' a"),
    ("sed *", "sed p a/*.py"),
    ("sed *", "sed 's/[0-9]*/x/; s/^[[:space:]]*//' a"),
    ("sed *", "sed 's/[^]]*//; s/[^[]/[x]/' a"),
    ("sed *", "sed 's/[^/]*$//' a"),
    ("sed *", "sed 's,[^,]*$,,' a"),
    ("sed *", "sed '/^[ \\t]*#/d' a"),
    ("sed *", "sed 's|[^/]*/||' a"),
    ("sort *", "sort -- *"),
    ("git *", "git add *.py"),
    ("git *", "git rebase -Xours -s ort main"),
    ("git *", "git cherry-pick -x --strategy-option=ours a"),
    ("git *", "git bisect start"),
    ("awk *", "awk -F , -v x=1 '{ print $1 }' *.csv"),
    ("printf *", "printf '%5d%%\\n' *"),
    ("test *", "test -v x"),
    ("git -C ** log *", "git -C a log -n 3"),
]


@pytest.mark.parametrize(("rule", "command"), ALLOWED)
def test_a_rule_allows_the_command_that_it_names(rule: str, command: str, judge: Judge) -> None:
    decision = judge("bash", {"command": command}, allow=[f"bash({rule})"])
    assert decision.verdict is Verdict.ALLOW, decision
    assert (decision.rule, decision.source) == (f"bash({rule})", "settings")


NOT_ALLOWED = [
    # more commands behind the first
    ("git status *", "git status; rm x"),
    ("git status *", "git status;rm x"),
    ("git status *", "git status && rm x"),
    ("git status *", "git status || rm x"),
    ("git status *", "git status | sh"),
    ("git status *", "git status |& sh"),
    ("git status *", "git status & rm x"),
    ("git status *", "git status &"),
    ("git status *", "git status\nrm x"),
    ("git status *", "git status\r\nrm x"),
    ("git status *", "git status # x\nrm x"),
    ("git status *", "git status '\n'\nrm x"),
    ("git status *", "git status \\\n; rm x"),
    # expansions
    ("git status *", "git status $(rm x)"),
    ("git status *", "git status `rm x`"),
    ("git status *", 'git status "$(rm x)"'),
    ("git status *", "git status <(rm x)"),
    ("git status *", "git status >(rm x)"),
    ("git status *", "git status ${x:-$(rm x)}"),
    ("git status *", "git status $x"),
    ("git status *", "git status $'a'"),
    ("git status *", "git status {a,b}"),
    ("git status *", "git status ~"),
    ("git status *", "git status $((1))"),
    # redirections
    ("git status *", "git status > x"),
    ("git status *", "git status >> ~/.bashrc"),
    ("git status *", "git status &> x"),
    ("git status *", "git status >| x"),
    ("git status *", "git status 2> x"),
    ("git status *", "git status < x"),
    ("git status *", "git status > /dev/null/../../x"),
    ("git status *", "> x git status"),
    # assignments
    ("git status *", "GIT_PAGER=x git status"),
    ("git status *", "PATH=. git status"),
    ("git status *", "x=1"),
    ("git status *", "export PATH=.; git status"),
    # other commands
    ("git status *", "git stash"),
    ("git status *", "git statusx"),
    ("git status *", "git -c core.pager=x status"),
    ("git status *", "./git status"),
    ("git status *", "/opt/git status"),
    ("git status *", "GIT status"),
    ("git status *", "git 'status x'"),
    ("git status *", "'git status'"),
    ("git status *", "git"),
    ("git status *", "sudo git status"),
    ("git status *", "env git status"),
    ("git status *", "command git status"),
    ("git status *", "time git status"),
    ("git status *", "bash -c 'git status'"),
    ("git status *", "git status() { rm x; }"),
    ("git status *", "coproc git status"),
    # exact rules
    ("git status", "git status -s"),
    ("git status", "git"),
    ("git status", "git status ''"),
    ("npm run *", "npm runx y"),
    ("npm run test:*", "npm run test:a b"),
    ("pytest tests/*", "pytest tests/a -p x"),
    ("ls *.py", "ls *.p*"),
    ("ls *.py", "ls a*.py"),
    ("ls \\*.py", "ls *.py"),
    ("ls '*.py'", "ls *.py"),
    ("ls a?c", "ls abc"),
    ("cat src/x", "cat src/*"),
    # wrappers
    ("*", "sudo ls"),
    ("*", "env ls"),
    ("*", "xargs ls"),
    ("*", "find . -exec ls {} +"),
    ("*", "bash -c ls"),
    ("*", "sh"),
    ("*", "eval ls"),
    ("*", "python -c x"),
    ("*", "ssh host ls"),
    ("* ls", "sudo ls"),
    ("s* ls", "sudo ls"),
    ("timeout *", "timeout 5 rm x"),
    ("sudo *", "sudo rm x"),
    ("xargs *", "xargs rm"),
    ("find *", "find . -exec rm {} +"),
    ("find . *", "find . -name x -exec sh -c x +"),
    ("env *", "env LD_PRELOAD=x ls"),
    ("bash *", "bash -c 'rm x'"),
    ("bash *", "bash -s"),
    ("sh -c ls *", "sh -c 'ls; rm x'"),
    ("eval *", "eval rm x"),
    ("python *", "python -c x"),
    ("python3 *", "python3 -Ic x"),
    ("awk *", "awk 'BEGIN { system(1) }'"),
    ("perl *", "perl -e x"),
    ("node *", "node --eval=x"),
    ("nice *", "nice -n 5 sudo rm x"),
    ("time *", "time rm x"),
    ("exec *", "exec rm x"),
    ("command *", "command rm x"),
    # characters that hide or end something
    ("git status *", "git status \u202e x"),
    ("git status *", "git status \u200b"),
    ("git status *", "git status\u00a0x"),
    ("git status *", "git status \x1b[A"),
    ("git status *", "git status \0 x"),
    ("git status *", "git status \x0c x"),
    ("git status *", "git status \x08"),
    ("git status *", "git status \ud800"),
    ("git status *", "git status " + "x" * 20_000),
    # what cannot be parsed
    ("git status *", "git status '"),
    ("git status *", 'git status "'),
    ("git status *", "git status \\"),
    ("git status *", "git status )"),
    ("git status *", "git status ;;"),
    ("git status *", ""),
    ("git status *", "   "),
    ("git status *", "# git status"),
    # lines of several commands
    ("git status && ls", "git status; ls"),
    ("git status && ls", "git status"),
    ("git status && ls", "ls && git status"),
    ("git status && ls", "git status && ls && ls"),
    ("git status && ls", "git status && ls -l"),
    ("curl * | head", "curl x | head -c 5"),
    ("ls | sudo *", "ls | sudo rm"),
    # operands that bash evaluates, from single quotes too
    ("printf *", "printf -v 'a[$(rm x)]' y"),
    ("test *", "test -v 'a[$(rm x)]'"),
    ("[ *", "[ -v 'a[`rm x`]' ]"),
    ("read *", "read 'a[$(rm x)]'"),
    ("command *", "command printf -v 'a[$(rm x)]' y"),
    # variables that say what the next command is
    ("printf *", "printf -v PATH %s . && printf x"),
    ("unset *", "unset PATH"),
    # options that name a program
    ("sort *", "sort --compress-prog='rm x' a"),
    ("split *", "split --filter='rm x' a"),
    ("tar *", "tar cf a.tar --checkpoint=1 --checkpoint-action='exec=rm x' b"),
    ("tar *", "tar cIf 'rm x' a.tar b"),
    ("tar *", "tar -cf a.tar -I 'rm x' b"),
    ("rg *", "rg --pre ./x a"),
    ("git *", "git -c alias.x='!rm x' x"),
    ("zip *", "zip -T -TT 'rm x' a.zip b"),
    ("git *", "git grep -Oless x"),
    ("git *", "git grep --open-files-in-pager=./x y"),
    ("git *", "git clone -u ./x a b"),
    ("git *", "git clone -ccore.fsmonitor=x a b"),
    ("git *", "git clone --config core.fsmonitor=x a b"),
    ("git *", "git clone --template=x a b"),
    ("git *", "git filter-branch --tree-filter 'rm x' HEAD"),
    ("make *", "make --eval 'x:;rm x'"),
    ("make *", "make -E 'x:;rm x'"),
    ("make *", "make 'SHELL=rm x'"),
    ("go *", "go test -exec ./x"),
    ("npm *", "npm exec -c 'rm x'"),
    ("npm *", "npm x rimraf y"),
    ("yarn *", "yarn dlx x"),
    ("uv *", "uv tool run x"),
    ("uv *", "uv run --unknown ls rm x"),
    ("sed *", "sed e a"),
    ("sed *", "sed '1e rm x' a"),
    ("sed *", "sed s/a/b/e a"),
    ("sed *", "sed 's/a/b/;s/b/c/ge' a"),
    ("sed *", "sed -e p -e 's,a,b,pe' a"),
    ("sed *", "sed -ne '$e' a"),
    ("sed *", "sed --expression=e a"),
    ("sed *", "sed '/a/{e rm x\n}' a"),
    ("sed *", "sed 's/[/]/g;s/e;p#/Q/p' a"),
    ("sed *", "sed 's,[^,],g;s,e;p#,Q,p' a"),
    ("sed *", "sed 's/[]/]/g;s/e/Q/' a"),
    ("sed *", "sed 's/[^]/]/g;s/e;/Q/' a"),
    ("sed *", "sed 's/[[:alpha:]/]/g;e#/Q/' a"),
    ("sed *", "sed '/[/]/e;#/p' a"),
    ("sed *", "sed '\\,[/],e' a"),
    ("sed *", "sed 's/a\nb/c/' a"),
    ("sed *", "sed 'a\ne' a"),
    ("sed *", "sed 's/[a\\]/]/e/' a"),
    ("sed *", "sed -f x a"),
    ("sed *", "sed --file=x a"),
    ("sed *", "sed '1!e' a"),
    ("sed *", "sed 's/a/b/w x' a"),
    # variables that printf counts into, and subscripts that test calculates
    ("printf *", "printf 'a%n' PATH"),
    ("printf *", "printf '%-5hhn' PATH"),
    ("test *", "for x in 'a[$(rm x)]'; do test -v 'b[x]'; done"),
    ("[ *", "for x in 'a[$(rm x)]'; do [ -v 'b[$x]' ]; done"),
    # clusters and abbreviations of options that name a program
    ("git *", "git rebase -fx 'rm x' HEAD"),
    ("git *", "git rebase -fx'rm x' HEAD"),
    ("git *", "git rebase --ex 'rm x' HEAD"),
    ("git *", "git rebase -s x/y main"),
    ("git *", "git cherry-pick --strateg=x-o/y a"),
    ("git *", "git pull --rebase -qsx/y"),
    ("git *", "git bisect view git/x"),
    ("git *", "git clone -qu ./x a b"),
    ("git *", "git clone -qccore.fsmonitor=x a b"),
    ("git *", "git clone --te=x a b"),
    ("git *", "git init --t=x"),
    ("uv *", "uv run --env-file x pytest"),
    ("uv run *", "uv run --python ./x -m pytest"),
    ("uv run *", "uv run -qp ./x -m pytest"),
    ("uv pip install *", "uv pip install --python ./x y"),
    ("pip install *", "pip install --python ./x y"),
    ("go build *", "go build -ldflags='-extld=./x -linkmode=external'"),
    ("npm test *", "npm test --script-sh=./x"),
    ("cargo build *", "cargo build --config 'build.rustc-wrapper=\"./x\"'"),
    ("awk *", "awk -f x"),
    ("awk *", 'awk \'BEGIN { f = "sys" "tem"; @f(1) }\''),
    ("awk *", "awk 'BEGIN { print 1 \\\n> 2 }'"),
    # files that are called like options
    ("sed *", "sed p *"),
    ("tar *", "tar cf a.tar *.txt"),
    ("tar *", "tar c*"),
    ("sort *", "sort ?"),
    ("git *", "git rebase *"),
    ("awk *", "awk -F , *"),
    ("printf *", "printf * PATH"),
    ("[ *", "[ -v *x* ]"),
    ("timeout *", "timeout * ls"),
    # wildcards stand for no options
    ("python *.py *", "python -Wx.py -m timeit 'rm x'"),
    ("find **", "find -delete"),
    ("find ** -name **", "find -delete -name x"),
]


@pytest.mark.parametrize(("rule", "command"), NOT_ALLOWED)
def test_a_rule_allows_no_other_command(rule: str, command: str, judge: Judge) -> None:
    assert judge("bash", {"command": command}, allow=[f"bash({rule})"]).verdict is Verdict.ASK
    assert judge("bash", {"command": command}, grants=(f"bash({rule})",)).verdict is Verdict.ASK


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        (["timeout *", "pytest *"], "timeout 5 pytest -q"),
        (["find *", "grep *"], "find . -name x -exec grep -n y {} +"),
        (["xargs *", "wc *"], "git ls-files | xargs wc -l"),
        (["sh -c *", "ls *"], "sh -c 'ls -l; ls'"),
        (["bash *", "ls *", "head *"], "bash -c 'ls | head'"),
        (["nice *", "timeout *", "make *"], "nice -n 5 timeout 9 make x"),
        (["eval *", "ls"], "eval ls"),
        (["uv run *", "pytest *"], "uv run --with x pytest -q"),
        (["git *", "make *"], "git bisect run make test"),
        (["git rebase *", "make *"], "git rebase -x 'make test' main"),
        (["valgrind *", "./a *"], "valgrind --leak-check=full ./a b"),
        (["xargs *", "wc *"], "git ls-files | xargs -rI F wc -l F"),
    ],
)
def test_what_a_wrapper_runs_may_be_allowed_by_a_rule_of_its_own(
    rules: list[str], command: str, judge: Judge
) -> None:
    allow = [f"bash({rule})" for rule in [*rules, "git ls-files"]]
    assert judge("bash", {"command": command}, allow=allow).verdict is Verdict.ALLOW
    for left_out in rules:
        fewer = [rule for rule in allow if rule != f"bash({left_out})"]
        assert judge("bash", {"command": command}, allow=fewer).verdict is Verdict.ASK


@pytest.mark.parametrize(
    "command",
    [
        *("xargs --repl=wc wc", "xargs -rIwc wc", "xargs -rI wc wc", "xargs -I x -Iwc wc"),
        *("xargs --replace ./x wc", "xargs --max-lines ./x wc", "xargs -in ./x wc"),
        *("xargs --arg wc ./x", "xargs -a * wc"),
    ],
)
def test_options_in_unusual_forms_hide_nothing_that_a_wrapper_runs(
    command: str, judge: Judge
) -> None:
    allow = ["bash(xargs *)", "bash(wc *)"]
    assert judge("bash", {"command": command}, allow=allow).verdict is Verdict.ASK


def test_a_rule_about_commands_allows_no_variables_that_it_does_not_name(judge: Judge) -> None:
    call = {"command": "git status", "env": {"GIT_PAGER": "rm x"}}
    assert judge("bash", call, allow=["bash(git status)"]).verdict is Verdict.ASK
    assert judge("bash", call, grants=("bash(git status)",)).verdict is Verdict.ASK
    assert judge("bash", {**call, "env": {}}, allow=["bash(git status)"]).verdict is Verdict.ALLOW
    assert judge("bash", call, allow=["bash"]).verdict is Verdict.ALLOW
    named = ["bash(GIT_PAGER='rm x' git status)"]
    assert judge("bash", call, allow=named).verdict is Verdict.ALLOW
    assert judge("bash", {**call, "command": "pwd"}, allow=named).verdict is Verdict.ASK
    for env, verdict in (({"CI": "1"}, Verdict.ALLOW), ({"CI": "1", "X": "1"}, Verdict.ASK)):
        assert judge("bash", {**call, "env": env}, allow=["bash(git *)"]).verdict is verdict


def test_a_rule_without_a_command_allows_every_line(judge: Judge) -> None:
    for _, command in NOT_ALLOWED:
        assert judge("bash", {"command": command}, allow=["bash"]).verdict is Verdict.ALLOW


def test_each_command_of_a_line_is_told(judge: Judge) -> None:
    rules = {"allow": ["bash(git status)"], "ask": ["bash(ls *)"], "deny": ["bash(rm *)"]}
    decision = judge("bash", {"command": "git status && ls | sort; rm x"}, **rules)
    assert decision.verdict is Verdict.DENY
    assert decision.parts == (
        "allow: git status (bash(git status), settings)",
        "ask: ls (bash(ls *), settings)",
        "ask: sort (scope:system+effect:execute, profile standard)",
        "deny: rm x (bash(rm *), settings)",
    )
    assert decision.reason == "The rule 'bash(rm *)' denies 'rm x'."


def test_a_line_that_is_not_plain_says_why_it_asks(judge: Judge) -> None:
    decision = judge("bash", {"command": "git status $x"}, allow=["bash(git status *)"])
    assert decision.verdict is Verdict.ASK
    assert "it expands something ($)" in decision.reason
