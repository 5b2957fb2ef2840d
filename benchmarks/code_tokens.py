"""Tokens that pass through a model in ten tasks: by single calls, by call_tools and by run_code.

    python -m benchmarks.code_tokens [--texts]

Each task is done three times against the product in memory, by a real client, and must come to the
same answer. What counts is what the model writes (names and arguments) and reads (results, as
Claude Code shows them), at 4 characters a token. A program's tokens include how the tools that it
uses are described (`describe_tool` with as="python"); single calls are made as if every tool and
every result were known by heart, and no more of them than the task needs.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client

from benchmarks.result_tokens import agree, compact
from benchmarks.servers import everything
from server.app import build
from server.settings.sources import load

DOCS = Path(__file__).parents[1] / "docs"
CHARACTERS_PER_TOKEN = 4
MOST_AT_ONCE = 20
"""Calls that call_tools takes."""

SHOP = '''"""A shop, as the API of one answers."""

from dataclasses import dataclass


@dataclass
class Order:
    """An order."""

    id: int
    customer_id: int
    status: str
    total: float
    placed: str
    items: list[str]


@dataclass
class Customer:
    """Who orders."""

    id: int
    name: str
    country: str
    email: str


_FAILED: set[int] = set()


def list_orders(page: int = 1) -> list[Order]:
    """Lists the orders of a page, 50 a page; the last page is shorter."""
    numbers = range((page - 1) * 50 + 1, min(page * 50, 120) + 1)
    states = ("paid", "open", "shipped", "returned")
    return [
        Order(n, n % 12 + 1, states[n % 4], n * 7 % 90 + 0.5, f"2026-0{n % 9 + 1}-11", ["leek"] * 3)
        for n in numbers
    ]


def get_customer(customer_id: int) -> Customer:
    """Finds a customer."""
    land = ("AT", "DE", "FR")[customer_id % 3]
    return Customer(customer_id, f"Customer {customer_id}", land, f"c{customer_id}@example.org")


def ship(order_id: int) -> str:
    """Ships an order; the carrier is busy now and then, so that it has to be tried again."""
    if order_id % 3 == 0 and order_id not in _FAILED:
        _FAILED.add(order_id)
        raise RuntimeError("The carrier is busy.")
    return f"shipped {order_id}"
'''

Call = tuple[str, dict[str, Any]]


PAGES = 12
LARGE = 60
NOTES = 20
EVERYTHING = (
    "simple_text",
    "image_content",
    "audio_content",
    "embedded_resource",
    "error_handling",
)


class Model:
    """A model that makes the calls that it knows to be right, and what passes through it.

    Args:
        client: Its client.
        batches: Whether it makes calls that do not depend on each other by call_tools.
    """

    def __init__(self, client: Client, *, batches: bool = False) -> None:
        self.characters = 0
        self.passed: list[str] = []
        self._client = client
        self._batches = batches

    async def call(self, name: str, /, **arguments: Any) -> Any:  # noqa: ANN401  # any result
        """What a call answers; None where it fails."""
        result = await self._client.call_tool(name, arguments)
        texts = (each.text for each in result.content if isinstance(each, types.TextContent))
        read = "\n".join(texts)
        self.passed.append(f"{name}({compact(arguments)})\n{read}")
        self.characters += len(name) + len(compact(arguments)) + len(read)
        if result.is_error:
            return None
        found = result.structured_content
        return read if found is None else found.get("result", found)

    async def all(self, calls: Sequence[Call]) -> list[Any]:
        """What calls answer that do not depend on each other."""
        if not self._batches or len(calls) == 1:
            return [await self.call(name, **arguments) for name, arguments in calls]
        made: list[Any] = []
        for start in range(0, len(calls), MOST_AT_ONCE):
            batch = calls[start : start + MOST_AT_ONCE]
            asked = [{"name": name, "arguments": arguments} for name, arguments in batch]
            for each in (await self.call("call_tools", calls=asked))["answers"]:
                found = each["result"]
                made.append(None if each["is_error"] else found.get("result", found))
        return made


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Attributes:
        name: What is to be done.
        by_calls: Does it by calls, and returns the answer.
        tools: Those whose signatures a program has to know.
        code: The program that does it.
    """

    name: str
    by_calls: Callable[[Model], Awaitable[object]]
    tools: str
    code: str


