"""`toolcrib import` of what `toolcrib export` wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.conftest import Command


@pytest.fixture
def exported(cli: Command, work: Path) -> Path:
    """An export of three documents, outside of the root."""
    assert cli("call", "save_profile", "summary=Ann bakes.").code == 0
    assert cli("import", "notes").code == 0  # it embeds what waits
    target = work.parent / "mine.jsonl"
    assert cli("export", str(target)).code == 0
    return target


def hits(cli: Command, *more: str) -> Any:
    found = json.loads(cli("query", "sourdough loaf", "--json", *more).out)["hits"]
    return [{**hit, "id": ""} for hit in found]


def records(path: Path) -> list[Any]:
    """The records but for sessions and entries: commands are recorded too."""
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [each for each in told if each["record"] not in {"session", "entry"}]


def test_an_export_is_imported_elsewhere_and_finds_the_same_and_a_second_time_changes_nothing(
    cli: Command, work: Path, exported: Path
) -> None:
    count = len(exported.read_text(encoding="utf-8").splitlines()) - 1
    there = ("--data-dir", "elsewhere")
    ended = cli("import", str(exported), *there)
    assert (ended.code, ended.out) == (0, f"{count} added\n")
    assert hits(cli, *there) == hits(cli) != []
    again = cli("import", str(exported), *there)
    assert (again.code, again.out) == (0, f"{count} unchanged\n")
    assert cli("export", "again.jsonl", *there).code == 0
    assert records(work / "again.jsonl") == records(exported)


def test_another_persons_export_stays_theirs_unless_it_is_to_be_mine(
    cli: Command, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_IDENTITY__USER_ID", "bob")
    there = ("--data-dir", "elsewhere")
    ended = cli("import", str(exported), *there)
    assert ended.code == 0
    assert "of 'local'; you are 'bob': with --as-me it is stored as yours" in ended.err
    assert hits(cli, *there) == []
    mine = cli("import", str(exported), "--as-me", *there)
    assert "--as-me" not in mine.err
    assert len(hits(cli, *there)) > 0


def test_a_damaged_export_is_refused_with_its_line_and_exits_with_1(
    cli: Command, exported: Path
) -> None:
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    exported.write_text("".join([*lines[:2], lines[2][:50]]), encoding="utf-8")
    ended = cli("import", str(exported), "--data-dir", "elsewhere")
    assert ended.code == 1
    assert f"'{exported}' is not a valid export: line 3: the file ends within it" in ended.err
    assert "1 skipped" in ended.out
    assert cli("export", "none.jsonl", "--data-dir", "elsewhere").out.startswith("Wrote 0 records")


def test_an_export_in_a_folder_is_not_taken_in_unasked(
    cli: Command, work: Path, exported: Path
) -> None:
    exported.rename(work / "notes" / "mine.jsonl")
    ended = cli("import", "notes", "--data-dir", "elsewhere")
    assert ended.code == 0
    assert ended.out.startswith("3 added, 1 skipped\n")
    assert "is an export of Toolcrib" in ended.err


def test_as_me_goes_with_an_export_alone(cli: Command) -> None:
    ended = cli("import", "notes", "--as-me")
    assert ended.code == 2
    assert "name a file that `toolcrib export` wrote" in " ".join(ended.err.split())
