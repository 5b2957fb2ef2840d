import json
from contextlib import closing
from pathlib import Path

import pytest

from storage.approvals import ApprovalState, ApprovalStore, Asked
from storage.database import RECORD, Database
from storage.models import Identity
from tests.server.cli.conftest import Command, terminal


def rows(cli: Command, *arguments: str) -> dict[str, str]:
    ended = cli("status", "--json", *arguments)
    assert ended.code == 0
    return {row["subject"]: row["detail"] for row in json.loads(ended.out)}


def test_before_anything_is_stored_there_is_nothing_and_nothing_is_created(
    cli: Command, work: Path
) -> None:
    assert rows(cli)["Stored"] == "nothing yet"
    assert not (work.parent / "data").exists()


def test_status_counts_what_is_stored_and_weighs_the_data_directory(
    cli: Command, work: Path
) -> None:
    cli("import", "notes")
    (work.parent / "data" / "weight").write_bytes(bytes(12_340_000))
    found = rows(cli)
    assert found["Stored"] == "3 documents"
    assert f"{work.parent / 'data'}, 1" in found["Data directory"]
    assert "(weight 12.3, toolcrib.db " in found["Data directory"]
    assert found["Questions"] == "none waiting"


def test_status_names_the_servers_and_the_questions_that_wait(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("import", "notes")
    servers = {"wiki": {"command": "wiki"}, "old": {"command": "old", "enabled": False}}
    monkeypatch.setenv("TOOLCRIB_SERVERS", json.dumps(servers))
    asked = Asked(Identity(), "/", "d1", "bash", "claude", "run make", "", "")
    with closing(Database(work.parent / "data" / RECORD)) as database:
        ApprovalStore(database).open(asked, ApprovalState.PENDING, 60)
    found = rows(cli)
    assert found["MCP servers"] == "wiki, old (not enabled)"
    assert found["Questions"].startswith("1 waiting: ")


def test_status_says_which_clients_have_toolcrib(cli: Command, work: Path) -> None:
    (work.parent / "home" / ".cursor").mkdir(parents=True)
    assert rows(cli)["Cursor"].startswith("without Toolcrib: ")
    assert cli("install", "cursor", "--yes", "--no-hooks").code == 0
    assert rows(cli)["Cursor"].startswith("'toolcrib' in ")


def test_a_damaged_record_is_a_finding_beside_the_others(cli: Command, work: Path) -> None:
    (work.parent / "data").mkdir()
    (work.parent / "data" / RECORD).write_bytes(b"not a database" * 1000)
    assert "not a database" in rows(cli)["Stored"]


def test_without_a_command_a_pipe_gets_the_help(cli: Command) -> None:
    ended = cli()
    assert ended.code == 0
    assert "Usage: toolcrib" in ended.out


@pytest.mark.slow
def test_without_a_command_a_terminal_shows_what_is_here_and_what_is_next(cli: Command) -> None:
    cli("import", "notes")
    with terminal() as shown:
        shown.expect("3 documents")
        shown.expect("install ")
        shown.expect("doctor checks the installation.")
        assert shown.process.wait() == 0


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("toolcrib stat", ["status"]),
        ("toolcrib config uns", ["unset"]),
        ("toolcrib query --dat", ["--data-dir"]),
    ],
)
def test_a_shell_completes_commands_words_and_options(
    cli: Command, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    monkeypatch.setenv("_TOOLCRIB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert cli().out.split() == offered
