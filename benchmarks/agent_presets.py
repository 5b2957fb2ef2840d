"""Holds the presets of agents against the installed programs: flags, files, the MCP server.

    python -m benchmarks.agent_presets --path DIR    # DIR has claude, codex, gemini, opencode

No model is asked: a server on loopback stands for Toolcrib, and another for the model's API, which
refuses. Of each program it is told whether it takes its flags and finds Toolcrib with its token.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tools.agent.agents.agent import PRESETS, TOKEN_VARIABLE, Agent, fill
from tools.agent.agents.programs import mcp_config

SECONDS = 40

ENDPOINTS = {
    "claude-code": {"ANTHROPIC_BASE_URL": "{api}", "ANTHROPIC_API_KEY": "sk-ant-none"},
    "codex": {"OPENAI_BASE_URL": "{api}/v1", "CODEX_API_KEY": "sk-none"},
    "gemini": {"GEMINI_API_KEY": "none"},
    "opencode": {"ANTHROPIC_API_KEY": "sk-ant-none", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
}
"""What has each of them ask the server that refuses, instead of a model."""


class Server(ThreadingHTTPServer):
    """Stands for Toolcrib at /mcp, and for a model's API that refuses anywhere else."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.authorized: set[str] = set()
        self.prompted: list[str] = []


class Handler(BaseHTTPRequestHandler):
    """Answers one of them."""

    server: Server

    def do_POST(self) -> None:
        """Answers Toolcrib's requests, and refuses those to a model."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.startswith("/mcp"):
            self.server.prompted.append(body.decode(errors="replace"))
            self._answer(400, {"error": {"message": "no model here", "type": "invalid_request"}})
            return
        self.server.authorized.add(self.headers.get("Authorization", ""))
        asked = json.loads(body)
        if "id" not in asked:
            self._answer(202, None)
            return
        known: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "toolcrib", "version": "0"},
            },
            "tools/list": {"tools": []},
        }
        found = known.get(asked["method"])
        said = {"result": found} if found else {"error": {"code": -32601, "message": "unknown"}}
        self._answer(200, {"jsonrpc": "2.0", "id": asked["id"], **said})

    def do_GET(self) -> None:
        """Offers no stream."""
        self._answer(405, None)

    def _answer(self, status: int, value: object) -> None:
        content = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_given: object) -> None:
        """Says nothing."""


def run(agent: Agent, path: str, home: Path) -> Mapping[str, object]:
    """Runs a preset's program on a task that begins like an option; tells what it did."""
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        url = f"{base}/mcp"
        values = {"url": url, "mcp_config": mcp_config(url), "cost": "1", "prompt": ""}
        for name, text in agent.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(fill(text, values), encoding="utf-8")
        words = (*agent.argv, *agent.confined, *agent.budget)
        endpoints = {name: filled_api(text, base) for name, text in ENDPOINTS[agent.name].items()}
        environment = {
            "PATH": path,
            "HOME": str(home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            TOKEN_VARIABLE: "the-token",
            "NO_PROXY": "127.0.0.1",
            **endpoints,
        }
        work = home / "work"
        work.mkdir(exist_ok=True)
        try:
            done = subprocess.run(  # a program of a preset
                [fill(word, values) for word in words],
                cwd=work,
                env=environment,
                input="Task: --help kingfisher",
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            ended, said = str(done.returncode), f"{done.stdout[-300:]} {done.stderr[-300:]}"
        except subprocess.TimeoutExpired as error:
            ended, said = "timed out", str(error.stderr)[-300:]
        server.shutdown()
        return {
            "finds Toolcrib with its token": "Bearer the-token" in server.authorized,
            "sends the task to its model": any("kingfisher" in each for each in server.prompted),
            "exit code": ended,
            "said": " ".join(said.split()),
        }


def filled_api(text: str, base: str) -> str:
    """A variable with the address of the API that refuses."""
    return text.replace("{api}", f"{base}/api")


def main() -> None:
    """Tells of each preset what its program does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", default="", help="a folder with the programs, beside PATH")
    path = f"{parser.parse_args().path}:{os.environ['PATH']}"
    for name, agent in PRESETS.items():
        if shutil.which(agent.argv[0], path=path) is None:
            print(f"{name}: not installed")
            continue
        with tempfile.TemporaryDirectory() as home:
            found = run(agent, path, Path(home))
        print(f"{name}:", *(f"  {what}: {told}" for what, told in found.items()), sep="\n")


if __name__ == "__main__":
    main()
