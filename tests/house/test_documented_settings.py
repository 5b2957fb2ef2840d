from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from server.settings import Settings

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"
FIELDS = dict(Settings.fields())
BY_SETTING = pytest.mark.parametrize("key", FIELDS)


@BY_SETTING
def test_a_setting_says_what_it_means(key: str) -> None:
    field: FieldInfo = FIELDS[key]
    assert field.description, (
        f"{key} has no description: give it Field(description=…) in server/settings/settings.py."
    )


@BY_SETTING
def test_a_setting_has_a_line_in_the_docs_that_means_the_same(key: str) -> None:
    rows = [
        line for line in DOCS.read_text(encoding="utf-8").splitlines() if f"| `{key}` |" in line
    ]
    assert rows, f"docs/settings.md has no line for {key}: add '| `{key}` | default | meaning |'."
    assert str(FIELDS[key].description) in rows[0].replace("`", ""), (
        f"docs/settings.md says something else of {key} than its description."
    )


def test_the_docs_name_no_setting_that_is_gone() -> None:
    rows = [
        line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert [row.split("`")[1] for row in rows] == list(FIELDS), (
        "docs/settings.md lists the settings in the order of `Settings`, each once."
    )
