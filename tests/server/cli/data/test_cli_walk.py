import os
from collections.abc import Callable
from pathlib import Path

import pytest

from server.cli.data.walk import Folder, check_name
from tools.core.errors import InvalidArgumentsError

Grown = Callable[..., Folder]


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    """Makes a folder of empty files."""

    def grow(*names: str) -> Folder:
        for name in names:
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return Folder(tmp_path, [tmp_path / "data"])

    return grow


def seen(folder: Folder, below: Path | None = None) -> list[str]:
    return [str(file.relative_to(folder.path)) for file in folder.files(below)]


def test_files_come_in_order_without_hidden_generated_and_linked_ones(grown: Grown) -> None:
    folder = grown("b/2.md", "b/1.md", "a.md", ".git/x", "b/.hidden", "node_modules/x.js", "data/x")
    (folder.path / "link.md").symlink_to(folder.path / "a.md")
    (folder.path / "around").symlink_to(folder.path)
    os.mkfifo(folder.path / "pipe")
    assert seen(folder) == ["a.md", "b/1.md", "b/2.md"]
    assert folder.passed_over == {
        "hidden": 2,
        "generated": 1,
        "links": 2,
        "special files": 1,
        "Toolcrib's own": 1,
    }


def test_one_directory_may_be_looked_at_alone_by_the_rules_of_all(grown: Grown) -> None:
    folder = grown("a.md", "b/1.md", "b/2.txt", "b/c/3.md")
    (folder.path / ".gitignore").write_text("*.txt")
    assert seen(folder, folder.path / "b") == ["b/1.md", "b/c/3.md"]


def test_the_rules_are_those_of_now(grown: Grown) -> None:
    folder = grown("a.md", "b.md")
    assert seen(folder) == ["a.md", "b.md"]
    (folder.path / ".toolcribignore").write_text("a.md")
    assert seen(folder) == ["b.md"]


def test_what_stands_beside_conversations_is_part_of_the_export(grown: Grown) -> None:
    folder = grown(
        "e/conversations-000.json", "e/user.json", "e/chat.html", "e/notes.md", "user.json"
    )
    assert seen(folder) == ["user.json", "e/conversations-000.json", "e/notes.md"]
    assert folder.passed_over == {"part of a chat export": 2}
    assert not folder.wants(folder.path / "e" / "user.json")
    assert folder.wants(folder.path / "user.json")


@pytest.mark.boundary
@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_directory_that_cannot_be_listed_is_told(grown: Grown) -> None:
    folder = grown("a.md", "closed/b.md")
    (folder.path / "closed").chmod(0)
    assert seen(folder) == ["a.md"]
    assert [error.filename for error in folder.unlisted] == [str(folder.path / "closed")]
    (folder.path / "closed").chmod(0o700)


def test_a_path_is_wanted_if_a_look_would_come_to_it_also_when_it_is_gone(grown: Grown) -> None:
    folder = grown("a.md", "b/1.md", "b/2.txt", ".c/1.md", "d/1.md", "b/.gitignore")
    (folder.path / "b" / ".gitignore").write_text("*.txt\n/e/\n")
    (folder.path / "f").symlink_to(folder.path / "b")
    names = ("a.md", "b", "b/1.md", "b/gone.md", "gone/1.md", ".")
    assert [name for name in names if not folder.wants(folder.path / name)] == []
    others = ("b/2.txt", "b/gone.txt", ".c/1.md", "b/e/gone.md", "f", "f/1.md", "data", "data/x")
    assert [name for name in others if folder.wants(folder.path / name)] == []


def test_a_name_that_is_no_text_is_refused_with_its_bytes_shown() -> None:
    check_name(Path("naïve 🍅.md"))
    with pytest.raises(InvalidArgumentsError, match=r"'bad\\udcff'") as caught:
        check_name(Path(os.fsdecode(b"bad\xff")))
    assert caught.value.next_actions == ("Rename the file.",)
