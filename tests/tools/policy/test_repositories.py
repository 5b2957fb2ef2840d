"""Lines that change repositories and surely run nothing else, told from all others."""

import pytest

from tools.policy.shell.repositories import repository_work
from tools.sandbox.processes.models import RepositoryWork

CONFIGURES = RepositoryWork(configures=True)
LEADS_ON = RepositoryWork(configures=True, leads_on=True)
SWITCHES = RepositoryWork(configures=True, leads_on=True, switches=True)

KNOWN = {
    "git remote add origin https://example.com/a.git": CONFIGURES,
    "git remote add -t main o git@example.com:a.git && git remote -v": CONFIGURES,
    "git remote set-url --push origin 'ssh://example.com/a'": CONFIGURES,
    "git -C sub branch -m old new": CONFIGURES,
    "cd sub && git branch --set-upstream-to=origin/main": CONFIGURES,
    "git config user.name 'A B'; git config --local user.email a@b": CONFIGURES,
    "git config --unset branch.x/y.merge || true": CONFIGURES,
    "git config set pull.rebase true": CONFIGURES,
    "git init -q -b main": CONFIGURES,
    "git checkout -b x origin/x": SWITCHES,
    "git fetch && git switch -q x": SWITCHES,
    "git branch -M main && git push -u origin main": LEADS_ON,
    "git fetch -q origin && git checkout x && echo done": SWITCHES,
    "git worktree add -b x ../x": LEADS_ON,
    "rm -rf clone": RepositoryWork(removes=("./clone",)),
    "cd a && rm -r b /c": RepositoryWork(removes=("./a/b", "/c")),
    "rm -rf a && git clone --depth 1 https://example.com/a.git a": RepositoryWork(
        leads_on=True, removes=("./a",)
    ),
}


@pytest.mark.parametrize("line", KNOWN)
def test_a_line_that_runs_nothing_but_git_is_known_by_what_it_changes(line: str) -> None:
    assert repository_work(line) == KNOWN[line]


UNKNOWN = (
    "ls",
    "git fetch origin",
    "git push origin main",
    "git clone https://example.com/a.git",
    "git status",
    "git remote -v",
    "git branch -a",
    "git config --list",
    # another program, in whatever way
    "npm test; git branch -m x",
    "git branch -m x && ./run",
    "git branch -m x | tee .git/config",
    "git branch -m x > .git/config",
    "git branch -m x < y",
    "git config user.name x <<< y",
    "git config user.name \"$(cat <<'E'\nx\nE\n)\"",
    "for x in a b; do git branch $x; done",
    "git branch -m $(./run)",
    "git branch -m `./run`",
    "X=1 git branch -m x",
    "PATH=. git branch -m x",
    "env git branch -m x",
    "./git branch -m x",
    "(git branch -m x)",
    "git branch -m x &",
    "for x in a; do git branch -m $x; done",
    "git() { ./run; }; git branch -m x",
    "alias git=./run; git branch -m x",
    "source x; git branch -m y",
    "eval git branch -m x",
    # words that are not literal
    "git branch -m *",
    "git branch -m ~/x",
    "rm -rf *",
    "rm -rf $X",
    # options and settings that name programs or files
    "git -c core.fsmonitor=./run branch -m x",
    "git --exec-path=. branch -m x",
    "git --git-dir=x branch -m x",
    "git branch --edit-description",
    "git branch --edit",
    "git branch --format='%(signature)' x",
    "git config core.fsmonitor ./run",
    "git config CORE.HooksPath x",
    "git config set core.hooksPath x",
    "git config include.path x",
    "git config alias.status '!./run'",
    "git config remote.o.url 'ext::sh -c ./run'",
    "git config remote.o.uploadpack ./run",
    "git config branch.x.mergeOptions '-s run'",
    "git config -f .git/hooks/x user.name y",
    "git config --file=.git/hooks/x user.name y",
    "git config --global user.name y",
    "git config --edit",
    "git config user.name a b",
    "git config --get-urlmatch user x",
    "git remote add o 'ext::sh -c ./run'",
    "git remote add -f o https://example.com",
    "git remote update",
    "git remote show o",
    "git remote prune o",
    "git init --template=x",
    "git init --separate-git-dir x",
    "git clone -c core.fsmonitor=./run https://example.com",
    "git clone -u ./run https://example.com",
    "git clone --upload-pack=./run https://example.com",
    "git clone --template=x https://example.com",
    "git clone 'ext::sh -c ./run'",
    "git push --receive-pack=./run o x",
    "git push --exec=./run o x",
    "git checkout -p",
    "git rebase -x ./run main",
    "git submodule foreach ./run",
    "git fetch -u ./run",
    "git difftool",
    "git branch",
    "git",
    # what one writes, the other may run
    "git checkout x && cd sub && git branch y",
    "git checkout x && git branch -a",
    "git checkout remove && git branch x",
    "git checkout x && git push -u origin x",
    "git clone https://example.com a && git checkout x",
)


@pytest.mark.parametrize("line", UNKNOWN)
def test_a_line_that_may_run_anything_else_is_not_known(line: str) -> None:
    assert repository_work(line) is None
