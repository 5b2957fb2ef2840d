"""Lines that delete much ask, also where programs run without a question."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tools.core.spec import ToolSpec
from tools.policy.calls import Containment, Decision, Verdict
from tools.policy.policy import Policy
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.size_limits import extent_at

Judge = Callable[..., Decision]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project: 30 files in src, 3 in few, a repository in vendor, a bare one in mirror."""
    root = tmp_path / "root"
    for number in range(30):
        _write(root / f"src/part{number % 3}/{number}.py")
        _write(root / f"node_modules/x/{number}.js")
        _write(root / f"flat/{number}.txt")
    for number in range(3):
        _write(root / f"few/{number}.py")
    for name in ("HEAD", "objects/x", "refs/x"):
        _write(root / "vendor/lib/.git" / name)
        _write(root / "mirror" / name)
    for number in range(30):
        _write(tmp_path / f"outside/{number}")
    (root / "link").symlink_to(tmp_path / "outside")
    return root


def _write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


@pytest.fixture
def judged(root: Path, crib: Mapping[str, ToolSpec]) -> Judge:
    """Judges a line of a shell that is confined and has no network."""

    def run(
        line: str, profile: str = "standard", cwd: str = ".", grants: Any = (), **rules: Any
    ) -> Decision:
        look = partial(extent_at, Sandbox(root))
        policy = Policy(profile, find=crib.get, root=root, look=look, **rules)
        call = {"command": line, "cwd": cwd}
        return policy.judge(crib["bash"], call, containment=Containment.OFFLINE, grants=grants)

    return run


MUCH = [
    ("rm -rf src", "It deletes 30 files (src)."),
    ("rm -r -f ./src few", "It deletes 33 files (./src, few)."),
    ("rm --recursive src/", "It deletes 30 files (src/)."),
    ("/bin/rm -fR src", "It deletes 30 files (src)."),
    ("rm -rf s*", "It deletes 30 files (s*)."),
    ("rm flat/*.txt", "It deletes 30 files (flat/*.txt)."),
    ("rm -rf .", "It deletes a git repository (.). It deletes 100 files (.)."),
    ("rm -rf vendor", "It deletes a git repository (vendor)."),
    ("rm -rf vendor/lib/.git*", "It deletes a git repository (vendor/lib/.git*)."),
    ("rm -rf mirror", "It deletes a git repository (mirror)."),
    ("cd src && rm -rf part0", "It deletes what cannot be determined from the line."),
    ('rm -rf "$x"', "It deletes what cannot be determined from the line."),
    ("find . -name '*.py' | xargs rm", "It deletes what cannot be determined from the line."),
    ("find . -exec rm {} +", "It deletes what cannot be determined from the line."),
    ("find . -name '*.py' -delete", "It deletes all that find finds."),
    ("ls && sh -c 'rm -rf src'", "It deletes 30 files (src)."),
    ("PS4='$(rm -rf src)'; set -x; :", "It deletes 30 files (src)."),
    ("x='a[$(rm -rf src)]'; echo $((x))", "It deletes 30 files (src)."),
    ("for x in 'a[$(rm -rf src)]'; do echo $((x)); done", "It deletes 30 files (src)."),
    ("for x in 1; do timeout 5 rm -rf src; done", "It deletes 30 files (src)."),
    ("git clean -fdx", "It deletes all files that git does not track."),
    ("git -C few clean --force -d", "It deletes all files that git does not track."),
    ("git reset --hard HEAD~1", "It discards all changes that are not committed."),
    ("git checkout -- .", "It discards all changes that are not committed."),
    ("git checkout HEAD -- .", "It discards all changes that are not committed."),
    ("git checkout -f main", "It discards all changes that are not committed."),
    ("git restore .", "It discards all changes that are not committed."),
    ("rm --rec src", "It deletes 30 files (src)."),
    ("rm --r src", "It deletes 30 files (src)."),
    ("git reset --har", "It discards all changes that are not committed."),
    ("git reset --ha HEAD~1", "It discards all changes that are not committed."),
    ("git clean -d --forc", "It deletes all files that git does not track."),
    ("git clean -f -- -n", "It deletes all files that git does not track."),
    ("git checkout --forc", "It discards all changes that are not committed."),
    ("git switch --disc main", "It discards all changes that are not committed."),
    ("git checkout-index -f -a", "It discards all changes that are not committed."),
    ("git restore -- src", "It discards all changes that are not committed."),
    ("git restore --source HEAD :/", "It discards all changes that are not committed."),
    ("git restore '*.py'", "It discards all changes that are not committed."),
    ("git restore src few", "It discards all changes that are not committed."),
    ("git checkout HEAD~1 -- src", "It discards all changes that are not committed."),
    ("git restore --staged --worktree .", "It discards all changes that are not committed."),
    ("echo 'rm --rec src' | sh", "It deletes what cannot be determined from the line."),
    ("echo 'git reset --har' | sh", "It deletes what cannot be determined from the line."),
    (
        "GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='reset --hard' git x",
        "It deletes what cannot be determined from the line.",
    ),
    ("rsync -a --delete-after few/ src/", "It deletes what rsync does not find at its source."),
]


