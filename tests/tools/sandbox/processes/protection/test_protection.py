"""What programs do to places that other programs obey: prevented, or undone when they end."""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from tools.core.errors import UnavailableError
from tools.sandbox.files.openat import HeldRoot
from tools.sandbox.processes.protection.protection import Occupancy, Protection
from tools.sandbox.processes.protection.scan import MOST_BYTES

pytestmark = pytest.mark.boundary

ATTACKS = {
    "a changed hook": "echo evil >> .git/hooks/pre-commit",
    "a hook that may be run now": "chmod 755 .git/hooks/pre-commit",
    "a removed hook": "rm .git/hooks/pre-commit",
    "a new hook": "echo evil > .git/hooks/post-commit",
    "a hook of another name": "mv .git/hooks/pre-commit .git/hooks/pre-push",
    "hooks that are a link": "mkdir h; echo evil > h/pre-push; rm -r .git/hooks; "
    "ln -s ../h .git/hooks",
    "a monitor of files": "git config core.fsmonitor ./evil",
    "a directory of hooks": "git config core.hooksPath .",
    "a filter": "git config filter.x.smudge ./evil",
    "a remote that is run": "git remote add o 'ext::sh -c evil'",
    "a setting beside": "printf '[core]\\nfsmonitor = evil\\n' > .git/config.worktree",
    "another repository in its place": "mv .git g; mkdir -p .git/hooks; cp -r g/HEAD g/objects "
    "g/refs .git; printf '[core]\\nfsmonitor = evil\\n' > .git/config",
    "a repository within": "git init -q sub; echo evil > sub/.git/hooks/pre-commit",
    "settings of a repository within": "git init -q sub; git -C sub config core.fsmonitor evil",
    "a bare repository": "git init -q --bare bare; git -C bare config core.fsmonitor evil",
    "a repository of another name": "git init -q sub; mv sub/.git sub/git; echo 'gitdir: git' > "
    "sub/.git; printf '[core]\\nfsmonitor = evil\\n' > sub/git/config",
    "a module's hook": "mkdir -p .git/modules/a/b; git init -q --bare .git/modules/a/b; "
    "echo evil > .git/modules/a/b/hooks/pre-commit",
    "a directory that others share": "git init -q sub; cd sub; mkdir a; mv .git/{objects,refs} a; "
    "echo ../a > .git/commondir; printf '[core]\\nfsmonitor = evil\\n' > a/config",
    "a repository within Git's own": "mkdir -p .git/x/hooks .git/x/objects .git/x/refs sub; "
    "cp .git/HEAD .git/x; echo 'gitdir: ../.git/x' > sub/.git; echo evil > .git/x/hooks/pre-push",
    "the looks of a repository": "mkdir objects refs sub; touch HEAD; echo evil > sub/.mcp.json",
    "a repository among packages": "git init -q node_modules/a; "
    "git -C node_modules/a config core.fsmonitor evil",
    "a package that is none": "mkdir -p node_modules/a/.vscode; "
    "echo evil > node_modules/a/.vscode/tasks.json; mv node_modules/a app",
    "a new server": "mkdir sub; echo '{}' > sub/.mcp.json",
    "a changed server": "echo evil > .mcp.json",
    "a removed server": "rm .mcp.json",
    "a server that is a link": "ln -sf evil .mcp.json",
    "a task": "mkdir -p sub/.vscode; echo evil > sub/.vscode/tasks.json",
    "a setting of an agent": "echo evil > .claude/settings.json",
    "settings that are a link": "rm -r .claude; ln -s evil .claude",
    "a policy for the next server": "mkdir -p .config/toolcrib; echo evil > "
    ".config/toolcrib/config.toml",
    "a policy behind a link": "mkdir -p sub/toolcrib; echo evil > sub/toolcrib/config.toml; "
    "ln -s sub .config",
    "a policy behind two links": "mkdir y x; echo > y/config.toml; ln -s ../y x/toolcrib; "
    "ln -s x .config",
    "settings elsewhere": "mkdir -p a/b/c/d/.claude; echo evil > a/b/c/d/.claude/settings.json",
    "another spelling": "echo evil > .MCP.json",
    "a shell's start": "echo evil > .bashrc",
    "a deep directory": "mkdir -p .vscode/$(printf 'd/%.0s' $(seq 100)); "
    "echo evil > .vscode/tasks.json",
    "a pipe": "mkfifo .envrc",
    "many": "for i in $(seq 50); do mkdir -p m/$i; echo evil > m/$i/.envrc; done",
}

