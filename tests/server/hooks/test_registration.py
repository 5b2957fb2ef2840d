import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import OwnAddress, command_path
from server.clients.pieces import Format, plan
from server.hooks.payloads import CLIENTS
from server.hooks.registration import hook_pieces
from storage.database import RECORD, Database
from storage.memory.captured import last_fired

OWN = OwnAddress("127.0.0.1", 8765)
NODE = shutil.which("node")
PLUGIN_TEST = """
import {{ ToolcribMemory }} from {plugin};
const hooks = await ToolcribMemory({{ directory: {project} }});
const report = (type, properties) => hooks.event({{ event: {{ type, properties }} }});
const say = async (sessionID) => {{
  const parts = [{{ type: "text", text: "Which tabs?" }}];
  await hooks["chat.message"]({{ sessionID }}, {{ parts }});
  const messageID = `${{sessionID}}-answer`;
  await report("message.updated", {{ info: {{ role: "assistant", id: messageID, sessionID }} }});
  const part = {{ type: "text", id: "1", messageID, sessionID, text: "We agreed on tabs." }};
  await report("message.part.updated", {{ part }});
  await report("session.idle", {{ sessionID }});
}};
await say("one");
const info = {{ id: "child", parentID: "one" }};
await report("session.created", {{ info }});
await say("child");
const output = {{ system: [] }};
await hooks["experimental.chat.system.transform"]({{ sessionID: "two" }}, output);
console.log(JSON.stringify(output.system));
"""


@pytest.mark.parametrize("name", CLIENTS)
def test_the_pieces_can_be_written_and_start_every_hook(tmp_path: Path, name: str) -> None:
    command = ["/opt/uvx", "--from", "/opt/tool crib", "/opt/tool crib/toolcrib"]
    options = ["--data-dir", str(tmp_path / "data")]
    made = plan(hook_pieces(name, command, tmp_path / "shop", options), OWN)
    assert made.refusals == []
    written = b"".join(change.after or b"" for change in made.changes).decode()
    for event in CLIENTS[name].events:
        is_script = name == "opencode"
        words = f'"{name}", "EVENT"' if is_script else f"hook {name} {event} --data-dir"
        assert words in written
    assert "/opt/tool crib/toolcrib" in written


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "cursor"])
def test_hooks_of_the_user_are_kept(tmp_path: Path, name: str) -> None:
    pieces = hook_pieces(name, ["/opt/toolcrib"], tmp_path)
    file = pieces[-1].file
    event = pieces[-1].keys[-1]
    theirs = {"command": "echo mine", "hooks": []}
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"hooks": {event: [theirs]}}), encoding="utf-8")
    (change,) = plan(pieces, OWN).changes
    after: Any = json.loads(change.after or b"")
    assert after["hooks"][event][0] == theirs
    assert len(after["hooks"][event]) == 2
    file.write_bytes(change.after or b"")
    assert not plan(pieces, OWN).changes[0].is_needed
    moved = hook_pieces(name, ["/elsewhere/bin/toolcrib"], tmp_path)
    (change,) = plan(moved, OWN).changes
    assert b"/opt/toolcrib" not in (change.after or b"")  # an upgrade replaces ours


def test_events_go_to_a_running_server_instead_and_back(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    ways: list[set[str]] = []
    for url in ("", "http://127.0.0.1:8765", "http://127.0.0.1:9000", ""):
        pieces = hook_pieces("claude-code", ["/opt/toolcrib"], tmp_path, url=url)
        (change,) = plan(pieces, OWN).changes
        file.write_bytes(change.after or b"")
        hooks = json.loads(file.read_bytes())["hooks"]
        assert {len(groups) for groups in hooks.values()} == {1}
        handlers = {event: groups[0]["hooks"][0] for event, groups in hooks.items()}
        assert handlers["SessionStart"]["type"] == "command"  # Claude Code takes no other
        ways.append({each.get("url", each["type"]) for each in handlers.values()})
    assert ways[0] == ways[3] == {"command"}
    events = CLIENTS["claude-code"].events.keys() - {"SessionStart"}
    paths = {f"/hooks/claude-code/{event}" for event in events}
    assert ways[1] == {"command", *(f"http://127.0.0.1:8765{path}" for path in paths)}
    assert ways[2] == {"command", *(f"http://127.0.0.1:9000{path}" for path in paths)}


def test_without_a_project_they_are_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    files = {
        name: {str(piece.file.relative_to(tmp_path)) for piece in hook_pieces(name, ["toolcrib"])}
        for name in CLIENTS
    }
    assert files == {
        "claude-code": {".claude/settings.json"},
        "codex": {".codex/hooks.json"},
        "gemini": {".gemini/settings.json"},
        "cursor": {".cursor/hooks.json"},
        "copilot": set(),
        "opencode": {".config/opencode/plugins/toolcrib.js"},
    }


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/toolcrib.js"),
    ],
)
def test_they_are_in_the_folder_that_a_variable_names(
    tmp_path: Path, name: str, variable: str, file: str
) -> None:
    environ = {variable: str(tmp_path / "moved")}
    pieces = hook_pieces(name, ["toolcrib"], environ=environ)
    assert {piece.file for piece in pieces} == {tmp_path / "moved" / file}
    pieces = hook_pieces(name, ["toolcrib"], tmp_path / "shop", environ=environ)
    assert all(piece.file.is_relative_to(tmp_path / "shop") for piece in pieces)


def test_a_client_without_hooks_has_no_pieces(tmp_path: Path) -> None:
    assert hook_pieces("claude-desktop", ["toolcrib"], tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="Node.js runs the plugin")
def test_the_plugin_of_opencode_reports_turns_and_shows_them(tmp_path: Path) -> None:
    options = ["--data-dir", str(tmp_path / "data")]
    (piece,) = hook_pieces("opencode", [str(command_path())], tmp_path, options)
    assert piece.format is Format.WHOLE
    plugin = tmp_path / "toolcrib.mjs"
    plugin.write_text(piece.value, encoding="utf-8")
    script = tmp_path / "test.mjs"
    script.write_text(
        PLUGIN_TEST.format(plugin=json.dumps(str(plugin)), project=json.dumps(str(tmp_path))),
        encoding="utf-8",
    )
    done = subprocess.run([str(NODE), script], capture_output=True, text=True, check=True)
    (shown,) = json.loads(done.stdout)
    assert "We agreed on tabs." in shown
    database = Database(tmp_path / "data" / RECORD)
    sessions = database.rows("SELECT DISTINCT session_id FROM entries WHERE action LIKE '%answer'")
    assert [row[0] for row in sessions] == ["one"]
    assert last_fired(database)["opencode"][0] == "session.created"
    database.close()
