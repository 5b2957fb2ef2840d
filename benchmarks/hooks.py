"""Runs hooks beside those of claude-mem: `python -m benchmarks.hooks FOLDER`.

FOLDER is the unpacked npm package of claude-mem, such as `npm pack` gives it. Node.js and bun are
on the PATH; Claude Code, with which claude-mem summarizes, may be. Both get the events of ten
sessions, alternately, in a home of their own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from server.clients.locations import command_path

SESSIONS = 10
EVENTS = {
    "SessionStart": "context",
    "UserPromptSubmit": "session-init",
    "Stop": "summarize",
    "SessionEnd": "session-end",
}
"""Events of Claude Code, and what claude-mem calls them."""

SECONDS = 120
SETTLING_SECONDS = 8
DECISION = "We decided to use tabs, because the linter needs them."


def run(command: Sequence[str], home: Path, payload: dict[str, Any]) -> tuple[str, float]:
    """Runs a hook; returns what it prints and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        input=json.dumps(payload),
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        cwd=payload["cwd"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def left_in(home: Path) -> Iterator[tuple[int, str, float]]:
    """Yields the processes that run in a home: the id, the command, and the memory in MB."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={home}\0".encode() in (path / "environ").read_bytes():
                words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
                pages = int((path / "statm").read_text(encoding="ascii").split()[1])
                yield int(path.name), " ".join(words)[:100], pages * 4096 / 1e6
        except OSError:  # it ended meanwhile
            continue


def shown(reply: str) -> str:
    """Returns the text that a reply injects."""
    try:
        return str(json.loads(reply)["hookSpecificOutput"]["additionalContext"])
    except (ValueError, KeyError, TypeError):
        return ""


def main() -> None:
    """Prints CPU seconds of each event, what is shown in three sessions, and what is left."""
    scripts = Path(sys.argv[1]).resolve() / "plugin" / "scripts"
    theirs = ["node", str(scripts / "bun-runner.js"), str(scripts / "worker-service.cjs")]
    with tempfile.TemporaryDirectory() as place:
        homes = {name: Path(place) / name for name in ("toolcrib", "claude-mem")}
        for home in homes.values():
            (home / "shop" / ".git").mkdir(parents=True)
        used: dict[tuple[str, str], list[float]] = defaultdict(list)
        home = homes["claude-mem"]
        _, started = run([*theirs, "start"], home, {"cwd": str(home / "shop")})
        print(f"claude-mem's start: {started:.2f} s of CPU")
        for number in range(1, SESSIONS + 1):
            said = DECISION if number == 1 else f"Go on with step {number}."
            for event, name in EVENTS.items():
                commands = {
                    "toolcrib": [str(command_path()), "hook", "claude-code", event],
                    "claude-mem": [*theirs, "hook", "claude-code", name],
                }
                for who, command in commands.items():
                    payload = payload_of(homes[who], number, event, said)
                    reply, seconds = run(command, homes[who], payload)
                    used[event, who].append(seconds)
                    if event == "SessionStart" and number in {1, 2, SESSIONS}:
                        text = shown(reply)
                        has_it = "with" if DECISION in text else "without"
                        print(f"{who}, session {number}: {len(text)} characters, {has_it} it")
        for (event, who), each in used.items():
            print(f"{event}, {who}: {statistics.median(each):.3f} s of CPU")
        time.sleep(SETTLING_SECONDS)
        for who, home in homes.items():
            left = list(left_in(home))
            print(f"{who} leaves {len(left)} processes: {left}")
            for process, _, _ in left:
                os.kill(process, 9)


def payload_of(home: Path, number: int, event: str, said: str) -> dict[str, Any]:
    """Returns an event of a session, with a transcript as Claude Code writes it."""
    answer = f"Done with step {number}."
    transcript = home / f"{number}.jsonl"
    lines = [
        {"type": "user", "message": {"role": "user", "content": said}},
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "text", "text": answer}]},
        },
    ]
    transcript.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    return {
        "session_id": f"session-{number}",
        "cwd": str(home / "shop"),
        "hook_event_name": event,
        "transcript_path": str(transcript),
        "prompt": said,
        "last_assistant_message": answer,
        "source": "startup",
        "reason": "exit",
    }


if __name__ == "__main__":
    main()
