"""The page about recipes: its example is followed to the letter, on the real Data-Juicer."""

from pathlib import Path

import pytest

from tests.docs.following import DOCS, blocks, broken_links, clean_home, follow, steps
from tools.data.running.environment import DataEnvironment

PAGE = (DOCS / "recipes.md").read_text(encoding="utf-8")
EXAMPLE = PAGE[PAGE.index("## From a raw file to a cleaned set") : PAGE.index("### Verbs")]


@pytest.mark.data
def test_a_raw_file_becomes_a_cleaned_set_as_the_page_says(
    data_juicer: DataEnvironment, tmp_path: Path
) -> None:
    home, folder = tmp_path / "home", tmp_path / "notes"
    (home / "data").mkdir(parents=True)
    folder.mkdir()
    (home / "data" / "data-juicer").symlink_to(data_juicer.path)
    printed = follow(EXAMPLE, folder, clean_home(home))
    for block in blocks(EXAMPLE):
        for step in steps(block):
            said = printed[step.command].strip()
            assert step.pattern.fullmatch(said), said


def test_every_link_leads_somewhere() -> None:
    assert broken_links(PAGE) == []