async def _count_mentions(model: Model) -> object:
    found = await model.call("grep", pattern="deny", file_pattern="*.md", max_results=1000)
    return dict(Counter(each["path"] for each in found["matches"]))


async def _list_titles(model: Model) -> object:
    found = await model.call("glob", pattern="page*.md")
    names = sorted(each["path"] for each in found["files"])
    read = await model.all([("read_file", {"file_path": each, "ranges": [1, 3]}) for each in names])
    return {name: each["content"].splitlines()[0] for name, each in zip(names, read, strict=True)}


async def _write_people(model: Model) -> object:
    read = await model.call("read_file", file_path="people.csv")
    head, *rows = [line.split(",") for line in read["content"].splitlines()]
    people = [dict(zip(head, row, strict=True)) for row in rows]
    calls: list[Call] = [
        (
            "write_file",
            {"file_path": f"people/{each['id']}.json", "content": json.dumps(each, indent=1)},
        )
        for each in people
    ]
    return len(await model.all(calls))


async def _replace_word(model: Model) -> object:
    found = await model.call("grep", pattern="colour", file_pattern="*.md", max_results=1000)
    names = sorted({each["path"] for each in found["matches"]})
    change = {"old_text": "colour", "new_text": "color", "replace_all": True}
    made = await model.all([("edit_file", {"file_path": each, **change}) for each in names])
    return sum(each["changes"] for each in made)


async def _orders_of(model: Model) -> list[Any]:
    pages = await model.all([("list_orders", {"page": page}) for page in (1, 2, 3)])
    return [each for page in pages for each in page]


async def _customers_of(model: Model, orders: Sequence[Any]) -> dict[int, Any]:
    ids = sorted({each["customer_id"] for each in orders})
    found = await model.all([("get_customer", {"customer_id": each}) for each in ids])
    return dict(zip(ids, found, strict=True))


async def _sum_by_country(model: Model) -> object:
    orders = [each for each in await _orders_of(model) if each["status"] == "paid"]
    customers = await _customers_of(model, orders)
    sums: Counter[str] = Counter()
    for each in orders:
        sums[customers[each["customer_id"]]["country"]] += each["total"]
    return dict(sums)


async def _find_returns(model: Model) -> object:
    orders = [
        each
        for each in await _orders_of(model)
        if each["status"] == "returned" and each["total"] > LARGE
    ]
    customers = await _customers_of(model, orders)
    return [[each["id"], customers[each["customer_id"]]["email"]] for each in orders]


async def _ship_open(model: Model) -> object:
    left = [each["id"] for each in await _orders_of(model) if each["status"] == "open"]
    shipped = 0
    while left:
        made = await model.all([("ship", {"order_id": each}) for each in left])
        left = [each for each, done in zip(left, made, strict=True) if done is None]
        shipped += sum(done is not None for done in made)
    return shipped


async def _count_errors(model: Model) -> object:
    found = await model.call("grep", pattern=" ERROR ", path="server.log", max_results=1000)
    return dict(Counter(each["text"].split()[2] for each in found["matches"]))


async def _keep_decisions(model: Model) -> object:
    found = await model.call("grep", pattern="^Decision: ", path="notes", max_results=100)
    calls: list[Call] = [
        ("add_event", {"content": each["text"], "title": each["path"], "event_time": DAY})
        for each in found["matches"]
    ]
    return len(await model.all(calls))


async def _try_everything(model: Model) -> object:
    names = [f"test_{each}" for each in EVERYTHING]
    made = await model.all([(each, {}) for each in names])
    return [name for name, each in zip(names, made, strict=True) if each is not None]


