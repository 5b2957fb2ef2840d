"""Pages whose commands are run one after the other, and print what the page says."""

import pytest

from tests.docs.following import DOCS, Step, blocks, broken_links, clean_home, follow, steps

pytestmark = pytest.mark.slow

FOLDERS = {
    "created-tools": "library",
    "hooks": "shop",
    "install": "project",
    "run-code": "household",
}
"""By the page, the folder that it is followed in."""

PAGES = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in FOLDERS}
STEPS = [
    pytest.param(name, step, id=f"{name}: {step.command[:60]}")
    for name, page in PAGES.items()
    for block in blocks(page)
    for step in steps(block)
]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    return {
        name: follow(
            page,
            tmp_path_factory.mktemp(FOLDERS[name]),
            clean_home(tmp_path_factory.mktemp("home")),
        )
        for name, page in PAGES.items()
    }


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_a_command_prints_what_the_page_says(
    name: str, step: Step, printed: dict[str, dict[str, str]]
) -> None:
    said = printed[name][step.command].strip()
    assert step.pattern.fullmatch(said), said


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    assert broken_links(PAGES[name]) == []
