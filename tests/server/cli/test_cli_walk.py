from __future__ import annotations

import os
from pathlib import Path

import pytest

from server.cli.walk import check_name, files_beneath
from tools.core.errors import InvalidArgumentsError


def test_files_come_in_order_without_hidden_generated_and_linked_ones(tmp_path: Path) -> None:
    for name in ("b/2.md", "b/1.md", "a.md", ".git/x", "b/.hidden", "node_modules/x.js"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "around").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    found = [str(file.relative_to(tmp_path)) for file in files_beneath(tmp_path)]
    assert found == ["a.md", "b/1.md", "b/2.md"]


def test_a_file_that_is_named_is_taken_whatever_its_name(tmp_path: Path) -> None:
    hidden = tmp_path / ".hidden.md"
    hidden.touch()
    assert list(files_beneath(hidden)) == [hidden]


def test_a_name_that_is_no_text_is_refused_with_its_bytes_shown() -> None:
    check_name(Path("naïve 🍅.md"))
    with pytest.raises(InvalidArgumentsError, match=r"'bad\\udcff'") as caught:
        check_name(Path(os.fsdecode(b"bad\xff")))
    assert caught.value.next_actions == ("Rename the file.",)
