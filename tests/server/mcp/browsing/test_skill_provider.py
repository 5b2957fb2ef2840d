"""Skills that are saved while clients of both eras hear of changes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated

from server.app import App, build
from server.settings import Settings
from server.settings.index import SkillSettings
from tests.server.mcp.browsing.hearing import listening

pytestmark = pytest.mark.slow

SKILL = "---\nname: {0}\ndescription: Makes {0}.\n---\n\nDo it.\n"
PDF = "skill://pdf/SKILL.md"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    _save(tmp_path / "team", "pdf")
    return tmp_path / "team"


@pytest.fixture
def make_app(tmp_path: Path, team: Path) -> Callable[[], App]:
    def make() -> App:
        skills = SkillSettings(discover=False, directories=(team,))
        return build(Settings(data_dir=tmp_path / "data", root=tmp_path, skills=skills))

    return make


def _save(team: Path, name: str, text: str = SKILL) -> None:
    (team / name).mkdir(parents=True, exist_ok=True)
    (team / name / "SKILL.md").write_text(text.format(name))


async def test_a_skill_that_is_saved_is_told(
    make_app: Callable[[], App], team: Path, mode: str
) -> None:
    app = make_app()
    async with app.running(), listening(app, mode, PDF) as (client, heard):
        assert PDF in [each.uri for each in (await client.list_resources()).resources]
        _save(team, "xls")
        assert await heard.next() == ResourcesListChanged()
        listed = [each.uri for each in (await client.list_resources()).resources]
        assert "skill://xls/SKILL.md" in listed
        _save(team, "pdf", SKILL + "Then stop.\n")
        assert await heard.several(2) == {ResourcesListChanged(), ResourceUpdated(PDF)}
