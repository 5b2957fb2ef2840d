"""What large results cost a model, and whether it still finds what it needs in them.

    python -m benchmarks.large_results [--json]

A server on loopback answers five calls with large results (`benchmarks/servers/traces.py`). Of each
there are ten questions. "Whole" is one result as the server sends it, in the shorter of its two
forms. "Fitted" is what a model gets through Toolcrib: the preview, and the calls of `read_result`
with their answers that find the ten answers. The calls are written here, from what a question and
the preview say; the right answers are computed from the data. A token is taken as four characters.
"""

import argparse
import json
import os
import re
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from pydantic_core import to_json

from benchmarks.servers import traces

SERVER = Path(__file__).with_name("servers") / "traces.py"
CHARACTERS_PER_TOKEN = 4
MOST_SHARE = 0.12
"""The share of the tokens that preview and questions may take together."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, what its answer must contain, and the arguments of `read_result`."""

    text: str
    answer: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a trace costs."""

    trace: str
    whole_tokens: int
    preview_tokens: int
    fitted_tokens: int
    found: int
    questions: int


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Large results, whole and fitted.")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory(prefix="toolcrib-results-") as directory:
        costs = anyio.run(measure, Path(directory))
    if as_json:
        print(json.dumps([asdict(each) for each in costs], indent=2))
    else:
        _print_table(costs)


async def measure(directory: Path) -> list[Cost]:
    """Asks all questions about all traces."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    async with AsyncExitStack() as stack:
        process = await anyio.open_process(
            [sys.executable, str(SERVER), str(port)], stdout=None, stderr=None
        )
        stack.push_async_callback(process.aclose)
        stack.callback(process.terminate)
        await _listens(port)
        direct = await stack.enter_async_context(Client(url))
        reader = types.Implementation(name="claude-code", version="2")  # gives its model one form
        toolcrib = Client(_toolcrib(directory, url), client_info=reader)
        through = await stack.enter_async_context(toolcrib)
        return [await _cost(direct, through, trace) for trace in traces.TRACES]


async def _listens(port: int) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            except OSError:
                await anyio.sleep(0.1)
            else:
                return


async def _cost(direct: Client, through: Client, trace: str) -> Cost:
    whole = await direct.call_tool(trace, {})
    forms = [_text(whole)]
    if whole.structured_content:
        forms.append(to_json(whole.structured_content).decode())
    preview = _text(await through.call_tool(f"traces__{trace}", {}))
    named = re.search(r"handle='(r[0-9a-f]+)'", preview)
    if named is None:
        raise SystemExit(f"{trace} was not fitted: {preview[:300]}")
    fitted, found = len(preview), 0
    questions = QUESTIONS[trace]()
    for question in questions:
        arguments = {"handle": named[1], **question.arguments}
        answer = _text(await through.call_tool("read_result", arguments))
        fitted += len(json.dumps({"name": "read_result", "arguments": arguments})) + len(answer)
        if re.search(rf"(?<!\w){re.escape(question.answer)}(?!\w)", answer):
            found += 1
        else:
            print(f"{trace}: {question.text} {question.answer!r} is not in {answer[:300]!r}")
    whole_tokens, preview_tokens, fitted_tokens = (
        size // CHARACTERS_PER_TOKEN for size in (min(map(len, forms)), len(preview), fitted)
    )
    return Cost(trace, whole_tokens, preview_tokens, fitted_tokens, found, len(questions))


def _toolcrib(directory: Path, url: str) -> StdioServerParameters:
    root = directory / "root"
    root.mkdir()
    environ = {
        **os.environ,
        "TOOLCRIB_SERVERS": json.dumps({"traces": {"url": url, "trusted": True}}),
        "TOOLCRIB_POLICY__ALLOW": "traces__*",
        "TOOLCRIB_SURFACE": "full",
        "TOOLCRIB_DATA_DIR": str(directory / "data"),
        "TOOLCRIB_ROOT": str(root),
    }
    command = str(Path(sysconfig.get_path("scripts"), "toolcrib"))
    return StdioServerParameters(command=command, args=["serve"], env=environ)


