import os
import random
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tools.sandbox.search.tree import Tree, Walk

pytestmark = pytest.mark.boundary


def walk(root: Path, path: str = ".", *, include_ignored: bool = False) -> Tree:
    fds = [os.open(root, os.O_RDONLY), os.open(root / path, os.O_RDONLY)]
    try:
        return Walk(fds[0], fds[1], path, include_ignored=include_ignored).run()
    finally:
        for fd in fds:
            os.close(fd)


def paths(tree: Tree) -> list[str]:
    return [file.path for file in tree.files]


def write(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_files_come_in_the_order_of_their_paths_part_by_part(root: Path) -> None:
    write(root, "b", "a/z", "a/b/c", "a.txt", ".hidden", "a-b/x")
    assert paths(walk(root)) == [".hidden", "a/b/c", "a/z", "a-b/x", "a.txt", "b"]
    assert paths(walk(root, "a")) == ["b/c", "z"]


def test_links_are_shown_and_not_followed(root: Path) -> None:
    write(root, "a/x")
    (root / "a" / "loop").symlink_to("..")
    (root / "file").symlink_to("a/x")
    (root / "out").symlink_to("/etc")
    found = walk(root)
    assert [(file.path, file.is_link) for file in found.files] == [
        ("a/loop", True),
        ("a/x", False),
        ("file", True),
        ("out", True),
    ]


def test_what_version_control_keeps_is_passed_over_unless_it_is_asked_for(root: Path) -> None:
    write(root, ".git/config", ".hg/x", ".svn/x", ".jj/x", "module/.git", "a")
    for include_ignored in (False, True):
        assert paths(walk(root, include_ignored=include_ignored)) == ["a"]
    assert paths(walk(root, ".git")) == ["config"]


def test_pipes_sockets_and_devices_are_no_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    os.mkfifo(root / ".gitignore")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        write(root, "a")
        assert paths(walk(root)) == ["a"]


def test_rules_above_the_start_hold_and_those_above_another_repository_do_not(root: Path) -> None:
    write(root, ".gitignore", text="*.log\n/a/only\n")
    write(root, "a/x.log", "a/only", "a/b/only", "a/inner/x.log", "a/inner/y", "a/inner/.git/HEAD")
    write(root, "a/inner/.git/info/exclude", text="y\n")
    assert paths(walk(root, "a")) == ["b/only", "inner/x.log"]
    assert paths(walk(root, "a/inner")) == ["x.log"]
    assert paths(walk(root, "a", include_ignored=True)) == [
        "b/only",
        "inner/x.log",
        "inner/y",
        "only",
        "x.log",
    ]


def test_a_thousand_levels_are_walked(root: Path) -> None:
    home = os.open(root, os.O_RDONLY)
    fd = os.dup(home)
    for _ in range(1000):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("deep", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    os.close(home)
    import resource  # not on Windows

    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (old[1], old[1]))
    try:
        assert paths(walk(root)) == ["d/" * 1000 + "deep"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
        subprocess.run(
            ["/bin/rm", "-rf", str(root / "d")], check=True
        )  # Python recurses too deeply


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_directory_that_cannot_be_read_is_told(root: Path) -> None:
    write(root, "closed/x", "open/y")
    (root / "closed").chmod(0)
    try:
        found = walk(root)
        assert (paths(found), found.unreadable) == (["open/y"], ["closed"])
    finally:
        (root / "closed").chmod(0o755)


PARTS = (
    *("a", "b", "ab", "*", "**", "*.md", "a*", "?", "a.md", "[ab]", "[!a]", "[a-c].md", "é", "??"),
)
NAMES = ("a", "b", "ab", "a.md", "b.md", "c", "é", "é.md", "a b")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is asked what it ignores")
@pytest.mark.parametrize("seed", range(25))
def test_what_git_ignores_is_left_out_and_nothing_else(seed: int, root: Path) -> None:
    chance = random.Random(seed)  # noqa: S311  # the same trees every time
    directories = [root]
    for _ in range(7):
        directories.append(chance.choice(directories) / chance.choice(("a", "b", "ab", "é")))
        directories[-1].mkdir(exist_ok=True)
    for _ in range(25):
        file = chance.choice(directories) / chance.choice(NAMES)
        if not file.exists():
            file.touch()

    def rule() -> str:
        path = "/".join(chance.choices(PARTS, k=chance.choice((1, 1, 2, 3))))
        start = chance.choice(("", "", "!")) + chance.choice(("", "/"))
        return start + path + chance.choice(("", "/")) + chance.choice(("", "", " ", "\r"))

    git = ["git", "-C", str(root)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for directory in chance.sample(directories, 3):
        (directory / ".gitignore").write_text("\n".join(rule() for _ in range(4)) + "\n")
    (root / ".git" / "info" / "exclude").write_text(rule() + "\n" + rule() + "\n")
    command = [*git, "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others"]
    command += ["--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(paths(walk(root))) == set(filter(None, listed.split("\0")))
