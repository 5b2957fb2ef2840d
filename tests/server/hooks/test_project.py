import subprocess
from pathlib import Path

import pytest

from server.hooks.project import project_of


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    command = ["git", "-C", str(folder), *identity, *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "Begin")
    return folder


def test_a_directory_of_a_repository_belongs_to_it(repository: Path) -> None:
    project = project_of(repository / "src" / "not-there")
    assert (project.directory, project.checkout) == (repository, repository)
    assert project.git == repository / ".git"


def test_all_worktrees_are_one_project(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "side"))
    project = project_of(tmp_path / "side")
    assert project.directory == repository
    assert project.checkout == tmp_path / "side"
    assert project.git == repository / ".git"


def test_a_submodule_is_a_project_by_itself(repository: Path) -> None:
    inner = repository / "lib"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: ../.git/modules/lib\n")
    assert project_of(inner).directory == inner


def test_a_plain_directory_is_a_project(tmp_path: Path) -> None:
    assert project_of(tmp_path / "notes").directory == tmp_path / "notes"


def test_the_repository_of_a_home_directory_is_not_that_of_what_is_in_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repository))
    assert project_of(repository / "notes").directory == repository / "notes"
    assert project_of(repository).directory == repository
