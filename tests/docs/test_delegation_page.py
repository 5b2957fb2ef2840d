"""The page about delegation: its settings are settings, and its agents are what it says."""

import re
import tomllib
from pathlib import Path

import pytest

from server.composition.agents import agents_of
from server.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "delegation.md").read_text(encoding="utf-8")
TABLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("table", TABLES)
def test_the_settings_on_the_page_can_be_used(table: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", root=tmp_path, **tomllib.loads(table))
    [agent] = agents_of(settings).values()
    assert agent.argv
    assert agent.hosts
    assert agent.terms().startswith(f"Agent {agent.name} (")


def test_the_ceilings_on_the_page_are_the_defaults(tmp_path: Path) -> None:
    most = Settings(data_dir=tmp_path / "data", root=tmp_path).delegation
    for name, shown in (
        ("depth", most.depth),
        ("count", most.count),
        ("seconds", f"{most.seconds:g} s"),
        ("cost", f"${most.cost:g}"),
    ):
        assert f"| `delegation.{name}` | {shown} |" in PAGE