DAY = "2026-06-01"
ORDERS = """pages = await asyncio.gather(*[tools.list_orders(page=n) for n in (1, 2, 3)])
orders = [o for page in pages for o in page]
"""
CUSTOMERS = """ids = sorted({o.customer_id for o in orders})
found = await asyncio.gather(*[tools.get_customer(customer_id=i) for i in ids])
customers = dict(zip(ids, found))
"""
TASKS = (
    Task(
        "count what each page says",
        _count_mentions,
        "grep",
        """from collections import Counter
r = await tools.grep(pattern="deny", file_pattern="*.md", max_results=1000)
Counter(m.path for m in r.matches)""",
    ),
    Task(
        "list the titles of 12 pages",
        _list_titles,
        "glob, read_file",
        """names = sorted(f.path for f in (await tools.glob(pattern="page*.md")).files)
{n: (await tools.read_file(file_path=n)).content.splitlines()[0] for n in names}""",
    ),
    Task(
        "write a file for each of 40 rows",
        _write_people,
        "read_file, write_file",
        """import csv
rows = list(csv.DictReader((await tools.read_file(file_path="people.csv")).content.splitlines()))
for row in rows:
    await tools.write_file(file_path=f"people/{row['id']}.json", content=json.dumps(row, indent=1))
len(rows)""",
    ),
    Task(
        "replace a word in 12 pages",
        _replace_word,
        "grep, edit_file",
        """r = await tools.grep(pattern="colour", file_pattern="*.md", max_results=1000)
n = 0
for name in sorted({m.path for m in r.matches}):
    n += (await tools.edit_file(
        file_path=name, old_text="colour", new_text="color", replace_all=True)).changes
n""",
    ),
    Task(
        "sum 120 orders by country",
        _sum_by_country,
        "list_orders, get_customer",
        ORDERS
        + 'orders = [o for o in orders if o.status == "paid"]\n'
        + CUSTOMERS
        + """from collections import Counter
sums = Counter()
for o in orders:
    sums[customers[o.customer_id].country] += o.total
sums""",
    ),
    Task(
        "find returns, and whose they are",
        _find_returns,
        "list_orders, get_customer",
        ORDERS
        + 'orders = [o for o in orders if o.status == "returned" and o.total > 60]\n'
        + CUSTOMERS
        + "[[o.id, customers[o.customer_id].email] for o in orders]",
    ),
    Task(
        "ship 30 orders, some twice",
        _ship_open,
        "list_orders, ship",
        ORDERS
        + """shipped = 0
for o in orders:
    while o.status == "open":
        try:
            await tools.ship(order_id=o.id)
            o.status, shipped = "shipped", shipped + 1
        except ToolError:
            pass
shipped""",
    ),
    Task(
        "count the errors of a log",
        _count_errors,
        "grep",
        """from collections import Counter
r = await tools.grep(pattern=" ERROR ", path="server.log", max_results=1000)
Counter(m.text.split()[2] for m in r.matches)""",
    ),
    Task(
        "keep the decisions of 20 notes",
        _keep_decisions,
        "grep, add_event",
        f"""r = await tools.grep(pattern="^Decision: ", path="notes", max_results=100)
for m in r.matches:
    await tools.add_event(content=m.text, title=m.path, event_time="{DAY}")
len(r.matches)""",
    ),
    Task(
        "try five tools of the everything-server",
        _try_everything,
        "test_simple_text",
        f"""good = []
for name in {[f"test_{each}" for each in EVERYTHING]}:
    try:
        await tools[name]()
        good.append(name)
    except ToolError:
        pass
good""",
    ),
)
"""What people have agents do. With a shell some of it is one command; that is not compared here."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What passes through a model in ten tasks.")
    parser.add_argument("--texts", action="store_true", help="show what passes, too")
    show = parser.parse_args().texts
    logging.disable()  # the failures that are asked for
    listed, rows = anyio.run(measured)
    print("| task | single calls | call_tools | run_code | of single calls | with signatures |")
    print("|---|---|---|---|---|---|")
    for task, models in zip(TASKS, rows, strict=True):
        _print_row(task.name, [each.characters for each in models])
        if show:
            print(*(text for each in models for text in (*each.passed, "--")), sep="\n")
    sums = [sum(each.characters for each in column) for column in zip(*rows, strict=True)]
    _print_row("all", sums)
    sizes = (f"{name} {_tokens(size)}" for name, size in listed.items())
    print(f"\nIn the lean list, in every session: {', '.join(sizes)} tokens.")


def _print_row(name: str, characters: Sequence[int]) -> None:
    single, batched, code, described = characters
    tokens = " | ".join(str(_tokens(each)) for each in (single, batched, code))
    shares = f"{code / single:.0%} | {(code + described) / single:.0%}"
    print(f"| {name} | {tokens} | {shares} |")


async def measured() -> tuple[dict[str, int], list[tuple[Model, ...]]]:
    """What the list says of run_code, and what passed in each task, in each of the ways."""
    columns: list[list[Model]] = []
    answers: list[list[Any]] = []
    listed: dict[str, int] = {}
    for way in ("single", "batched", "code"):
        with tempfile.TemporaryDirectory(prefix="toolcrib-tokens-") as directory:
            place = Path(directory)
            _lay_out(place)
            flags = {
                "data_dir": place / "data",
                "root": place / "root",
                "functions.paths": [place / "shop.py", place / "everything.py"],
                "policy.profile": "trusting",
                "results": "both",
            }
            app = build(load(flags, environ={"TOOLCRIB_CONFIG": ""}))
            async with app.running(), Client(app.server, elicitation_callback=agree) as client:
                for each in (await client.list_tools()).tools:
                    if each.name in {"describe_tool", "run_code"}:
                        wire = each.model_dump(mode="json", by_alias=True, exclude_none=True)
                        listed[each.name] = len(compact(wire))
                made, found, described = await _done(client, way)
        columns.append(made)
        answers.append(found)
        if way == "code":
            columns.append(described)
    for task, *found in zip(TASKS, *answers, strict=True):
        if any(each != found[0] for each in found):
            raise AssertionError(f"{task.name}: the ways answer {found}")
    return listed, list(zip(*columns, strict=True))


async def _done(client: Client, way: str) -> tuple[list[Model], list[Any], list[Model]]:
    """What passes in each task, the answers, and what passes to know the signatures."""
    made, answers, described = [], [], []
    for task in TASKS:
        model, reader = Model(client, batches=way == "batched"), Model(client)
        if way == "code":
            await reader.call("describe_tool", name=task.tools, **{"as": "python"})
            answers.append((await model.call("run_code", code=task.code))["value"])
        else:
            answers.append(await task.by_calls(model))
        made.append(model)
        described.append(reader)
    return made, answers, described


def _lay_out(place: Path) -> None:
    """The files that the tasks are about."""
    root = place / "root"
    (root / "notes").mkdir(parents=True)
    pages = sorted(DOCS.glob("*.md"))[:PAGES]
    for number, page in enumerate(pages):
        text = page.read_text(encoding="utf-8")
        (root / f"page{number:02}.md").write_text(f"{text}\nIts colour is a colour of ours.\n")
    for number in range(NOTES):
        note = f"# Meeting {number}\n\nWe talked.\n\nDecision: plant {number} leeks in the bed.\n"
        (root / "notes" / f"{number:02}.md").write_text(note)
    rows = (f"{n},Person {n},p{n}@example.org,{['AT', 'DE', 'FR'][n % 3]}" for n in range(40))
    (root / "people.csv").write_text("\n".join(["id,name,email,country", *rows]))
    levels = ("INFO", "INFO", "ERROR", "WARN", "INFO", "INFO", "INFO")
    log = (
        f"2026-06-01T10:{n % 60:02}:00Z {levels[n % 7]} {['web', 'db', 'mail'][n % 3]} request {n}"
        for n in range(1_000)
    )
    (root / "server.log").write_text("\n".join(log))
    shutil.copy(Path(everything.__file__), place / "everything.py")
    (place / "shop.py").write_text(SHOP)


def _tokens(characters: int) -> int:
    return round(characters / CHARACTERS_PER_TOKEN)


if __name__ == "__main__":
    main()