@pytest.mark.parametrize(("line", "reason"), MUCH)
def test_a_line_that_deletes_much_asks_and_says_what(line: str, reason: str, judged: Judge) -> None:
    decision = judged(line)
    assert (decision.verdict, decision.reason) == (Verdict.ASK, reason)
    assert decision.source == "profile standard"
    assert judged(line, profile="cautious").verdict is Verdict.ASK
    assert judged(line, profile="trusting").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    ("line", "reasons"),
    [
        ("git reset --hard; rm -rf vendor/lib/.git", ("discards all", "repository (vendor")),
        ("git reset --hard && rm -rf src", ("discards all", "30 files (src)")),
        ("(git clean -f; git reset --hard)", ("does not track", "discards all")),
        ("rm -rf vendor src", ("repository (vendor)", "33 files (vendor, src)")),
        ('rm -rf vendor "$x"', ("repository (vendor)", "cannot be determined")),
        ("if rm -rf src; then find . -delete; fi", ("30 files (src)", "all that find finds")),
    ],
)
def test_the_question_names_all_that_a_line_deletes(
    line: str, reasons: tuple[str, ...], judged: Judge
) -> None:
    decision = judged(line)
    assert decision.verdict is Verdict.ASK
    assert all(reason in decision.reason for reason in reasons), decision.reason


LITTLE = [
    *("git clean -f --dry", "git restore --st src", "git checkout -b src"),
    *("git restore -- few/0.py", "git restore few", "git reset --soft HEAD~1", "rm -rf few"),
    *("rm -rf nothing", "rm -rf few nothing few/0.py", "rm -rf node_modules"),
    *("rm -rf src/node_modules/ build dist", "cd src && rm -rf build", "rm few/*.py"),
    *("rm few/0.py", 'rm "$x"', "rm src", "rm -rf few*", "rm -rf link"),
    *("rm -rf link/", "rm -rf ../outside"),
    "find . -name '*.py' -print0 -maxdepth 1 -type d -ls",
    *("git clean -nfd", "git clean -f --dry-run", "git reset HEAD", "git checkout -b feature"),
    *("git checkout main -- few/0.py", "git -C . checkout main", "git restore --staged ."),
    *("rsync -a few/ src/", "echo rm -rf src"),
]


@pytest.mark.parametrize("line", LITTLE)
def test_a_line_that_deletes_little_or_what_is_made_again_asks_nothing(
    line: str, judged: Judge
) -> None:
    assert judged(line).verdict is Verdict.ALLOW


def test_a_line_starts_in_its_own_directory(judged: Judge) -> None:
    assert judged("rm -rf src", cwd="few").verdict is Verdict.ALLOW
    assert judged("rm -rf ../src", cwd="few").reason == "It deletes 30 files (../src)."
    assert judged("rm -rf ../..", cwd="few").verdict is Verdict.ASK  # the root is in it


def test_more_files_than_are_looked_at_are_many(judged: Judge, root: Path) -> None:
    for number in range(1_100):
        _write(root / f"many/{number // 100}/{number}")
    decision = judged("rm -rf many")
    assert decision.verdict is Verdict.ASK
    assert decision.reason.startswith("It deletes more than 9")


def test_a_rule_that_allows_the_command_has_decided(judged: Judge) -> None:
    for rule in ("bash(rm *)", "bash(rm -rf src)", "bash", "scope:system"):
        assert judged("rm -rf src", allow=[rule]).verdict is Verdict.ALLOW
    assert judged("rm -rf src", grants=("bash(rm -rf src)",)).verdict is Verdict.ALLOW
    assert judged("rm -rf src && ls", allow=["bash(rm *)"]).verdict is Verdict.ALLOW
    assert judged("rm -rf src && git clean -f", allow=["bash(rm *)"]).verdict is Verdict.ASK
    assert judged("rm -rf src", deny=["bash(rm *)"]).verdict is Verdict.DENY
    assert judged("rm -rf src", profile="read-only").verdict is Verdict.DENY


def test_without_a_way_to_look_every_recursive_deletion_asks(crib: Mapping[str, ToolSpec]) -> None:
    call = {"command": "rm -rf few"}
    decision = Policy().judge(crib["bash"], call, containment=Containment.OFFLINE)
    assert decision.verdict is Verdict.ASK
