"""`toolcrib index` reads descriptions of tools, `toolcrib search` finds them and all others."""

import json
import shutil
import subprocess
import sysconfig
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from storage.catalog.catalog import Uses
from storage.database import Database
from storage.models import Identity
from tests.server.cli.conftest import Command

TOOLS = {
    "search.json": {
        "tool_id": "web_lookup",
        "name": "Web Search",
        "description": "Search the internet for current information on any topic",
        "tags": ["search", "web", "retrieval"],
        "capabilities": ["keyword search", "news lookup", "fact checking"],
    },
    "email.json": {
        "tool_id": "send_email",
        "name": "Send Email",
        "description": "Compose and send an email to one or more recipients",
        "tags": ["communication", "email", "messaging"],
        "capabilities": ["send message", "attach files", "cc and bcc"],
    },
    "db.json": {
        "tool_id": "execute_sql",
        "name": "Database Query",
        "description": "Run parameterised SQL queries against a relational database",
        "tags": ["database", "sql", "data"],
        "capabilities": ["select", "insert", "update", "aggregate"],
    },
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory in which every tool was embedded, so that no test waits for that."""
    home = tmp_path_factory.mktemp("embedded")
    _describe(home / "my-tools")
    command = str(Path(sysconfig.get_path("scripts"), "toolcrib"))
    index = [command, "index", "--tools-dir", "my-tools", "--data-dir", "data"]
    subprocess.run(index, cwd=home, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*index, "--remove"], cwd=home, check=True, stdout=subprocess.DEVNULL)
    return home / "data"


@pytest.fixture
def described(work: Path, embedded: Path) -> Path:
    shutil.copytree(embedded, work.parent / "data")
    return _describe(work / "my-tools")


def _describe(folder: Path) -> Path:
    folder.mkdir()
    for name, fields in TOOLS.items():
        (folder / name).write_text(json.dumps(fields))
    return folder


@pytest.fixture
def indexed(cli: Command, described: Path) -> Path:
    ended = cli("index", "--tools-dir", "my-tools")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "Indexed 3 tool(s) from my-tools.\n"
    return described


def _found(cli: Command, query: str, *options: str) -> list[dict[str, Any]]:
    ended = cli("search", "--query", query, "--output-format", "json", *options)
    assert ended.code == 0
    found: list[dict[str, Any]] = json.loads(ended.out)
    return found


def test_what_was_indexed_is_found(cli: Command, indexed: Path) -> None:
    found = _found(cli, "notify the user by email", "--top-k", "3")
    assert found[0].keys() == {"rank", "tool_id", "name", "score", "description"}
    assert found[0]["tool_id"] == "send_email"
    assert found[0]["name"] == "Send Email"
    assert found[0]["description"] == TOOLS["email.json"]["description"]
    assert [each["rank"] for each in found] == list(range(1, len(found) + 1))
    assert len(found) <= 3
    scores = [each["score"] for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 and score == round(score, 4) for score in scores)


def test_a_tool_that_an_agent_created_is_found(
    cli: Command, work: Path, embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(embedded, work.parent / "data")
    monkeypatch.setenv("TOOLCRIB_POLICY__ALLOW", "create_tool")
    source = (
        'def knots(rope: str) -> int:\n    """Counts the knots of a rope."""\n    return len(rope)'
    )
    made = cli("call", "create_tool", "tool_name=knots", f"implementation={source}")
    assert made.code == 0, made.err
    assert _found(cli, "count the knots of a rope")[0]["name"] == "knots"


def test_the_text_form_says_rank_name_score_and_description(cli: Command, indexed: Path) -> None:
    (best,) = _found(cli, "run a database query", "--top-k", "1")
    ended = cli("search", "run a database query", "--top-k", "1")
    assert ended.out == (
        f"  [1] Database Query (score={best['score']:.4f})\n"
        "      Run parameterised SQL queries against a relational database\n"
    )


def test_in_text_a_long_description_is_cut_and_none_leaves_no_line(
    cli: Command, described: Path
) -> None:
    records = [
        {"tool_id": "long", "name": "Gnu", "description": "gnu " * 1_000},
        {"tool_id": "bare", "name": "Gnu Bare"},
    ]
    (described / "gnus.json").write_text(json.dumps(records))
    assert cli("index", "--tools-dir", "my-tools").code == 0
    shown = cli("search", "--query", "gnu", "--top-k", "2").out.splitlines()
    assert len(shown) == 3
    assert max(map(len, shown)) <= 306
    assert len(_found(cli, "gnu", "--top-k", "2")[0]["description"]) > 300


def test_tools_that_can_be_called_are_found_too(cli: Command, described: Path) -> None:
    assert _found(cli, "write_file")[0]["tool_id"] == "write_file"


def test_a_file_may_describe_a_tool_that_has_the_name_of_another(
    cli: Command, described: Path
) -> None:
    record = {"tool_id": "write_file", "name": "write_file", "description": "As elsewhere"}
    (described / "same.json").write_text(json.dumps(record))
    assert cli("index", "--tools-dir", "my-tools").code == 0
    found = _found(cli, "write_file", "--top-k", "2")
    assert [each["tool_id"] for each in found] == ["write_file", "write_file"]
    assert "As elsewhere" in {each["description"] for each in found}


def test_any_of_several_tags_is_enough_in_any_case(cli: Command, indexed: Path) -> None:
    found = _found(cli, "send a query", "--tag", "SQL", "--tag", "messaging")
    assert {each["tool_id"] for each in found} == {"execute_sql", "send_email"}


def test_where_nothing_fits_that_is_said(cli: Command, indexed: Path) -> None:
    ended = cli("search", "--query", "send", "--tag", "no such tag")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "No tool fits; try other words, or fewer tags.\n"
    assert _found(cli, "send", "--tag", "no such tag") == []


def test_malformed_files_are_named_and_the_others_indexed(cli: Command, described: Path) -> None:
    (described / "bad.json").write_text("{")
    ended = cli("index", "--tools-dir", str(described))
    assert ended.code == 0
    assert ended.out == f"Indexed 3 tool(s) from {described}.\n"
    assert ended.err.startswith(f"Warning: skipped {described / 'bad.json'}: is not JSON: ")


def test_files_that_changed_or_went_are_followed(cli: Command, indexed: Path) -> None:
    (indexed / "email.json").unlink()
    changed = {**TOOLS["db.json"], "name": "Ledger", "description": "Looks up the ledger"}
    (indexed / "db.json").write_text(json.dumps(changed))
    ended = cli("index", "--tools-dir", "my-tools")
    assert ended.out == (
        "Indexed 2 tool(s) from my-tools.\nDropped 1 that the files no longer describe.\n"
    )
    assert _found(cli, "Ledger")[0]["name"] == "Ledger"
    assert "send_email" not in {each["tool_id"] for each in _found(cli, "send_email")}


def test_a_directory_that_is_gone_can_be_dropped(cli: Command, indexed: Path) -> None:
    indexed.rename(indexed.with_name("elsewhere"))
    assert cli("index", "--tools-dir", "my-tools").code == 2
    ended = cli("index", "--tools-dir", "my-tools", "--remove")
    assert (ended.code, ended.out) == (0, "Dropped 3 tool(s) of my-tools.\n")
    assert "send_email" not in {each["tool_id"] for each in _found(cli, "send_email")}


@pytest.mark.parametrize("options", [(), ("--remove",), ("--tools-dir", "missing")])
def test_index_says_what_it_needs(cli: Command, work: Path, options: tuple[str, ...]) -> None:
    ended = cli("index", *options)
    assert ended.code == 2
    assert "--tools-dir" in ended.err


@pytest.mark.parametrize(
    "options",
    [("--query", " "), (" ",), (), ("--query", "a", "--top-k", "0"), ("a", "--query", "a")],
)
def test_search_says_what_it_needs(cli: Command, work: Path, options: tuple[str, ...]) -> None:
    assert cli("search", *options).code == 2


def test_what_was_learned_is_forgotten_for_the_own_user_alone(cli: Command, work: Path) -> None:
    with closing(Database(work.parent / "data" / "toolcrib.db")) as database:
        uses = Uses(database)
        for user in ("local", "local", "bob"):
            uses.add(Identity(user), "send a letter", "mail")
        uses.add(Identity("local", "phone"), "call a taxi", "taxi")
        ended = cli("index", "--forget-uses")
        assert (ended.code, ended.out) == (0, "Forgot 2 use(s).\n")
        assert uses.listed(Identity("local")) == []
        assert len(uses.listed(Identity("bob"))) == 1


def test_tools_of_http_apis_are_found(cli: Command, work: Path, described: Path) -> None:
    operation = {"operationId": "listKites", "summary": "Lists kites for hire.", "responses": {}}
    api = {
        "openapi": "3.1.0",
        "info": {"title": "Kites", "version": "1"},
        "servers": [{"url": "https://kites.example"}],
        "paths": {"/kites": {"get": operation}},
    }
    description = work / "kites.json"
    description.write_text(json.dumps(api))
    (work / "toolcrib.toml").write_text(f"[openapi.kites]\ndescription = '{description}'\n")
    found = _found(cli, "hire a kite", "--top-k", "1", "--config", "toolcrib.toml")
    assert [each["name"] for each in found] == ["kites__listKites"]


def test_only_one_kind_is_searched_where_that_is_asked_for(cli: Command, indexed: Path) -> None:
    def found(*only: str) -> set[str]:
        ended = cli("search", "search the web", "--top-k", "50", "--output-format", "json", *only)
        return {each["name"] for each in json.loads(ended.out)}

    records, tools = found("--only", "records"), found("--only", "tools")
    assert "Web Search" in records
    assert "web_search" in tools
    assert not records & tools
