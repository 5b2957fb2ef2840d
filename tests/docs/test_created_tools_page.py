"""The page about created tools, followed to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.following import DOCS, Step, blocks, broken_links, clean_home, follow, steps

pytestmark = pytest.mark.slow

PAGE = (DOCS / "created-tools.md").read_text(encoding="utf-8")
STEPS = [step for block in blocks(PAGE) for step in steps(block)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("library")
    return follow(PAGE, folder, clean_home(tmp_path_factory.mktemp("home")))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.command[:60])
def test_a_command_prints_what_the_page_says(step: Step, printed: dict[str, str]) -> None:
    assert step.pattern.fullmatch(printed[step.command].strip()), printed[step.command]


def test_every_link_leads_somewhere() -> None:
    assert broken_links(PAGE) == []
