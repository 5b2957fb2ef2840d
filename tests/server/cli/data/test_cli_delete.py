import io
import json
from pathlib import Path

import pytest

from tests.server.cli.conftest import Command


@pytest.mark.parametrize("source", ["notes/bread.md", "./notes/../notes/bread.md"])
def test_a_file_is_deleted_by_its_stored_name_or_its_path(
    cli: Command, work: Path, source: str
) -> None:
    cli("add", "notes")
    ended = cli("delete", source, "--yes")
    assert (ended.code, ended.out) == (0, "Deleted 'Bread' (notes/bread.md, 1 chunk).\n")
    assert (work / "notes" / "bread.md").exists()
    assert "Bread" not in cli("query", "sourdough loaf").out


def test_another_source_is_deleted_as_query_shows_it(cli: Command) -> None:
    text = {"text": "The crane lifts.", "raw_type": "note", "raw_id": "crane 7"}
    cli("call", "add_document", "--json", json.dumps(text))
    assert "    note: crane 7" in cli("query", "crane").out
    assert cli("delete", "note: crane 7", "-y").code == 0
    assert cli("query", "crane").out == "Nothing is stored yet.\n"


def test_what_is_not_stored_is_exit_code_1_with_the_near_names(cli: Command) -> None:
    cli("add", "notes/bread.md")
    ended = cli("delete", "notes/braed.md", "--yes")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines()[:2] == [
        "Error: 'notes/braed.md' is not stored.",
        "Did you mean: notes/bread.md",
    ]


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("", 1, 1)])
def test_it_asks_and_without_a_yes_nothing_is_deleted(
    cli: Command, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    cli("add", "notes/bread.md")
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    ended = cli("delete", "notes/bread.md")
    assert ended.code == code
    assert "Delete 'Bread' (notes/bread.md, 1 chunk)? [y/N]" in ended.err
    assert json.loads(cli("query", "bread", "--json").out)["coverage"]["total"] == left
