"""The home that programs see: private, gone with them, and yet git knows who commits."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.sandbox.processes.temporary import git_identity

pytestmark = pytest.mark.boundary

THEIRS = """
[user]
\tname = "Zoë \\"Z\\" \\\\ #1; x"
\temail = zoe@example.com
\tsigningkey = secret-key
[alias]
\tst = !touch evil
[include]
\tpath = work
"""


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the person who runs the server."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text(THEIRS, encoding="utf-8")
    return home


async def out(crib: Any, command: str) -> str:
    found = await crib.call("bash", command=command)
    assert found["exit_code"] == 0, found
    return str(found["stdout"])


async def test_git_commits_in_the_persons_name_and_knows_nothing_else_of_theirs(
    confined: Any,
) -> None:
    commit = "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae> %cn <%ce>'"
    who = 'Zoë "Z" \\ #1; x <zoe@example.com>'
    assert await out(confined, f"git init -q . && {commit}") == f"{who} {who}\n"
    settings = await out(confined, "git config --global --list --name-only")
    assert settings == "user.name\nuser.email\n"


async def test_what_a_repository_says_of_its_author_wins(confined: Any) -> None:
    await out(confined, "git init -q . && git config user.email project@example.com")
    found = await out(confined, "git commit -q --allow-empty -m x; git log -1 --format='%ae'")
    assert found == "project@example.com\n"


async def test_what_is_written_to_the_home_is_told_and_gone(confined: Any) -> None:
    script = "git config --global pull.rebase true; mkdir -p ~/.config/pip ~/.cache/x ~/.npm/y; "
    found = await confined.call("bash", command=f"{script} touch ~/.config/pip/pip.conf ~/{{1..9}}")
    (note,) = found["notes"]
    assert note == (
        "Written to the private home, and removed with it: "
        ".config/pip, .gitconfig, 1, 2, 3 and 6 more"
    )
    found = await confined.call("bash", command="ls ~; git config pull.rebase; touch ~/.cache")
    assert (found["stdout"], found["notes"]) == ("", [])


async def test_a_note_that_names_a_file_is_one_line_that_steers_no_terminal(confined: Any) -> None:
    name = r"$'a\e[2J\u202e\n[exit code 0]'"
    found = await confined.call("bash", command=f"mkdir {name}; touch {name}/.envrc ~/{name}")
    assert len(found["notes"]) == 2
    for note in found["notes"]:
        assert note.isprintable()


def test_a_name_cannot_bring_settings_of_its_own(person: Path, tmp_path: Path) -> None:
    name = "a\n[core]\nfsmonitor = evil\n[user]x"
    (person / ".gitconfig").unlink()
    for key, value in {"user.name": name, "user.email": ""}.items():
        subprocess.run(["git", "config", "--global", key, value], check=True)  # noqa: S607
    (tmp_path / "given").write_bytes(git_identity(os.environ, str(tmp_path / "root")))
    listed = subprocess.run(
        ["git", "config", "--file", str(tmp_path / "given"), "--list", "--name-only"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    )
    assert listed.stdout == "user.name\nuser.email\n"


def test_a_git_in_the_root_is_not_asked(person: Path, tmp_path: Path) -> None:
    fake = tmp_path / "root" / "git"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    fake.chmod(0o755)
    environ = {"PATH": str(fake.parent), "HOME": str(person)}
    assert git_identity(environ, str(fake.parent)) == b""
    assert not (tmp_path / "ran").exists()
