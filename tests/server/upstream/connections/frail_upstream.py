"""A server over stdio with many faults: frail_upstream.py DIRECTORY.

In the directory are its switches (`switches.json`), and the journal that it writes: a line
`started PID` each time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PLACE = Path(sys.argv[1])
FILE = PLACE / "switches.json"
SWITCHES: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
VERSION = "2025-11-25"
KEPT: list[str] = []
MORE: list[str] = []


def write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def send(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": SWITCHES.get("description", f"Does {name}."),
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "required": ["text"]},
    }


def listed(params: dict[str, Any]) -> dict[str, Any]:
    if SWITCHES.get("endless"):
        page = int(params.get("cursor", "0"))
        return {"tools": [tool(f"tool_{page}")], "nextCursor": str(page + 1)}
    if SWITCHES.get("same_cursor"):
        return {"tools": [tool("echo")], "nextCursor": "again"}
    names = ["echo", "crash", *SWITCHES.get("tools", []), *MORE]
    return {"tools": [tool(name) for name in names]}


def initialized(params: dict[str, Any]) -> dict[str, Any]:
    known = params.get("protocolVersion", VERSION)
    return {
        "protocolVersion": known,
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "frail", "version": "1"},
    }


def call(number: int | None, name: str, arguments: dict[str, Any]) -> str | None:  # noqa: C901, PLR0911, PLR0912  # one case a fault
    """What a tool answers; None for what is no answer."""
    text = str(arguments.get("text", ""))
    match name:
        case "crash":
            sys.stderr.write("the last words\n")
            sys.stderr.flush()
            os._exit(7)
        case "hang":
            while True:
                time.sleep(60)
        case "malformed":
            write(f'{{"jsonrpc": "2.0", "id": {number}, "result": {{')
            return None
        case "wrong":
            send(id=number, result="no object")
            return None
        case "huge":
            write("x" * (40 << 20))
            return None
        case "flood":
            while True:
                send(method="notifications/message", params={"level": "info", "data": "x"})
        case "grow":
            MORE.append(text)
            send(method="notifications/tools/list_changed")
            send(method="notifications/tools/list_changed")
        case "keep":
            KEPT.append(text)
            return " ".join(KEPT)
        case "leave":
            left = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
            return str(left.pid)
        case "variable":
            return os.environ.get(text, "")
        case "say":
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
    return text or name


def answer(message: dict[str, Any]) -> None:
    number, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "server/discover":
            if SWITCHES.get("ends_on_discover"):
                sys.exit(1)
            for line in SWITCHES.get("says_on_discover", ()):
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
            send(id=number, error={"code": -32601, "message": "Method not found"})
        case "initialize":
            send(id=number, result=initialized(params))
        case "tools/list":
            send(id=number, result=listed(params))
        case "tools/call":
            text = call(number, params["name"], params.get("arguments") or {})
            if text is not None:
                send(id=number, result={"content": [{"type": "text", "text": text}]})
        case _ if number is not None and "method" in message:
            send(id=number, error={"code": -32601, "message": "Method not found"})


def main() -> None:
    with (PLACE / "journal").open("a") as journal:
        journal.write(f"started {os.getpid()}\n")
    if "exits" in SWITCHES:
        sys.stderr.write("no token was given.\n")
        sys.exit(SWITCHES["exits"])
    write(SWITCHES.get("junk", ""))
    for line in sys.stdin:
        if SWITCHES.get("silent"):
            sys.stderr.write("waits for the database\n")
            sys.stderr.flush()
        else:
            answer(json.loads(line))
    if SWITCHES.get("stubborn"):
        while True:
            time.sleep(60)


main()
