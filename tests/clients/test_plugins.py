"""The packages in `plugins/`, judged by their formats' validators and installed by clients."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

from server.clients.locations import command_path
from tests.clients.programs import FOLDER, PROGRAMS, SEARCH_PATH, Home, Program, run
from tests.clients.wires import Call

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCHEMAS = FOLDER / "schemas"
DECISION = "We decided that the spare key hangs behind the door, because everybody finds it there."
IN_A_PLUGIN = "mcp__plugin_toolcrib_toolcrib"
"""How Claude Code names the server of a plugin."""

INSTALLING: Mapping[str, Sequence[Sequence[str]]] = {
    "claude-code": [
        ("plugin", "marketplace", "add", str(ROOT)),
        ("plugin", "install", "toolcrib@toolcrib"),
    ],
    "codex": [("plugin", "marketplace", "add", str(ROOT)), ("plugin", "add", "toolcrib@toolcrib")],
    "gemini": [("extensions", "install", "--consent", str(ROOT / "plugins" / "gemini"))],
}


@pytest.mark.parametrize(
    "words",
    [
        ("claude", "plugin", "validate", "--strict", "plugins/claude"),
        ("claude", "plugin", "validate", "--strict", "."),
        ("gemini", "extensions", "validate", "plugins/gemini"),
        ("mcpb", "validate", "plugins/mcpb/manifest.json"),
    ],
)
def test_a_validator_accepts_the_package(words: Sequence[str], tmp_path: Path) -> None:
    program = shutil.which(words[0], path=SEARCH_PATH)
    if program is None:
        pytest.skip(f"{words[0]} is not on PATH or in CLIENTS")
    judged = subprocess.run(
        [program, *words[1:]],
        cwd=ROOT,
        env={"HOME": str(tmp_path), "PATH": SEARCH_PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("plugins/agent/plugin.json", "plugin.schema.json"),
        ("plugins/agent/mcp.json", "mcp.schema.json"),
        ("server.json", "server.schema.json"),
    ],
)
def test_a_manifest_fits_the_schema_that_it_names(file: str, schema: str) -> None:
    manifest = json.loads((ROOT / file).read_text("utf-8"))
    assert manifest["$schema"].endswith(schema)
    if not (SCHEMAS / schema).exists():
        pytest.skip(f"{manifest['$schema']} is not in CLIENTS/schemas")
    jsonschema.validate(manifest, json.loads((SCHEMAS / schema).read_text("utf-8")))


def with_plugin(name: str) -> Program:
    """The program of a client, whose user has allowed what the plugin brings."""
    program = PROGRAMS[name]
    if name == "claude-code":
        named = (*program.prompted, "--allowedTools", IN_A_PLUGIN)
        return replace(program, tool=f"{IN_A_PLUGIN}__{{}}", prompted=named)
    trusting = ("--dangerously-bypass-hook-trust",) if name == "codex" else ()
    return replace(program, prompted=(*program.prompted, *trusting))


@pytest.mark.parametrize("name", INSTALLING)
def test_a_client_installs_the_package_with_its_tools_and_hooks(name: str, tmp_path: Path) -> None:
    program = with_plugin(name)
    home = Home(tmp_path / "home", program)
    with home.model([Call("read_file", {"file_path": "note.txt"}), DECISION]) as model:
        for words in INSTALLING[name]:
            ended = run(home, [str(program.path), *words], model, "y\n")
            assert ended.code == 0, ended
        home.prompt(model)
    assert "the keys hang behind the door" in model.asked()[-1].results[0]
    with home.model(["Done."]) as model:
        home.prompt(model, "What now?")
    assert DECISION in json.dumps([each.body for each in model.requests])


@pytest.mark.parametrize("name", INSTALLING)
def test_install_adds_a_plugin_that_uninstall_removes(name: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", with_plugin(name))
    paths = {"PATH": SEARCH_PATH}
    with home.model([Call("read_file", {"file_path": "note.txt"}), DECISION]) as model:
        install = [str(command_path()), "install", name, "--yes"]
        added = run(home, [*install, "--plugin"], model, variables=paths)
        assert added.code == 0, added
        assert "Works in" in added.printed
        again = run(home, install, model, variables=paths)
        assert "has the plugin" in again.printed
        home.prompt(model)
    assert "the keys hang behind the door" in model.asked()[-1].results[0]
    with home.model(["Done."]) as model:
        home.prompt(model, "What now?")
    assert DECISION in json.dumps([each.body for each in model.requests])
    with home.model(["Done."]) as model:
        uninstall = [str(command_path()), "uninstall", "--yes"]
        removed = run(home, uninstall, model, variables=paths)
        assert removed.code == 0, removed
        home.prompt(model)
    assert "toolcrib" not in str(model.asked()[0].tools)
    assert not list((home.path / "data" / "plugins").iterdir())