ORDINARY = {
    "a commit": "git add .mcp.json; git -c user.name=a -c user.email=b commit -qnm x",
    "a new repository": "git init -q sub",
    "a clone": "git clone -q . ../root/clone",
    "a remote": "git remote add origin https://example.com/a.git",
    "a branch": "git -c user.name=a -c user.email=b commit -qnm x --allow-empty; git branch x; "
    "git branch -u x",
    "a file": "mkdir -p src/.github; echo x > src/main.c; echo x > src/.github/a.yml",
    "a name": "git config user.name somebody",
    "packages": "mkdir -p node_modules/a/.vscode v/site-packages/b/.idea node_modules/a/.husky; "
    "touch node_modules/a/.vscode/settings.json v/site-packages/b/.envrc; ln -s a node_modules/b; "
    "touch node_modules/a/cli.js; ln -s node_modules/a/cli.js cli",
}


def run(root: Path, script: str) -> None:
    subprocess.run(["/bin/bash", "-c", script], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    run(root, "git init -q . && echo '#!/bin/sh' > .git/hooks/pre-commit")
    run(root, "echo '{}' > .mcp.json; mkdir .claude; echo '{}' > .claude/settings.json")
    return root


@pytest.fixture
def protection(root: Path, tmp_path: Path) -> Protection:
    return Protection(str(root), tmp_path / "data" / "quarantine", HeldRoot(str(root)))


def refusing(number: int) -> Callable[..., None]:
    """A call of the system that fails."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def obeyed(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything of the root that some program would obey, by a walk of our own."""
    names = {".mcp.json", ".MCP.json", ".claude", ".vscode", ".bashrc", ".envrc", "config.toml"}
    found: dict[str, tuple[int, bytes]] = {}
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        is_hook = parts[-2:-1] == ("hooks",) and path.suffix != ".sample"
        is_setting = path.name in {"config", "config.worktree"}
        if is_hook or is_setting or path.is_symlink() or names & set(parts):
            content = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(root))] = (path.lstat().st_mode, content)
    return found


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_a_program_did_is_undone_and_told(
    root: Path, protection: Protection, attack: str
) -> None:
    before = obeyed(root)
    protection.begin()
    run(root, attack)
    assert obeyed(root) != before
    notes = protection.end()
    after = obeyed(root)
    assert {path: after[path] for path in before if path in after} == before
    assert not any(b"evil" in content for _mode, content in after.values())
    assert notes