def _text(result: types.CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


def _in_all(count: int) -> str:
    return f"{count} in all"


def _about_issues() -> list[Question]:
    items = traces.issues()["items"]
    by_number = {each["number"]: each for each in items}
    since = "2026-09-01"
    flat = [{key: each[key] for key in ("state", "assignee")} for each in items]

    def rows(columns: Sequence[str], **asked: object) -> dict[str, Any]:
        return {"rows": {"columns": list(columns), "limit": 1, **asked}}

    def count(**fields: object) -> str:
        return _in_all(sum(fields.items() <= each.items() for each in flat))

    oldest = min(items, key=lambda each: each["created_at"])
    theirs = [
        each for each in items if each["user"]["login"] == "amina" and each["state"] == "open"
    ]
    wanted = {"path": "$.items[?@.number==287].title"}
    return [
        Question("What is the title of issue 287?", by_number[287]["title"], wanted),
        Question("Who opened 143?", by_number[143]["user"]["login"],
                 {"path": "$.items[?@.number==143].user.login"}),
        Question("How many are open?", count(state="open"),
                 rows(["number"], where=["state = open"])),
        Question("Which has most comments?", "77", rows(["number", "comments"], sort="-comments")),
        Question("Which is about ECONNRESET in frame 7f3a?", "231",
                 rows(["number"], where=["body contains ECONNRESET in frame 7f3a"])),
        Question("How many has amina open?", _in_all(len(theirs)),
                 rows(["number"], where=["user.login = amina", "state = open"])),
        Question("Which is the oldest?", str(oldest["number"]),
                 rows(["number"], sort="created_at")),
        Question("How many came since September?",
                 _in_all(sum(each["created_at"] > since for each in items)),
                 rows(["number"], where=[f"created_at > {since}"])),
        Question("Which labels has 55?", by_number[55]["labels"][1]["name"],
                 {"path": "$.items[?@.number==55].labels[*].name"}),
        Question("How many are assigned to nobody?", count(assignee=None),
                 rows(["number"], where=["assignee = null"])),
    ]  # fmt: skip


def _about_the_page() -> list[Question]:
    def grep(text: str, answer: str, words: str) -> Question:
        return Question(text, answer, {"grep": words})

    return [
        grep("What does the FW-142 cost?", "774.50 EUR", "price of FW-142"),
        grep("What does the FW-219 cost?", "543.50 EUR", "price of FW-219"),
        grep("What does the FW-107 weigh?", "weight 249 g", "<td>FW-107"),
        grep("Where is the manual?", "/files/manual-4.2.pdf", "manual"),
        grep("How long is the warranty?", "37 months", "warranty"),
        grep("Whom does one write to with a claim?", "claims@fieldwork.example", "claims"),
        grep("Where is the firm registered?", "Aarhus", "registered"),
        grep("Where is the imprint?", "/imprint", "imprint"),
        grep("Which page is for 'branch'?", "/shop/branch", '">branch<|/branch'),
        grep("Which model weighs 704 g?", "FW-172", "weight 704 g"),
    ]


def _about_the_log() -> list[Question]:
    lines = traces.log().split("\n")
    fatal = next(at for at, line in enumerate(lines) if "FATAL" in line)
    errors = [line for line in lines if " ERROR " in line]
    return [
        Question("Why was worker 9 restarted?", "out of descriptors",
                 {"grep": "restarting worker 9"}),
        Question("When?", lines[fatal][:25], {"grep": "FATAL"}),
        Question("What came right before?", f"req={fatal - 1:05x}",
                 {"grep": "FATAL", "before_after": 1}),
        Question("How many errors are there?", _in_all(len(errors)), {"grep": "ERROR ["}),
        Question("Which payment was refused last?", errors[-1].split()[5], {"grep": "was refused"}),
        Question("Who deployed 8.1.4?", "ines", {"grep": "release 8.1.4"}),
        Question("What is the first line?", "req=00000", {"lines": [1, 1]}),
        Question("What is the last request?", f"req={len(lines) - 1:05x}", {"lines": [-1, -1]}),
        Question("Which worker had request 02710?", "worker-4", {"grep": "req=02710"}),
        Question("When was request 04268?", lines[0x4268][:25], {"grep": "req=04268"}),
    ]  # fmt: skip


def _about_the_table() -> list[Question]:
    head, *lines = traces.table().split("\n")
    table = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]

    def ask(text: str, answer: str, columns: Sequence[str], **asked: object) -> Question:
        return Question(text, answer, {"rows": {"columns": list(columns), "limit": 1, **asked}})

    def count(**fields: str) -> str:
        return _in_all(sum(fields.items() <= each.items() for each in table))

    by_order = {each["order"]: each for each in table}
    dearest = max(table, key=lambda each: float(each["price"]))
    cheapest = min(
        (each for each in table if each["region"] == "west"), key=lambda each: float(each["price"])
    )
    large = [
        each for each in table if each["quantity"] in {"39", "40"} and each["status"] == "open"
    ]
    return [
        ask("Who ordered 12345?", by_order["12345"]["customer"], ["customer"],
            where=["order = 12345"]),
        ask("What is the state of 14999?", by_order["14999"]["status"], ["status"],
            where=["order = 14999"]),
        ask("How many were returned?", count(status="returned"), ["order"],
            where=["status = returned"]),
        ask("How many in the north are open?", count(region="north", status="open"), ["order"],
            where=["region = north", "status = open"]),
        ask("Which is the dearest?", dearest["order"], ["order", "price"], sort="-price"),
        ask("Which is the cheapest in the west?", cheapest["order"], ["order", "price"],
            where=["region = west"], sort="price"),
        ask("How many open ones have more than 38 pieces?", _in_all(len(large)), ["order"],
            where=["quantity > 38", "status = open"]),
        ask("How many has customer 007?", count(customer="customer-007"), ["order"],
            where=["customer = customer-007"]),
        ask("How much of product 9 is there?", count(product="product 9"), ["order"],
            where=["product = product 9"]),
        ask("How many are there in all?", _in_all(len(table)), ["order"]),
    ]  # fmt: skip


