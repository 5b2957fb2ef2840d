"""`toolcrib backup`, `restore`, `export` and `rebuild`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.conftest import Command


@pytest.fixture
def data(cli: Command, work: Path) -> Path:
    """A data directory with three documents."""
    assert cli("import", "notes").code == 0
    return work.parent / "data"


def hits(cli: Command, *more: str) -> Any:
    return json.loads(cli("query", "sourdough loaf", "--json", *more).out)["hits"]


def test_a_backup_is_restored_to_another_directory_and_finds_the_same(
    cli: Command, data: Path, work: Path
) -> None:
    before = hits(cli)
    made = cli("backup", "copy")
    assert made.code == 0
    assert made.out.startswith(f"Copied 3 contexts to {work / 'copy'} (")
    again = cli("backup", "copy")
    assert (again.code, again.out) == (1, "")
    assert again.err.splitlines()[-2:] == [
        f"Error: {work / 'copy'} exists.",
        "Name another file, or --force to replace it.",
    ]
    assert cli("backup", "copy", "--force").code == 0
    restored = cli("restore", "copy", "--data-dir", "elsewhere")
    assert (restored.code, restored.out) == (0, f"Restored {work / 'elsewhere'}.\n")
    assert hits(cli, "--data-dir", "elsewhere") == before != []
    assert cli("doctor", "--data-dir", "elsewhere").code == 0
    with closing(sqlite3.connect(data / "toolcrib.db")) as one:
        name = one.execute("SELECT value FROM meta WHERE key = 'library'").fetchone()
    with closing(sqlite3.connect(work / "elsewhere" / "toolcrib.db")) as other:
        assert other.execute("SELECT value FROM meta WHERE key = 'library'").fetchone() != name


def test_a_restore_moves_what_is_there_aside_by_force_alone(
    cli: Command, data: Path, work: Path
) -> None:
    cli("backup", "copy")
    cli("delete", "notes/bread.md", "--yes")
    refused = cli("restore", "copy")
    assert refused.code == 1
    assert f"Error: {data} is not empty." in refused.err
    assert "Bread" not in {hit["title"] for hit in hits(cli)}
    restored = cli("restore", "copy", "--force")
    assert restored.code == 0
    (aside,) = data.parent.glob("data-until-*")
    assert f"The previous data is now in {aside}" in restored.out
    assert "Bread" in {hit["title"] for hit in hits(cli)}
    assert "Bread" not in {hit["title"] for hit in hits(cli, "--data-dir", str(aside))}


def test_what_is_no_backup_is_refused_in_a_line(cli: Command, work: Path) -> None:
    ended = cli("restore", "notes/bread.md")
    assert (ended.code, ended.out) == (1, "")
    assert "cannot be restored: file is not a database" in ended.err
    assert not (work.parent / "data").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("backup", "copy"),
        ("export", "out"),
        ("export", "out", "--format", "markdown"),
        ("rebuild",),
    ],
)
def test_nothing_to_keep_is_told_and_nothing_is_made(
    cli: Command, work: Path, arguments: tuple[str, ...]
) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (1, "")
    assert f"Error: Nothing is stored in {work.parent / 'data'}." in ended.err
    assert [path.name for path in work.iterdir()] == ["notes"]
    assert not (work.parent / "data" / "toolcrib.db").exists()


def test_an_export_is_of_the_configured_identity_or_of_all(
    cli: Command, data: Path, work: Path
) -> None:
    bobs = {"text": "Bob's own.", "title": "Bob", "user_id": "bob"}
    assert cli("call", "add_document", "--json", json.dumps(bobs)).code == 0
    mine = cli("export", "mine.jsonl")
    assert (mine.code, mine.out) == (0, f"Wrote 3 records to {work / 'mine.jsonl'}.\n")
    everybody = cli("export", "all.jsonl", "--all")
    assert everybody.out == f"Wrote 6 records to {work / 'all.jsonl'}.\n"  # with Bob's own call
    lines = [json.loads(line) for line in (work / "mine.jsonl").read_text().splitlines()]
    assert [line["record"] for line in lines] == ["toolcrib", "context", "context", "context"]
    folder = cli("export", "folder", "--format", "markdown")
    assert folder.out == f"Wrote 3 files to {work / 'folder'}.\n"
    assert len(list((work / "folder" / "document").glob("*.md"))) == 3
    assert cli("export", "folder", "--format", "markdown").code == 1
    assert cli("export", "mine.jsonl").code == 1


def test_a_rebuild_makes_both_indexes_anew_and_finds_the_same(cli: Command, data: Path) -> None:
    before = hits(cli)
    with closing(sqlite3.connect(data / "toolcrib.db")) as connection:
        connection.execute("DELETE FROM lexical_fresh")
        connection.commit()
    ended = cli("rebuild")
    assert (ended.code, ended.out) == (0, "Indexed 3 chunks by their words.\n")
    assert hits(cli) == before != []
    assert cli("doctor").code == 0
