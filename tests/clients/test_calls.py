"""The programs of clients list Toolcrib's tools and call them for a scripted model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from server.mcp.surface import EVERYDAY
from tests.clients.programs import CLAUDE_CODE, CODEX, GEMINI, Home
from tests.clients.wires import Call

pytestmark = pytest.mark.slow

READ = Call("read_file", {"file_path": "note.txt"})


def test_a_model_is_shown_the_everyday_tools_and_reads_a_file(home: Home) -> None:
    home.add_server()
    with home.model([READ, "Behind the door."]) as model:
        ended = home.prompt(model)
    assert "Behind the door." in ended.printed, ended
    first, *_, last = model.asked()
    names = {home.program.tool.format(name) for name in EVERYDAY}
    if home.program is CLAUDE_CODE:  # it only names most of them
        names -= {name for name in names if name in "\n".join(first.texts)}
    assert names <= set(first.tools)
    (result,) = last.results
    assert "the keys hang behind the door" in result


def test_a_failed_call_tells_the_model_what_to_do(home: Home) -> None:
    home.add_server()
    with home.model([Call("read_file", {"file_path": "keys.txt"}), "Not there."]) as model:
        home.prompt(model)
    (result,) = model.asked()[-1].results
    assert "not_found: " in result
    assert "Next: " in result


def test_a_large_result_reaches_the_model_as_a_preview(home: Home) -> None:
    home.add_server()
    (home.project / "large.log").write_text("A line of the log.\n" * 10_000 + "The end.")
    with home.model([Call("read_file", {"file_path": "large.log"}), "Done."]) as model:
        home.prompt(model)
    (result,) = model.asked()[-1].results
    assert "read_result(handle=" in result
    assert "The end." in result
    assert len(result) < 8_000


def test_claude_code_shows_the_marked_tools_and_finds_the_others(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", CLAUDE_CODE)
    home.add_server()
    search = Call("ToolSearch", {"query": "run a shell command", "max_results": 20})
    with home.model([search, Call("bash", {"command": "echo hello"}), "Done."]) as model:
        home.prompt(model)
    first, second, last = model.asked()
    tool = CLAUDE_CODE.tool.format
    marked = {tool(name) for name in ("call_tool", "query", "remember", "run_code", "search_tools")}
    assert {name for name in first.tools if "toolcrib" in name} == marked
    assert tool("bash") in second.tools
    assert "hello" in last.results[-1]


@pytest.mark.parametrize("approves", [True, False])
def test_codex_calls_what_changes_things_if_its_table_approves(
    tmp_path: Path, *, approves: bool
) -> None:
    home = Home(tmp_path / "home", CODEX)
    home.add_server()
    config = home.path / CODEX.file
    approval = 'default_tools_approval_mode = "approve"\n'
    assert approval in config.read_text("utf-8")
    if not approves:
        config.write_text(config.read_text("utf-8").replace(approval, ""), "utf-8")
    write = Call("write_file", {"file_path": "new.txt", "content": "a spare key\n"})
    with home.model([write, "Done."]) as model:
        home.prompt(model)
    assert (home.project / "new.txt").exists() is approves
    assert ("approval policy is never" in model.asked()[-1].results[0]) is not approves


@pytest.mark.parametrize("trusts", [True, False])
def test_gemini_starts_servers_only_in_a_folder_that_is_trusted(
    tmp_path: Path, *, trusts: bool
) -> None:
    trusted = {str(tmp_path): "TRUST_FOLDER"} if trusts else {}
    words = [each for each in GEMINI.prompted if each != "--skip-trust"]
    home = Home(tmp_path / "home", replace(GEMINI, prompted=words))
    home.write(".gemini/trustedFolders.json", json.dumps(trusted))
    home.add_server()
    with home.model(["Done."]) as model:
        home.prompt(model)
    assert any("toolcrib" in name for each in model.asked() for name in each.tools) is trusts
