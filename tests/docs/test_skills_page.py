"""The page about skills, followed to the letter: its files are written, its commands run."""

import pytest

from tests.docs.following import DOCS, Step, blocks, clean_home, follow, steps
from tools.agent.skillfiles.places import OF_PROJECTS, OF_USERS

PAGE = (DOCS / "skills.md").read_text(encoding="utf-8")
STEPS = [step for block in blocks(PAGE) for step in steps(block)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command printed, the page followed from its top to its end."""
    home = tmp_path_factory.mktemp("home")
    return follow(PAGE, tmp_path_factory.mktemp("root"), clean_home(home))


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=[step.command for step in STEPS])
def test_a_command_prints_what_the_page_shows(step: Step, printed: dict[str, str]) -> None:
    assert step.pattern.fullmatch(printed[step.command].strip()), printed[step.command]


def test_the_page_names_every_place_and_label() -> None:
    named = {"home": "~", "claude": "~/.claude", "codex": "~/.codex", "config": "~/.config"}
    for label, path in OF_USERS:
        assert f"`{label}`" in PAGE
        assert f"`{path.format_map(named)}`" in PAGE
    for path in OF_PROJECTS:
        assert f"`{path}`" in PAGE
