"""A server over stdio with one tool, `sh`, which runs a line of a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TOOL = {"name": "sh", "inputSchema": {"type": "object", "required": ["line"]}}


def run(line: str) -> dict[str, Any]:
    argv = ["/bin/bash", "-c", line]
    ran = subprocess.run(
        argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    text = (ran.stdout + ran.stderr).strip()
    return {"content": [{"type": "text", "text": text}], "isError": ran.returncode != 0}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"name": "shell", "version": "1"}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return run(params["arguments"]["line"])
        case _:
            return {}


if len(sys.argv) > 1:
    sys.exit(Path(sys.argv[1]).read_text())
for message in map(json.loads, sys.stdin):
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        sys.stdout.write(
            json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n"
        )
        sys.stdout.flush()
