"""What a model reads of 20 calls, by client: `results` as each client's default has it, and "both".

    python -m benchmarks.result_tokens [--texts]

A real client calls the product in memory under the name of the client that is measured. A token is
4 characters.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client

from server.app import build
from server.settings.sources import load

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("approvals.md", "memory.md", "profiles.md", "shell.md", "undo.md")
CHARACTERS_PER_TOKEN = 4
GARDEN = '''"""The garden."""

from dataclasses import dataclass


@dataclass
class Harvest:
    """What a bed gave."""

    bed: str
    kilograms: float
    days: list[str]


def harvest(plant: str, beds: int = 3) -> list[Harvest]:
    """Weighs what was harvested.

    Args:
        plant: Which plant.
        beds: How many beds.
    """
    return [Harvest(f"{plant} {n}", 4.0 * n, ["2026-06-01", "2026-06-09"]) for n in range(beds)]
'''

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_directory", {}),
    ("read_file", {"file_path": "profiles.md"}),
    ("read_file", {"file_path": "shell.md", "ranges": [1, 20]}),
    ("read_file", {"file_path": "no_such_file.md"}),
    ("grep", {"pattern": "deny", "max_results": 20}),
    ("glob", {"pattern": "*.md"}),
    ("write_file", {"file_path": "todo.txt", "content": "Water the leeks.\n"}),
    ("edit_file", {"file_path": "todo.txt", "old_text": "leeks", "new_text": "beans"}),
    ("bash", {"command": "wc -l *.md"}),
    ("add_document", {"path": "memory.md"}),
    ("add_document", {"path": "undo.md"}),
    ("query", {"query": "how long are changes kept?"}),
    ("remember", {"content": "The person waters the garden on Mondays."}),
    ("add_event", {"content": "Planted 40 leeks in bed 2."}),
    ("query_events", {"filter_by": "recent", "limit": 10}),
    ("search_tools", {"query": "delete a document"}),
    ("describe_tool", {"name": "query_events"}),
    ("call_tool", {"name": "browse_memory", "arguments": {"action": "list", "layer": "l1"}}),
    (
        "call_tools",
        {
            "calls": [
                {"name": "read_file", "arguments": {"file_path": "todo.txt"}},
                {"name": "read_todos"},
            ]
        },
    ),
    ("harvest", {"plant": "leek"}),
)


def claude_code(result: types.CallToolResult) -> str:
    """What Claude Code gives its model: github.com/anthropics/claude-code/issues/79944."""
    if result.structured_content is not None:
        return compact(result.structured_content)
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


def codex(result: types.CallToolResult) -> str:
    """What Codex gives its model: From<&CallToolResult> in codex-rs/protocol/src/models.rs."""
    if result.structured_content is not None:
        return compact(result.structured_content)
    return compact([each.model_dump(by_alias=True, exclude_none=True) for each in result.content])


READERS: dict[str, Callable[[types.CallToolResult], str]] = {
    "claude-code": claude_code,
    "codex-mcp-client": codex,
}


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What a model reads of 20 calls.")
    parser.add_argument("--texts", action="store_true", help="show what is read, too")
    show = parser.parse_args().texts
    logging.disable()  # the client's, which warns of each tool that is not listed
    read = {
        (name, results): anyio.run(texts, name, results)
        for name in READERS
        for results in ("both", "auto")
    }
    heads = (f"{name}, {results}" for name, results in read)
    print(f"| tokens | {' | '.join(heads)} |\n|---|{'---|' * len(read)}")
    rows = zip(*read.values(), strict=True)
    for number, ((name, _), row) in enumerate(zip(CALLS, rows, strict=True), start=1):
        print(f"| {number}. {name} | {' | '.join(str(tokens(each)) for each in row)} |")
        if show:
            print(*row, sep="\n--\n")
    sums = (str(sum(map(tokens, each))) for each in read.values())
    print(f"| all {len(CALLS)} | {' | '.join(sums)} |")


async def texts(name: str, results: str) -> list[str]:
    """What the model of a client reads of each call.

    Args:
        name: The client's name.
        results: The setting of that name.
    """
    with tempfile.TemporaryDirectory(prefix="toolcrib-results-") as directory:
        place = Path(directory)
        (place / "root").mkdir()
        for page in PAGES:
            shutil.copy(DOCS / page, place / "root" / page)
        (place / "garden.py").write_text(GARDEN)
        flags = {
            "data_dir": place / "data",
            "root": place / "root",
            "functions.paths": str(place / "garden.py"),
            "policy.profile": "trusting",
            "results": results,
        }
        app = build(load(flags, environ={"TOOLCRIB_CONFIG": ""}))
        known = types.Implementation(name=name, version="1")
        async with (
            app.running(),
            Client(app.server, client_info=known, elicitation_callback=agree) as client,
        ):
            return [READERS[name](await client.call_tool(*call)) for call in CALLS]


def tokens(text: str) -> int:
    """The tokens of a text, about."""
    return round(len(text) / CHARACTERS_PER_TOKEN)


async def agree(context: Any, params: Any) -> types.ElicitResult:  # noqa: ANN401, ARG001  # the client's
    """Allows whatever is asked."""
    await anyio.lowlevel.checkpoint()
    return types.ElicitResult(action="accept", content={"answer": "once"})


def compact(value: object) -> str:
    """A value as clients write it for their models."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    main()