def _about_the_tree() -> list[Question]:
    top = json.loads(traces.tree())
    folders = {each["name"]: each for area in top for each in area["children"]}
    names = [each["name"] for folder in folders.values() for each in folder["children"]]

    def path(text: str, answer: str, expression: str) -> Question:
        return Question(text, answer, {"path": expression})

    def starts(word: str) -> str:
        return _in_all(sum(name.startswith(f"{word}_") for name in names))

    return [
        path("Which folder has feature_flags.toml?", "core-13",
             "$..[?@.children[?@.name=='feature_flags.toml']].name"),
        path("Which area has the Dockerfile?", "web",
             "$[?@.children[?@.children[?@.name=='Dockerfile']]].name"),
        path("Which areas are there?", "tests", "$[*].name"),
        path("Which folders has docs?", "docs-19", "$[?@.name=='docs'].children[*].name"),
        path("What is the first file of api-03?", folders["api-03"]["children"][0]["name"],
             "$..[?@.name=='api-03'].children[0].name"),
        path("What is the last file of web-19?", folders["web-19"]["children"][-1]["name"],
             "$..[?@.name=='web-19'].children[-1].name"),
        Question("Is there a .toml?", "feature_flags.toml", {"grep": ".toml"}),
        Question("How many begin with branch?", starts("branch"), {"grep": '"branch_'}),
        Question("How many begin with query?", starts("query"), {"grep": '"query_'}),
        path("How many folders has core?", _in_all(20), "$[?@.name=='core'].children[*].name"),
    ]  # fmt: skip


QUESTIONS = {
    "issues": _about_issues,
    "page": _about_the_page,
    "log": _about_the_log,
    "table": _about_the_table,
    "tree": _about_the_tree,
}


def _print_table(costs: Sequence[Cost]) -> None:
    total = Cost(
        "all",
        sum(each.whole_tokens for each in costs),
        sum(each.preview_tokens for each in costs),
        sum(each.fitted_tokens for each in costs),
        sum(each.found for each in costs),
        sum(each.questions for each in costs),
    )
    print(f"{'trace':8}{'whole':>9}{'preview':>9}{'fitted':>8}{'share':>8}{'found':>12}")
    for one in (*costs, total):
        share = one.fitted_tokens / one.whole_tokens
        found = f"{one.found} of {one.questions}"
        tokens = f"{one.whole_tokens:>9,}{one.preview_tokens:>9,}{one.fitted_tokens:>8,}"
        print(f"{one.trace:8}{tokens}{share:>8.1%}{found:>12}")
    print(f"target: share of each at most {MOST_SHARE:.0%}, all found")


if __name__ == "__main__":
    main()
