import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def place(work: Path) -> Path:
    """Where Claude Code keeps the skills of its user."""
    place = work.parent / "home" / ".claude" / "skills"
    (place / "pdf" / "references").mkdir(parents=True)
    (place / "pdf" / "references" / "FORMS.md").write_text("Forms.")
    (place / "pdf" / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads forms: all\n---\n# PDF\n\x1b[31mRed.\n"
    )
    (place / "bad").mkdir()
    (place / "bad" / "SKILL.md").write_bytes(b"\0\1\2")
    return place


def test_skills_are_listed_with_where_they_are_and_what_is_wrong(
    cli: Callable[..., Any], place: Path
) -> None:
    ended = cli("skills")
    assert ended.code == 0
    assert "pdf  ~/.claude/skills\n      Reads forms: all\n" in ended.out
    assert "using-toolcrib  toolcrib\n" in ended.out
    assert "pdf: Its front matter is not plain YAML" in ended.err
    assert f"{place / 'bad'} is left out: 'SKILL.md' is not text" in ended.err
    listed = {each["name"]: each for each in json.loads(cli("skills", "--json").out)}
    assert listed["pdf"]["frontmatter"] == {"name": "pdf", "description": "Reads forms: all"}


def test_a_skill_is_shown_with_its_files_and_steers_no_terminal(
    cli: Callable[..., Any], place: Path
) -> None:
    ended = cli("skills", "pdf")
    assert ended.code == 0
    assert str(place / "pdf") in ended.out
    assert "references/FORMS.md  6 bytes" in ended.out
    assert "# PDF\n␛[31mRed." in ended.out
    assert json.loads(cli("skills", "pdf", "--json").out)["files"][1]["size"] == 6
    ended = cli("skills", "pfd")
    assert ended.code == 1
    assert "Did you mean: pdf" in ended.err
