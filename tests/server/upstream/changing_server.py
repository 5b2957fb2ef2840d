"""Another server for tests, over stdio, in plain Python: it lists what a file says just then.

Usage: changing_server.py FILE, which holds a JSON list of tools. A call answers the tool's name
and the arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NO_METHOD = {"code": -32601, "message": "Method not found"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "changing", "version": "1"},
            }
        case "tools/list":
            return {"tools": json.loads(Path(sys.argv[1]).read_text())}
        case "tools/call":
            given = params.get("arguments")
            done = f"did {params['name']}" + (f" {json.dumps(given)}" if given else "")
            return {"content": [{"type": "text", "text": done}]}
    raise LookupError(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = answer(message["method"], message.get("params", {}))
    except LookupError:
        reply["error"] = NO_METHOD
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