@pytest.mark.parametrize("work", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_work_stays(root: Path, protection: Protection, work: str) -> None:
    protection.begin()
    run(root, work)
    before = obeyed(root)
    assert protection.end() == ()
    assert obeyed(root) == before


RIGHTS = {
    "hooks that cannot be listed": "git init -q sub; echo evil > sub/.git/hooks/pre-push; "
    "chmod 111 sub/.git/hooks",
    "a repository that cannot be listed": "git init -q sub; echo evil > sub/.git/hooks/pre-push; "
    "chmod 311 sub/.git",
    "a directory that cannot be listed": "mkdir -p sub/a; echo evil > sub/a/.mcp.json; "
    "chmod 311 sub/a; chmod 111 sub",
    "a directory that cannot be entered": "mkdir -p sub/a; echo evil > sub/a/.mcp.json; "
    "chmod 600 sub",
    "a directory that cannot be changed": "mkdir sub; echo evil > sub/.mcp.json; chmod 555 sub",
    "settings that cannot be changed": "mkdir -p sub/.vscode/a; echo evil > sub/.vscode/tasks.json;"
    " chmod 555 sub/.vscode sub",
    "a file that cannot be read": "mkdir sub; echo evil > sub/.mcp.json; chmod 0 sub/.mcp.json",
    "hooks there that cannot be listed": "echo evil > .git/hooks/pre-commit; chmod 111 .git/hooks",
    "the root": "echo evil > .mcp.json; chmod 111 .",
}


@pytest.fixture
def owner(root: Path) -> Iterator[Path]:
    """The root, if need be given to somebody whom rights hold up."""
    if os.geteuid() != 0:
        yield root
        return
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        moved = Path(top, "somebodys", "root")
        shutil.copytree(root, moved, symlinks=True)
        for path in (moved.parent, moved, *moved.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        os.seteuid(65534)
        try:
            yield moved
        finally:
            os.seteuid(0)


def as_owner(root: Path, script: str) -> None:
    """Runs a script as the root's owner, whom an interpreter of root's would not be."""
    user = None if os.getuid() else 65534
    environment = {**os.environ, "HOME": str(root)}
    subprocess.run(["/bin/bash", "-c", script], cwd=root, check=True, user=user, env=environment)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="Windows has other rights")
@pytest.mark.parametrize("attack", RIGHTS.values(), ids=RIGHTS)
def test_rights_that_a_program_takes_away_hide_and_keep_nothing(owner: Path, attack: str) -> None:
    protection = Protection(str(owner), owner.parent / "quarantine", HeldRoot(str(owner)))
    before = obeyed(owner)
    protection.begin()
    as_owner(owner, attack)
    assert protection.end()
    as_owner(owner, "chmod -R u+rwX .")
    after = obeyed(owner)
    assert {path: content for path, (_mode, content) in after.items() if path in before} == {
        path: content for path, (_mode, content) in before.items()
    }
    assert not any(b"evil" in content for _mode, content in after.values())


def test_a_directory_that_was_closed_to_its_owner_stays_so(owner: Path) -> None:
    protection = Protection(str(owner), owner.parent / "quarantine", HeldRoot(str(owner)))
    as_owner(
        owner, "mkdir -p own/a; echo mine > own/a/.mcp.json; chmod 0 own; touch -d 2001-01-01 own"
    )
    protection.begin()
    as_owner(owner, "echo evil > .envrc")
    assert len(protection.end()) == 1
    assert (owner / "own").stat().st_mode & 0o777 == 0


@pytest.mark.parametrize(
    "steps",
    [
        ["mkdir -p node_modules/a/.vscode; ln -s node_modules/a app"],
        ["ln -s ./x/../site-packages/a app"],
        ["mkdir node_modules; ln -s node_modules/../app app"],
        [
            "mkdir node_modules; touch node_modules/a; ln -s $PWD/node_modules/a app",
            "rm node_modules/a; mkdir -p node_modules/a/.vscode",
        ],
    ],
    ids=["at once", "before they are there", "in a circle", "where a file was"],
)
def test_no_directory_of_packages_gets_a_name_in_the_project(
    root: Path, protection: Protection, steps: list[str]
) -> None:
    notes: tuple[str, ...] = ()
    for step in steps:
        protection.begin()
        run(root, step)
        notes += protection.end()
    assert [note.split(" (")[0] for note in notes] == ["taken away: app"]


def test_what_was_taken_away_is_kept_in_the_data_directory(
    root: Path, protection: Protection, tmp_path: Path
) -> None:
    protection.begin()
    run(root, "mkdir sub; echo evil > sub/.mcp.json; echo worse > .mcp.json")
    notes = protection.end()
    kept = {
        str(path.relative_to(tmp_path / "data" / "quarantine")).partition("/")[2]: path.read_text()
        for path in (tmp_path / "data").rglob(".mcp.json")
    }
    assert kept == {"sub/.mcp.json": "evil\n", ".mcp.json": "worse\n"}
    assert [note.split(" (moved to ")[0] for note in notes] == [
        "put back: .mcp.json",
        "taken away: sub/.mcp.json",
    ]


def test_what_lies_on_another_disk_is_copied_there(
    root: Path, protection: Protection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protection.begin()
    run(root, "mkdir -p .vscode/a; echo evil > .vscode/a/b; ln -s /etc .vscode/l; mkfifo .vscode/p")
    monkeypatch.setattr(os, "rename", refusing(errno.EXDEV))
    assert protection.end()
    assert not (root / ".vscode").exists()
    (kept,) = (tmp_path / "data" / "quarantine").glob("*/.vscode")
    assert (kept / "a" / "b").read_text() == "evil\n"
    assert (kept / "l").is_symlink()


def test_what_cannot_be_moved_is_left_by_no_name_that_anybody_obeys(
    root: Path, protection: Protection, tmp_path: Path
) -> None:
    before = obeyed(root)
    protection.begin()
    run(root, "mkdir sub .vscode; echo evil > sub/.mcp.json; echo evil > .mcp.json; mkfifo .envrc")
    (tmp_path / "data").write_text("no directory")  # as a full disk makes none
    notes = protection.end()
    assert obeyed(root) == before
    kept = [*root.glob("quarantined-*"), *(root / "sub").iterdir()]
    assert len(kept) == 4
    assert all(any(path.name in note for note in notes) for path in kept)


def test_what_could_not_be_undone_is_undone_before_the_next_program_starts(
    root: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = obeyed(root)
    protection.begin()
    run(root, "rm -r .claude .mcp.json")
    with monkeypatch.context() as full:
        full.setattr(os, "mkdir", refusing(errno.ENOSPC))
        assert any("could not be put back: .claude" in note for note in protection.end())
    assert obeyed(root) != before
    protection.begin()
    assert obeyed(root) == before
    assert protection.end() == ("put back: .claude", "put back: .claude/settings.json")


def test_what_a_person_puts_where_something_could_not_be_undone_stays(
    root: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    protection.begin()
    run(root, "rm -r .claude")
    with monkeypatch.context() as full:
        full.setattr(os, "mkdir", refusing(errno.ENOSPC))
        assert protection.end()
    run(root, "mkdir .claude; echo mine > .claude/settings.json")
    before = obeyed(root)
    protection.begin()
    assert protection.end() == ()
    assert obeyed(root) == before


def test_what_a_running_program_did_is_undone_before_another_starts(
    root: Path, protection: Protection
) -> None:
    protection.begin()
    run(root, "echo evil > .envrc")
    protection.begin()
    assert not (root / ".envrc").exists()
    run(root, "echo evil > .envrc")
    assert protection.end()
    assert not (root / ".envrc").exists()
    assert protection.end() == ()


def test_what_a_person_does_between_programs_stays(root: Path, protection: Protection) -> None:
    protection.begin()
    assert protection.end() == ()
    run(root, "git config core.fsmonitor true; echo x > .envrc; rm .mcp.json")
    before = obeyed(root)
    protection.begin()
    assert protection.end() == ()
    assert obeyed(root) == before


def test_nothing_is_written_through_a_link_that_took_the_place_of_a_directory(
    root: Path, protection: Protection, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    run(root, "mkdir -p a/.vscode; echo x > a/.vscode/tasks.json")
    protection.begin()
    run(root, f"rm -r a; ln -s {outside} a; rm -r .git/hooks; ln -s {outside} .git/hooks")
    protection.end()
    assert list(outside.iterdir()) == []


def test_a_path_that_is_too_long_for_the_quarantine_is_taken_away(
    root: Path, protection: Protection
) -> None:
    name = "d" * 200
    protection.begin()
    run(root, f"for i in $(seq 30); do mkdir {name}; cd {name}; done; echo evil > .mcp.json")
    (note,) = protection.end()
    assert note.startswith("taken away")


OBEYED = (
    "echo evil > .envrc; mkdir .vscode; echo evil > .vscode/tasks.json; git init -q app; "
    "git -C app config core.fsmonitor evil"
)

FLOODS = {
    "new directories": "seq 6000 | xargs mkdir",
    "new directories within": "mkdir -p a/b; cd a/b; seq 6000 | xargs mkdir; cd 6000",
    "levels": "for i in $(seq 200); do mkdir d; cd d; done",
    "protected files": "for i in $(seq 6000); do echo $i; done | xargs mkdir; tee */.npmrc <<< a "
    ">/dev/null; touch {1..6000}/.envrc; cd 6000",
    "protected directories": "mkdir .idea; cd .idea; seq 6000 | xargs touch; cd ..",
    "large protected files": "for i in $(seq 300); do mkdir $i; head -c 262144 /dev/zero > "
    "$i/.envrc; done",
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_hides_nothing(root: Path, protection: Protection, flood: str) -> None:
    protection.begin()
    run(root, f"({flood}; {OBEYED}); {OBEYED}")
    assert protection.end()
    assert not any(b"evil" in content for _mode, content in obeyed(root).values())


def test_what_is_too_large_to_be_searched_is_set_aside_as_a_whole(
    root: Path, protection: Protection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.sandbox.processes.protection.scan.MOST_NEW_FOLDERS", 20)
    run(root, "seq 100 201 | xargs mkdir")  # what is a person's own is never too large
    protection.begin()
    run(root, "mkdir -p new/x; cd new/x; seq 30 | xargs mkdir; echo 1 > 30/a")
    (note,) = protection.end()
    assert note.startswith("set aside, as it is too large or too deep")
    assert not (root / "new").exists()
    (kept,) = (tmp_path / "data" / "quarantine").glob("*/new")
    assert (kept / "x" / "30" / "a").read_text() == "1\n"
    protection.begin()
    run(root, "mkdir new; cd new; seq 10 | xargs mkdir")
    assert protection.end() == ()


def test_more_content_than_is_remembered_is_taken_away_where_it_changes(
    root: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.sandbox.processes.protection.scan.MOST_REMEMBERED", 10)
    run(root, "mkdir .vscode a; echo 0123456789 > .bashrc; echo mine > a/.envrc; touch a/.netrc")
    protection.begin()
    run(root, "echo evil > a/.envrc; echo evil > .vscode/tasks.json; echo evil > .bashrc")
    notes = protection.end()
    assert any("put back: a/.envrc" in note for note in notes)
    assert not any(b"evil" in content for _mode, content in obeyed(root).values())
    assert (root / "a" / ".netrc").exists()


@pytest.mark.parametrize(
    "change", [lambda path: path.write_text("evil"), lambda path: path.unlink()]
)
def test_a_second_change_within_one_tick_of_the_clock_is_seen(
    root: Path, protection: Protection, change: Callable[[Path], object]
) -> None:
    for _ in range(20):
        protection.begin()
        change(root / ".mcp.json")
        assert protection.end()
        assert (root / ".mcp.json").read_text() == "{}\n"


@pytest.mark.parametrize("path", [".claude/settings.json", "new/.vscode/tasks.json", ".envrc"])
def test_what_a_person_approved_while_programs_run_stays_and_is_protected(
    root: Path, protection: Protection, path: str
) -> None:
    protection.begin()
    run(root, f"mkdir -p $(dirname {path}); echo evil > {path}; echo evil > .bashrc")
    with protection.accepting(path, b"approved"):
        (root / path).write_bytes(b"approved")
    run(root, "mkdir -p new/.vscode; echo evil > new/.vscode/evil.json")
    protection.begin()
    assert (root / path).read_bytes() == b"approved"
    run(root, f"echo evil > {path}")
    notes = [*protection.end(), *protection.end()]
    assert (root / path).read_bytes() == b"approved"
    assert not (root / ".bashrc").exists()
    assert not (root / "new" / ".vscode" / "evil.json").exists()
    assert any(path in note for note in notes)


def test_what_a_program_makes_of_an_approved_file_at_once_does_not_count_as_approved(
    root: Path, protection: Protection
) -> None:
    protection.begin()
    with protection.accepting(".envrc", b"approved"):
        run(root, "echo evil > .envrc")
    protection.end()
    assert (root / ".envrc").read_bytes() == b"approved"


def test_an_approved_file_that_could_not_be_put_back_is_not_written_while_programs_run(
    root: Path, protection: Protection
) -> None:
    content = bytes(MOST_BYTES + 1)
    with protection.accepting(".envrc", content):
        (root / ".envrc").write_bytes(content)
    protection.begin()
    with (
        pytest.raises(UnavailableError, match="while programs run"),
        protection.accepting(".envrc", content),
    ):
        pytest.fail("the write must not begin")
    assert protection.end() == ()


async def test_one_that_is_alone_keeps_the_others_waiting() -> None:
    occupancy = Occupancy()
    assert await occupancy.enter(alone=True)
    entered = anyio.Event()

    async def enter() -> None:
        assert not await occupancy.enter(alone=False)
        entered.set()

    async with anyio.create_task_group() as group:
        group.start_soon(enter)
        await anyio.wait_all_tasks_blocked()
        assert not entered.is_set()
        occupancy.leave()
        with anyio.fail_after(10):
            await entered.wait()


async def test_nobody_is_alone_among_others() -> None:
    occupancy = Occupancy()
    assert not await occupancy.enter(alone=False)
    assert not await occupancy.enter(alone=True)
    occupancy.leave()
    occupancy.leave()
    assert await occupancy.enter(alone=True)
