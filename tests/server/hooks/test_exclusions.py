from pathlib import Path

import pytest

from server.hooks.exclusions import Exclusions, read_paused, set_paused
from server.hooks.project import Project
from storage.database import Database


def exclusions(folder: Path, *patterns: str) -> Exclusions:
    (folder / ".toolcribignore").write_text("\n".join(patterns), encoding="utf-8")
    return Exclusions(Project(folder, folder, None), ())


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("*.pem", "keys/server.pem", True),
        ("secrets/", "secrets/deep/plan.md", True),
        ("/notes.md", "docs/notes.md", False),
        ("# secrets/", "secrets/plan.md", False),
        ("docs/**", "docs/a/b.md", True),
    ],
)
def test_files_are_matched_as_in_gitignore(
    tmp_path: Path, pattern: str, path: str, covered: bool
) -> None:
    found = exclusions(tmp_path, pattern)
    assert found.covers_file(path) is covered
    assert found.covers_file(str(tmp_path / path)) is covered
    assert found.apply(f"Read `{path}`, please.\nThanks.").startswith("[left out]\n") is covered


@pytest.mark.parametrize(
    ("pattern", "folder", "covered"),
    [
        ("*", ".", True),
        ("private/", "private/notes", True),
        ("private/", "src", False),
        ("x", ".", False),
    ],
)
def test_a_directory_can_be_left_out(
    tmp_path: Path, pattern: str, folder: str, covered: bool
) -> None:
    assert exclusions(tmp_path, pattern).cover_directory(tmp_path / folder) is covered


def test_words_are_matched_in_any_case(tmp_path: Path) -> None:
    found = exclusions(tmp_path, "text: Project Zeus", "text:")
    assert found.apply("One.\nthe project ZEUS\nTwo.") == "One.\n[left out]\nTwo."


def test_half_a_secret_at_the_cut_is_not_stored(tmp_path: Path) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'A' * 150}\n-----END PRIVATE KEY-----\n"
    text = f"{key}{'w ' * 50}".ljust(184, "x") + " ghp_" + "a1B2" * 9
    stored = Exclusions(Project(tmp_path, tmp_path, None), ()).storable(text, 100)
    assert "ghp_" not in stored


def test_without_patterns_nothing_is_left_out(tmp_path: Path) -> None:
    found = Exclusions(Project(tmp_path, tmp_path, None), ())
    assert found.apply("Read secrets/plan.md.") == "Read secrets/plan.md."
    assert not found.cover_directory(tmp_path)


def test_everything_or_a_project_is_paused_and_resumed(tmp_path: Path) -> None:
    database = Database(tmp_path / "toolcrib.db")
    shop, blog = Path("/work/shop"), Path("/work/blog")
    assert not read_paused(database).covers(shop)
    set_paused(database, shop, paused=True)
    assert read_paused(database).covers(shop)
    assert not read_paused(database).covers(blog)
    set_paused(database, None, paused=True)
    assert read_paused(database).covers(blog)
    assert set_paused(database, shop, paused=False).covers(shop)
    set_paused(database, None, paused=False)
    assert not read_paused(database).covers(shop)
    database.close()
