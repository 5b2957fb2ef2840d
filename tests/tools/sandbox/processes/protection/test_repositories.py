"""A day's work with git, and what must not slip in where it may change a repository's settings."""

import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.sandbox.processes.models import Level

pytestmark = [pytest.mark.slow, pytest.mark.boundary]

SETUP = """
git init -qb main . && git config user.name a && git config user.email a@b
git commit -q --allow-empty -m x && git clone -q --bare . origin.git
git remote add origin "$PWD/origin.git" && git push -q origin main main:feature
git clone -q . clone && mkdir -p clone/.vscode && touch clone/.vscode/tasks.json .envrc
"""


def prepare(root: Path, script: str = SETUP) -> None:
    """What a person does in the root."""
    environ = {**os.environ, "PATH": os.defpath}
    subprocess.run(
        ["/bin/bash", "-ec", script], cwd=root, check=True, capture_output=True, env=environ
    )


def settings(root: Path) -> str:
    return (root / ".git" / "config").read_text()


async def run(crib: Any, command: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await crib.call("bash", command=command, **more)
    return found


@pytest.fixture
def mounted(confined: Any) -> Any:
    """The product where mounts hold repositories in place."""
    prepare(confined.root)
    return confined


MOUNTED = pytest.mark.parametrize("confined", [Level.BUBBLEWRAP], indirect=True)


DAY = (
    "git remote add upstream https://example.com/a.git",
    "git remote rename upstream other && git remote remove other",
    *("git checkout -b feature origin/feature", "git checkout main"),
    *("git branch -m feature renamed", "git branch --set-upstream-to=origin/main renamed"),
    *("git push -u origin main", "git config user.name somebody"),
    "git commit -q --allow-empty -m 'a first line\n\nand more'",
    "git worktree add -b second tree && git worktree list",
    "git -C tree commit -q --allow-empty -m y && git rebase -q second",
    *("git worktree remove tree && git branch -D second", "git init"),
    "git init -q new && cd new && git remote add origin https://example.com && rm -rf ../new",
    *("git clone -q . again && rm -rf again", "rm -rf clone origin.git"),
)


async def test_a_day_of_work_with_git_leaves_nothing_half_done(confined: Any) -> None:
    prepare(confined.root)
    for line in DAY:
        found = await run(confined, line)
        assert (found["exit_code"], found["notes"]) == (0, []), (line, found)
        assert "error:" not in found["stderr"], line
    listed = await run(confined, "git config --list --local")
    assert {"user.name=somebody", "branch.renamed.merge=refs/heads/main"} <= {
        *listed["stdout"].splitlines()
    }
    assert sorted(path.name for path in confined.root.iterdir()) == [".envrc", ".git"]


CLOSED = {
    "another program before": "python3 -c 1; git config user.name x",
    "a program that writes": "echo '[core] fsmonitor = evil' >> .git/config",
    "a program of the root": "./git config user.name x",
    "a setting that is run": "git config core.fsmonitor evil",
    "two that hooks follow": "git checkout -q feature; git push -u origin feature",
}


@MOUNTED
async def test_other_lines_find_the_settings_closed(mounted: Any) -> None:
    before = settings(mounted.root)
    (mounted.root / "git").write_text("#!/bin/sh\necho '[core] fsmonitor = evil' >> .git/config\n")
    (mounted.root / "git").chmod(0o755)
    for name, line in CLOSED.items():
        assert "busy" in (found := await run(mounted, line))["stderr"] or found["exit_code"], name
        assert not any("put back" in note for note in found["notes"]), name
    given = await run(mounted, "git config user.name x", env={"GIT_TRACE": "/dev/null"})
    assert given["exit_code"] != 0
    assert settings(mounted.root) == before


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git in a directory of the root where the server finds programs first."""
    fake = tmp_path / "root" / "bin" / "git"
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\ntouch ran\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    return fake


@MOUNTED
@pytest.mark.usefixtures("fake")
async def test_a_git_that_lies_in_the_root_is_not_run_where_settings_are_open(mounted: Any) -> None:
    assert (await run(mounted, "git config user.name x"))["exit_code"] == 0
    assert not (mounted.root / "ran").exists()
    assert "name = x" in settings(mounted.root)
    await run(mounted, "git status")
    assert (mounted.root / "ran").exists()


@MOUNTED
async def test_no_hook_of_the_root_runs_where_settings_are_open(mounted: Any) -> None:
    prepare(mounted.root, "mkdir h; git config core.hooksPath h")
    hook = mounted.root / "h" / "reference-transaction"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    assert (await run(mounted, "git branch -m main other"))["exit_code"] == 0
    assert not (mounted.root / "ran").exists()
    await run(mounted, "git branch x; git status")
    assert (mounted.root / "ran").exists()


@MOUNTED
async def test_hooks_of_commits_keep_no_settings_closed(mounted: Any) -> None:
    prepare(mounted.root, "printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/*")
    found = await run(mounted, "git checkout -b feature origin/feature")
    assert "error" not in found["stderr"]


HOOKED = {
    "a hook": "printf '#!/bin/sh\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "a hook of a remote": "touch origin.git/hooks/update",
    "a setting": "git config core.sshCommand ./evil",
    "a setting elsewhere": "git -C clone config core.fsmonitor ./evil",
}


@MOUNTED
@pytest.mark.parametrize("made", HOOKED.values(), ids=HOOKED)
async def test_what_runs_hooks_finds_the_settings_closed_where_there_is_anything_to_run(
    mounted: Any, made: str
) -> None:
    prepare(mounted.root, made)
    before = settings(mounted.root)
    found = await run(mounted, "git checkout -b feature origin/feature")
    assert "could not write config file" in found["stderr"]
    assert settings(mounted.root) == before
    assert (await run(mounted, "git push -q origin main && rm -rf clone"))["exit_code"] != 0
    assert (await run(mounted, "git branch -u origin/feature feature"))["exit_code"] == 0


LURKING = """
while ! echo '[core] fsmonitor = evil' >> .git/config; do sleep 0.01; done 2> /dev/null
touch got
"""
"""Waits until the settings can be written: a mount goes with the file that it lies on."""


@MOUNTED
async def test_settings_are_closed_while_something_runs_in_the_background(mounted: Any) -> None:
    job = await run(mounted, LURKING, run_in_background=True)
    found = await run(mounted, "git remote add o https://example.com")
    assert found["exit_code"] != 0
    assert "while nothing runs in the background" in found["notes"][0]
    await run(mounted, "sleep 0.5")
    assert not (mounted.root / "got").exists()
    await mounted.call("bash_kill", job_id=job["job_id"])
    assert (await run(mounted, "git remote add p https://example.com"))["exit_code"] == 0


@MOUNTED
async def test_what_starts_while_settings_are_open_waits(mounted: Any) -> None:
    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(run, mounted, f"git remote add o{number} https://example.com")
            group.start_soon(run, mounted, f"(sleep 0.3; kill $$) & {LURKING}")
    assert not (mounted.root / "got").exists()
    assert "evil" not in settings(mounted.root)


@MOUNTED
async def test_what_is_closed_is_explained(mounted: Any) -> None:
    found = await run(mounted, "python3 -c 1; git branch -m x; rm -rf clone")
    assert [note.partition(" while ")[0] for note in found["notes"]] == [
        "The settings of a repository are closed",
        "Repositories are held in place",
    ]


@MOUNTED
async def test_removing_what_other_programs_obey_alone_is_still_prevented(mounted: Any) -> None:
    found = await run(mounted, "rm -rf .git/hooks .envrc clone/.git/hooks")
    assert found["exit_code"] != 0
    assert (mounted.root / ".envrc").exists()
    assert list((mounted.root / ".git" / "hooks").iterdir())


BRANCHES = """
git init -qb main . && git config user.name a && git config user.email a@b
mkdir .claude && echo '{}' > .claude/settings.json && git add . && git commit -qm x
git checkout -qb feature && git rm -q .claude/settings.json && mkdir -p .vscode .husky .claude
echo '{}' | tee .vscode/settings.json .husky/pre-commit .pre-commit-config.yaml > .mcp.json
git add . && git commit -qm y && git checkout -qb evil && echo evil > .vscode/settings.json
echo evil > .envrc && git add . && git commit -qm z
git checkout -q feature && rm -rf .claude
"""


def obeyed(root: Path) -> set[str]:
    folders = (".vscode", ".husky", ".claude")
    found = [path for name in folders for path in (root / name).rglob("*")]
    return {str(path.relative_to(root)) for path in (*found, *root.glob(".*")) if path.is_file()}


async def test_what_another_branch_lacks_comes_back_with_its_own_and_not_changed(
    confined: Any,
) -> None:
    prepare(
        confined.root,
        BRANCHES + "git checkout -q --orphan bare; "
        "git rm -qrf .; git commit -q --allow-empty -m e; git checkout -q feature",
    )
    before = obeyed(confined.root)
    for _ in range(2):
        assert (await run(confined, "git checkout bare"))["notes"] == []
        assert obeyed(confined.root) == set()
        assert (await run(confined, "git checkout feature"))["notes"] == []
        assert obeyed(confined.root) == before
    assert (await run(confined, "git checkout bare"))["notes"] == []
    found = await run(confined, "mkdir .vscode && echo evil > .vscode/settings.json")
    assert "taken away: .vscode/settings.json" in found["notes"][0]
    assert obeyed(confined.root) == set()


async def test_another_branch_brings_nothing_that_was_not_there_and_lifts_no_bans(
    confined: Any,
) -> None:
    prepare(confined.root, BRANCHES)
    found = await run(confined, "git checkout evil")
    assert {note.partition(" (")[0] for note in found["notes"]} == {
        "put back: .vscode/settings.json",
        "taken away: .envrc",
    }
    assert (confined.root / ".vscode" / "settings.json").read_text() == "{}\n"
    prepare(confined.root, "git checkout -qf main")
    await run(confined, "git checkout feature")
    assert (confined.root / ".claude" / "settings.json").exists()


async def test_no_settings_come_into_force_by_what_a_file_tool_adds_to_their_directory(
    confined: Any,
) -> None:
    prepare(confined.root, "git init -q .")
    await run(confined, "mkdir x && printf '[core]\\n\\tfsmonitor = false\\n' > x/config")
    await confined.call("write_file", file_path="x/objects/y", content="")
    error, _ = await confined.failure("write_file", file_path="x/refs/y", content="")
    assert error == "permission_denied"
    await run(confined, "mkdir -p x/refs && echo ../x > .git/commondir")
    read = ("git", "config", "core.fsmonitor")
    asked = await anyio.run_process(read, cwd=confined.root, check=False)
    assert asked.stdout == b""
