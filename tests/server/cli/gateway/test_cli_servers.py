"""`toolcrib servers`, on real servers over stdio and at a real terminal."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from server.upstream.safety.review import Review
from storage.approvals import ApprovalStore, Asked
from storage.catalog.catalog import Pins
from storage.database import Database
from storage.models import Identity
from tests.server.cli.conftest import Command, terminal

pytestmark = pytest.mark.slow


UPSTREAM = Path(__file__).parents[2] / "upstream"
SERVER = UPSTREAM / "changing_server.py"
SKILLED = UPSTREAM / "skilled_server.py"


def a_tool(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


@dataclass
class Upstream:
    """Another server in the settings, called `toy`."""

    file: Path
    data_dir: Path

    def lists(self, *tools: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(tools))

    def accepted(self) -> dict[str, bool]:
        """The tools with a pin, and whether a person made it."""
        with closing(Database(self.data_dir / "toolcrib.db")) as database:
            return {tool: pin.approved for tool, pin in Pins(database).of("toy").items()}


@pytest.fixture
def toy(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    file = tmp_path / "tools.json"
    toy = {"command": sys.executable, "args": [str(SERVER), str(file)]}
    gone = {"command": str(tmp_path / "gone"), "args": ["--api-key", "sk-1234567890abcdef"]}
    off = {"url": "https://ann:geheim@mail.example/mcp?key=geheim", "enabled": False}
    monkeypatch.setenv("TOOLCRIB_SERVERS", json.dumps({"toy": toy, "gone": gone, "off": off}))
    upstream = Upstream(file, tmp_path / "data")
    upstream.lists(a_tool("add", "Adds."), a_tool("sub", "Subtracts.\x1b[2J\u200b"))
    return upstream


def pin(toy: Upstream, name: str, description: str) -> None:
    """Has a definition trusted, as a server does that sees it first."""
    with closing(Database(toy.data_dir / "toolcrib.db")) as database:
        vetting = Review(["toy"], Pins(database))
        vetting.put("toy", [types.Tool.model_validate(a_tool(name, description))], ())
        vetting.judge("toy", trusts=True)


@contextmanager
def answering(
    *arguments: str, typed: str, before: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """What a real terminal shows when this is typed at each question of the command."""
    asked = 0
    with terminal("servers", *arguments) as screen:
        while screen.read():
            if screen.seen.count("[y/N]") > asked:
                asked += 1
                before()
                screen.type(typed)
        yield screen.seen


def test_each_server_is_connected_to(cli: Command, toy: Upstream) -> None:
    ended = cli("servers")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0].startswith("toy  up  ")
    assert "    2 tools, 0 resources, 0 prompts" in lines
    assert "    1 in quarantine: toolcrib servers review toy" in lines
    assert any(line.startswith("gone  down  ") for line in lines)
    assert "off  off  https://mail.example/mcp" in lines


def test_what_a_server_printed_is_shown_and_followed(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"command": "sh", "args": ["-c", "echo no key >&2; exit 3"]}
    monkeypatch.setenv("TOOLCRIB_SERVERS", json.dumps({"shy": ends}))
    assert "shy has printed nothing yet." in cli("servers", "logs", "shy").err
    with terminal("servers", "logs", "shy", "--follow") as screen:
        while "nothing yet" not in screen.seen:
            assert screen.read()
        assert cli("servers").code == 0
        while "(exited with code 3)" not in screen.seen:
            assert screen.read()
        assert "no key" in screen.seen
        screen.type("\x03")
    monkeypatch.setenv("TOOLCRIB_SERVERS", "{}")  # its log outlives it
    assert "no key" in cli("servers", "logs", "shy", "--last", "2").out
    assert cli("servers", "logs", "other").code == 1


def test_the_list_of_tools_tells_the_first_sentence_of_each(cli: Command, toy: Upstream) -> None:
    toy.lists(a_tool("add_" * 10 + "numbers", f"Adds numbers{' and numbers' * 12}. Use it often."))
    assert cli("servers").code == 0
    lines = cli("tools").out.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("toy__add_add_"))
    assert lines[head].endswith("  mcp: execute, external, read, write")
    assert lines[head + 1].strip() == f"Adds numbers{' and numbers' * 12}."


@pytest.mark.parametrize("words", [("tools",), ("search", "--query", "add two numbers")])
def test_servers_that_never_told_their_tools_are_named(
    words: tuple[str, ...], cli: Command, toy: Upstream
) -> None:
    assert "The tools of toy, gone are not known yet: run `toolcrib servers`." in cli(*words).err
    assert cli("servers").code == 0
    assert "The tools of gone are not known yet" in cli(*words).err


def test_no_secret_is_shown(cli: Command, toy: Upstream) -> None:
    ended = cli("servers")
    assert "geheim" not in ended.out
    assert "sk-1234567890abcdef" not in ended.out


def test_the_list_is_there_as_json(cli: Command, toy: Upstream) -> None:
    first, second, third = json.loads(cli("servers", "--json").out)["servers"]
    assert first.pop("reached_by").startswith(sys.executable)  # cut where paths are long
    assert first == {
        "name": "toy",
        "state": "up",
        "problem": "",
        "tools": 2,
        "resources": 0,
        "prompts": 0,
        "skills": 0,
        "quarantined": ["toy__sub"],
    }
    assert (second["name"], second["state"], second["tools"]) == ("gone", "down", None)
    assert "gone" in second["problem"]
    assert (third["name"], third["state"], third["problem"]) == ("off", "off", "")


def test_looking_accepts_nothing(cli: Command, toy: Upstream) -> None:
    cli("servers")
    cli("servers", "review", "toy")
    assert toy.accepted() == {}


def test_without_servers_the_way_to_them_is_said(cli: Command, work: Path) -> None:
    ended = cli("servers")
    assert ended.code == 0
    assert "[servers.everything]" in ended.out


def test_what_is_hidden_is_shown_with_marks(cli: Command, toy: Upstream) -> None:
    out = cli("servers", "review", "toy").out
    assert "toy__sub" in out
    assert "its description has invisible characters (U+001B, U+200B)" in out
    assert "Subtracts.␛[2J<U+200B>" in out
    assert "toy__add" not in out
    assert "\x1b" not in out
    assert "\u200b" not in out


def test_what_changed_is_shown(cli: Command, toy: Upstream) -> None:
    toy.lists(a_tool("add", "Adds."))
    pin(toy, "add", "Adds numbers.\nQuickly.")
    out = cli("servers", "review", "toy").out
    assert "its definition changed after it was accepted" in out
    assert "    -description, line 2: Quickly." in out
    assert '    +description: "Adds."' in out
    assert "inputSchema" not in out


def test_a_server_that_is_down_is_reviewed_by_what_it_offered_last(
    cli: Command, toy: Upstream
) -> None:
    ended = cli("servers", "review", "gone")
    assert ended.code == 0
    assert "Nothing of gone is in quarantine." in ended.out


def test_a_server_that_there_is_not_is_refused(cli: Command, toy: Upstream) -> None:
    ended = cli("servers", "review", "tOy")
    assert ended.code == 1
    assert "'tOy' is not a server in the settings; there are: toy, gone, off." in ended.err


def test_without_a_terminal_nothing_is_approved(cli: Command, toy: Upstream) -> None:
    ended = cli("servers", "approve", "toy", "--all")
    assert ended.code == 1
    assert "requires an interactive terminal" in ended.err
    assert not (toy.data_dir / "toolcrib.db").exists()


@pytest.mark.parametrize("tool", ["toy__sub", "--all"])
def test_a_tool_is_approved_at_a_terminal(toy: Upstream, tool: str) -> None:
    with answering("approve", "toy", tool, typed="y\n") as shown:
        assert "Subtracts.␛[2J<U+200B>" in shown
        assert "toy__sub may be used." in shown
    assert toy.accepted() == {"sub": True}


@pytest.mark.parametrize(("typed", "left"), [("y\n", []), ("n\n", ["toy__sub"])])
def test_what_was_allowed_of_the_tool_as_it_was_ends(
    toy: Upstream, typed: str, left: list[str]
) -> None:
    asked = Asked(Identity("ann"), "/", "d", "toy__sub", "claude", "", "", "toy__sub")
    with closing(Database(toy.data_dir / "toolcrib.db")) as database:
        ApprovalStore(database).grant(asked, by="test", seconds=600)
    with answering("approve", "toy", "sub", typed=typed):
        pass
    with closing(Database(toy.data_dir / "toolcrib.db")) as database:
        assert [grant.rule for grant in ApprovalStore(database).grants()] == left


def test_a_tool_is_not_approved_by_looking_at_it(toy: Upstream) -> None:
    with answering("approve", "toy", "sub", typed="n\n") as shown:
        assert "Accept this definition of toy__sub?" in shown
    assert toy.accepted() == {}


@pytest.mark.parametrize("tools", [[], ["sub", "add"]])
def test_what_is_not_in_quarantine_is_not_approved(toy: Upstream, tools: list[str]) -> None:
    with answering("approve", "toy", *tools, typed="y\n") as shown:
        assert "in quarantine for toy: toy__sub" in shown.replace("\r\n", " ")
    assert toy.accepted() == {}


def test_what_changes_while_it_is_shown_is_not_approved(cli: Command, toy: Upstream) -> None:
    def change() -> None:
        toy.lists(a_tool("sub", "Subtracts.\x1b[2J\u200b And more."))

    with answering("approve", "toy", "sub", typed="y\n", before=change):
        assert toy.accepted() == {"sub": True}
    out = cli("servers", "review", "toy").out
    assert "its definition changed after it was accepted" in out
    assert "And more." in out


def test_a_rule_about_a_tool_of_another_server_is_tested(
    cli: Command, toy: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__ALLOW", "toy__add")
    ended = cli("policy", "test", "toy__add")
    assert ended.out.splitlines()[0] == "allow: toy__add"
    assert "about no tool" not in ended.err


def test_arguments_for_another_server_have_the_types_of_its_schema(
    cli: Command, toy: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__ALLOW", "toy__add")
    number, words = {"type": "number"}, {"type": "array", "items": {"type": "string"}}
    properties = {"a": number, "b": words, "c": {"type": "string"}}
    adds = {**a_tool("add", "Adds."), "inputSchema": {"type": "object", "properties": properties}}
    toy.lists(adds)
    ended = cli("call", "toy__add", "a=2", 'b=["x"]', "c=3")
    assert (ended.code, ended.out) == (0, """did add {"a": 2, "b": ["x"], "c": "3"}\n""")


def test_what_a_server_was_seen_to_offer_is_found(cli: Command, toy: Upstream) -> None:
    cli("servers")
    assert "[1] toy__add" in cli("search", "--query", "adds", "--top-k", "1").out


@pytest.mark.parametrize(
    "words",
    [
        ("search", "--query", "make a directory", "--top-k", "1"),
        ("call", "search_tools", "query=make a directory", "top_k=1"),
    ],
)
def test_the_first_search_of_a_command_goes_by_the_meaning_of_what_servers_offer(
    cli: Command, toy: Upstream, words: Sequence[str]
) -> None:
    toy.lists(a_tool("new_folder", "Creates a directory."), a_tool("edit", "Makes edits."))
    cli("servers")
    cli("search", "--query", "make a directory")  # which has everything embedded
    assert "toy__new_folder" in cli(*words).out


@pytest.fixture
def skilled(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state of a server, called `toy`, with a skill of which nothing can be pinned."""
    file = tmp_path / "skilled.json"
    skill = {
        "uri": "skill://pdf/SKILL.md",
        "frontmatter": {"name": "pdf", "description": "Fills forms."},
        "resources": "dynamic",
    }
    file.write_text(json.dumps({"entries": [[skill]], "files": {}, "blobs": {}}))
    toy = {"command": sys.executable, "args": [str(SKILLED), str(file), "both"]}
    monkeypatch.setenv("TOOLCRIB_SERVERS", json.dumps({"toy": toy}))
    return file


def test_a_skill_is_looked_at_and_approved_as_tools_are(
    cli: Command, skilled: Path, tmp_path: Path
) -> None:
    listed = cli("servers").out
    assert "0 tools, 0 resources, 0 prompts, 1 skill\n" in listed
    assert "1 in quarantine: toolcrib servers review toy" in listed
    reviewed = cli("servers", "review", "toy").out
    assert 'toy/pdf  (its server calls it "skill://pdf/SKILL.md")' in reviewed
    assert "its files are dynamic" in reviewed
    assert 'frontmatter.description: "Fills forms."' in reviewed
    with answering("approve", "toy", "toy/pdf", typed="y\n") as shown:
        assert "toy/pdf may be used." in shown
    assert Upstream(skilled, tmp_path / "data").accepted() == {"skill://pdf/SKILL.md": True}
    assert "Nothing of toy is in quarantine." in cli("servers", "review", "toy").out
    asked = skilled.with_suffix(".asked").read_text()
    assert "SKILL.md" not in asked  # nobody needed the file itself
