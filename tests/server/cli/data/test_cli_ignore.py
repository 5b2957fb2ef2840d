import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.cli.data.walk import IgnoreRules


def kept(directory: Path, rules: IgnoreRules) -> Iterator[Path]:
    for entry in os.scandir(directory):
        path = Path(entry.path)
        if entry.name == ".git" or rules.ignores(path, is_directory=entry.is_dir()):
            continue
        if entry.is_dir():
            yield from kept(path, rules)
        else:
            yield path


def test_rules_hold_below_their_file_and_the_deeper_one_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a" / ".gitignore").write_text("!keep.log\n/only.md\n")
    rules = IgnoreRules(tmp_path)
    ignored = {
        name: rules.ignores(tmp_path / name, is_directory=False)
        for name in ("x.log", "keep.log", "a/keep.log", "a/b/x.log", "a/only.md", "a/b/only.md")
    }
    assert ignored == {
        "x.log": True,
        "keep.log": True,
        "a/keep.log": False,
        "a/b/x.log": True,
        "a/only.md": True,
        "a/b/only.md": False,
    }


def test_rules_of_the_repository_above_hold_and_none_from_further_up(tmp_path: Path) -> None:
    vault = tmp_path / "repository" / "vault"
    vault.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("a.md\n")
    (tmp_path / "repository" / ".gitignore").write_text("b.md\n")
    assert not IgnoreRules(vault).ignores(vault / "b.md", is_directory=False)
    (tmp_path / "repository" / ".git" / "info").mkdir(parents=True)
    (tmp_path / "repository" / ".git" / "info" / "exclude").write_text("c.md\n")
    rules = IgnoreRules(vault)
    assert [rules.ignores(vault / f"{name}.md", is_directory=False) for name in "abc"] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("place", "rule"),
    [
        ("venv", "*"),
        ("", "/venv/"),
        ("", "*\n!/README.md"),
        ("venv/lib", "docs/*"),
        ("venv/lib", "docs/**"),
        ("", "lib"),
    ],
)
def test_a_folder_that_is_named_is_not_left_out_by_a_rule_above_it(
    place: str, rule: str, tmp_path: Path
) -> None:
    docs = tmp_path / "venv" / "lib" / "docs"
    docs.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / place / ".gitignore").write_text(f"{rule}\n")
    (docs / ".gitignore").write_text("draft.md\n")
    rules = IgnoreRules(docs)
    assert [rules.ignores(docs / name, is_directory=False) for name in ("a.md", "draft.md")] == [
        False,
        True,
    ]


def test_toolcribs_own_rules_have_the_last_word_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("drafts/\n")
    (tmp_path / ".toolcribignore").write_text("!drafts/\nprivate.md\n")
    rules = IgnoreRules(tmp_path)
    assert not rules.ignores(tmp_path / "drafts", is_directory=True)
    assert rules.ignores(tmp_path / "private.md", is_directory=False)


def test_rule_files_that_cannot_be_read_rule_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / ".toolcribignore").write_bytes(b"\xff.md\n[\n!\nb.md\\\na.md\n")
    rules = IgnoreRules(tmp_path)
    names = ("a.md", "b.md", os.fsdecode(b"\xff.md"))
    assert [rules.ignores(tmp_path / name, is_directory=False) for name in names] == [
        True,
        False,
        True,
    ]


def test_a_change_of_a_rule_file_is_known_as_one() -> None:
    for name in ("a/.gitignore", ".toolcribignore", "a/.git/info/exclude"):
        assert IgnoreRules.is_rule_file(Path("/", name))
    assert not IgnoreRules.is_rule_file(Path("/a/exclude"))


PARTS = ("a", "b", "ab", "*", "**", "*.md", "a*", "?", "a.md", "[ab]", "[!a]", "[a-c].md", "\\a")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is asked what it ignores")
@pytest.mark.parametrize("seed", range(12))
def test_what_git_ignores_is_ignored_and_nothing_else(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311  # the same folders every time
    directories = [tmp_path]
    for _ in range(6):
        directories.append(chance.choice(directories) / chance.choice(("a", "b", "ab")))
        directories[-1].mkdir(exist_ok=True)
    for _ in range(20):
        file = chance.choice(directories) / chance.choice(("a", "b", "ab", "a.md", "b.md", "c"))
        if not file.exists():
            file.touch()

    def rule() -> str:
        path = "/".join(chance.choices(PARTS, k=chance.choice((1, 1, 2, 3))))
        ends = chance.choice(("", "/"))
        return chance.choice(("", "", "!")) + chance.choice(("", "/")) + path + ends

    for directory in chance.sample(directories, 3):
        (directory / ".gitignore").write_text("\n".join(rule() for _ in range(4)) + "\n")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    command = [*git, "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {str(path.relative_to(tmp_path)) for path in kept(tmp_path, IgnoreRules(tmp_path))}
    assert found == set(filter(None, listed.split("\0")))
