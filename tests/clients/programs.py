"""The programs of MCP clients, started with a home of their own and a scripted model."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from server.clients.client import Launch
from server.clients.locations import OwnAddress, command_path
from server.clients.pieces import Piece, plan
from server.clients.table import CLIENTS
from tests.clients.scripted_model import Script, ScriptedModel, scripted_model

FOLDER = Path(os.environ.get("CLIENTS", "/nowhere"))
"""The folder into which npm has installed the programs, if they are not on PATH."""

SEARCH_PATH = os.pathsep.join([str(FOLDER / "node_modules" / ".bin"), os.environ["PATH"]])
SECONDS = 90


@dataclass(frozen=True, slots=True)
class Program:
    """A client: `{model}` in its arguments and variables is the address of its model."""

    name: str
    command: str
    prompted: Sequence[str]  # arguments that answer one prompt from standard input
    tool: str  # the name that its model sees for the tool `{}`
    # what makes it ask the scripted model
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    file: str = ""  # with its servers

    @property
    def path(self) -> str | None:
        return shutil.which(self.command, path=SEARCH_PATH)


OPENCODE_MODEL = {
    "autoupdate": False,
    "share": "disabled",
    "model": "scripted/scripted",
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{model}/v1", "apiKey": "none"},
            "models": {"scripted": {}},
        }
    },
}

GEMINI_SETTINGS = ".gemini/settings.json"

CLAUDE_CODE = Program(
    "claude-code",
    "claude",
    ("-p", "--allowedTools", "mcp__toolcrib"),
    "mcp__toolcrib__{}",
    environment={
        "ANTHROPIC_BASE_URL": "{model}",
        "ANTHROPIC_API_KEY": "sk-ant-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "MCP_CONNECTION_NONBLOCKING": "false",  # else a busy machine's first turn has no server
    },
    file=".claude.json",
)
CODEX = Program(
    "codex",
    "codex",
    ("exec", "--skip-git-repo-check"),
    "mcp__toolcrib/{}",
    arguments=(
        *("-c", 'model_provider="scripted"', "-c", 'model="scripted"'),
        *("-c", 'model_providers.scripted.name="scripted"'),
        *("-c", 'model_providers.scripted.base_url="{model}/v1"'),
        *("-c", 'model_providers.scripted.wire_api="responses"'),
        *("-c", "mcp_optional_startup_grace_ms=30000"),  # else a busy machine's turn has no server
    ),
    file=".codex/config.toml",
)
GEMINI = Program(
    "gemini",
    "gemini",
    ("--skip-trust", "--approval-mode", "yolo"),
    "mcp_toolcrib_{}",
    arguments=("-m", "gemini-2.5-pro"),
    environment={"GOOGLE_GEMINI_BASE_URL": "{model}", "GEMINI_API_KEY": "none"},
    files={GEMINI_SETTINGS: '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
    file=GEMINI_SETTINGS,
)
OPENCODE = Program(
    "opencode",
    "opencode",
    ("run",),
    "toolcrib_{}",
    environment={
        "OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE_MODEL),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    file=".config/opencode/opencode.json",
)
COPILOT = Program(
    "copilot",
    "copilot",
    ("--allow-all-tools", "--no-auto-update", "-s"),
    "toolcrib-{}",
    environment={
        "COPILOT_PROVIDER_BASE_URL": "{model}/v1",
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
    },
    file=".copilot/mcp-config.json",
)

PROGRAMS = {each.name: each for each in (CLAUDE_CODE, CODEX, GEMINI, OPENCODE, COPILOT)}


@dataclass(frozen=True, slots=True)
class Ended:
    """What a client printed until it ended."""

    code: int
    printed: str
    complaints: str


class Home:
    """The home of a user with one client, whose project has a note about keys."""

    def __init__(self, path: Path, program: Program) -> None:
        if program.path is None:
            pytest.skip(f"{program.command} is not on PATH or in CLIENTS (a folder of npm)")
        self.path = path
        self.program = program
        self.project = path / "project"
        self.project.mkdir(parents=True)
        (self.project / "note.txt").write_text("the keys hang behind the door\n")
        for name, text in program.files.items():
            self.write(name, text)

    def model(self, script: Script) -> AbstractContextManager[ScriptedModel]:
        """A model that knows the names that this client gives to tools."""
        return scripted_model(script, self.program.tool)

    @property
    def serving(self) -> list[str]:
        """The arguments that serve the project."""
        return ["serve", "--root", str(self.project), "--data-dir", str(self.path / "data")]

    def add_server(self) -> None:
        """Adds Toolcrib to the client's file, in the form that `toolcrib install` writes."""
        client = CLIENTS[self.program.name]
        value = client.shape(Launch(str(command_path()), tuple(self.serving)))
        keys = (*client.tables[0], "toolcrib")
        piece = Piece(client.name, self.path / self.program.file, client.kind, keys, value)
        for change in plan([piece], OwnAddress("127.0.0.1", 1)).changes:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            change.path.write_bytes(change.after or b"")

    def write(self, name: str, text: str) -> None:
        """Writes a file; what a JSON file says already stays."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            text = json.dumps({**json.loads(path.read_text("utf-8")), **json.loads(text)})
        path.write_text(text, encoding="utf-8")

    def environment(self, model: ScriptedModel) -> dict[str, str]:
        """Variables without those of this user, whose proxy refuses every other host."""
        values = {"{model}": model.url}
        given = {name: _filled(each, values) for name, each in self.program.environment.items()}
        node = Path(shutil.which("node", path=os.environ["PATH"]) or "/usr/bin/node")
        return {
            "PATH": os.pathsep.join([*map(str, (command_path().parent, node.parent)), "/usr/bin"]),
            "HOME": str(self.path),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "HTTP_PROXY": model.url,
            "HTTPS_PROXY": model.url,
            "NO_PROXY": "127.0.0.1,localhost",
            "TOOLCRIB_DATA_DIR": str(self.path / "data"),
            **given,
        }

    def command(self, model: ScriptedModel, *words: str) -> list[str]:
        given = [_filled(each, {"{model}": model.url}) for each in self.program.arguments]
        return [str(self.program.path), *words, *given]

    def prompt(self, model: ScriptedModel, text: str = "Find the keys.", *words: str) -> Ended:
        """Has the client answer one prompt."""
        return run(self, self.command(model, *self.program.prompted, *words), model, text)


def run(
    home: Home,
    command: Sequence[str],
    model: ScriptedModel,
    text: str = "",
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Runs a program of a client until it ends; what it started is killed with it."""
    with subprocess.Popen(
        command,
        cwd=home.project,
        env={**home.environment(model), **(variables or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, complaints = process.communicate(text, timeout=SECONDS)
        finally:
            end_group(process.pid)
    return Ended(process.returncode, printed, complaints)


def end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
