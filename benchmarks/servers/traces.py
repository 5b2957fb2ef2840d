"""Serves five large results over Streamable HTTP on loopback: traces.py PORT.

They are made from a fixed seed: issues as JSON, an HTML page, a log, a table and a tree of files.
"""

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp.server.mcpserver import MCPServer

SEED = 41
ISSUES, LOG_LINES, ROWS, FILES, SECTIONS = 300, 20_000, 5_000, 5_000, 120
PEOPLE = ("mara", "jonas", "li-wei", "amina", "tomas", "ines", "kofi", "yuki")
WORDS = """
the a of to and in for with when after before server client cache index token request answer fails
works slow fast retry queue worker log file path user session table row column key value error
warning limit page list result query search build test release branch commit
""".split()  # noqa: SIM905  # words read better than quotes
LABELS = ("bug", "docs", "perf", "ui")
ABOUT_FRAMES, MOST_COMMENTED = 231, 77
REFUSAL, FATAL, DEPLOYMENT = 7, 12_345, 15_000
LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "INFO", "WARN")
START = datetime(2026, 1, 1, tzinfo=UTC)
ENDINGS = ("py", "md")
REGIONS = ("north", "south", "east", "west")


def _words(source: random.Random, count: int) -> str:
    return " ".join(source.choice(WORDS) for _ in range(count))


def issues() -> dict[str, Any]:
    """Returns the issues of a repository, as an API lists them."""
    source = random.Random(SEED)  # noqa: S311  # not for security
    items = []
    for number in range(1, ISSUES + 1):
        body = _words(source, source.randint(100, 200))
        if number == ABOUT_FRAMES:
            body += " It ends with ECONNRESET in frame 7f3a of the proxy."
        items.append(
            {
                "number": number,
                "title": f"{_words(source, 5).capitalize()} ({number})",
                "state": source.choice(("open", "closed", "closed")),
                "user": {"login": source.choice(PEOPLE), "type": "User"},
                "labels": [{"name": each} for each in source.sample(LABELS, 2)],
                "assignee": source.choice((None, *PEOPLE[:3])),
                "comments": source.randint(0, 90) if number != MOST_COMMENTED else 140,
                "created_at": (START + timedelta(hours=source.randint(0, 7_000))).isoformat(),
                "url": f"https://code.example/forge/tool/issues/{number}",
                "body": body,
            }
        )
    return {"total_count": ISSUES, "items": items}


def page() -> str:
    """Returns the HTML of a product page."""
    source = random.Random(SEED)  # noqa: S311  # not for security
    parts = ["<!doctype html>", "<html><head><title>Gear for fieldwork</title>"]
    parts += [f".c{at}{{margin:{at}px;color:#{at:06x}}}" for at in range(600)]
    parts.append("</head><body><nav>")
    parts += [f'<a href="/shop/{word}">{word}</a>' for word in WORDS]
    parts.append("</nav>")
    for at in range(SECTIONS):
        parts.append(f'<h2 id="s{at}">Model FW-{100 + at}</h2>')
        parts += [f'<p class="c{at}">{_words(source, 60)}.</p>' for _ in range(5)]
        parts.append(f'<span class="price">Price of FW-{100 + at}: {900 - at * 3}.50 EUR</span>')
        parts.append(f"<td>FW-{100 + at}</td><td>weight {200 + at * 7} g</td>")
    parts.append('<a class="get" href="/files/manual-4.2.pdf">Download the manual 4.2</a>')
    parts.append("<p>Warranty: 37 months, claims to claims@fieldwork.example</p>")
    parts.append('<footer>Registered at Aarhus under 5592-8841. <a href="/imprint">Imprint</a>')
    return "\n".join([*parts, "</footer></body></html>"])


def log() -> str:
    """Returns the log of a service."""
    source = random.Random(SEED)  # noqa: S311  # not for security
    lines = []
    for at in range(LOG_LINES):
        moment = (START + timedelta(seconds=at * 4)).isoformat(timespec="seconds")
        level, said = source.choice(LEVELS), _words(source, 10)
        if at % 1_999 == REFUSAL:
            level, said = "ERROR", f"payment {40_000 + at} was refused by the bank"
        if at == FATAL:
            level, said = "FATAL", "out of descriptors, restarting worker 9"
        if at == DEPLOYMENT:
            said = "deployed release 8.1.4 by ines"
        lines.append(f"{moment} {level:5} [worker-{at % 12}] req={at:05x} {said}")
    return "\n".join(lines)


def table() -> str:
    """Returns orders as CSV."""
    source = random.Random(SEED)  # noqa: S311  # not for security
    rows = ["order,customer,region,product,quantity,price,status"]
    rows += [
        f"{10_000 + at},customer-{source.randint(1, 900):03},{source.choice(REGIONS)},"
        f"product {source.randint(1, 60)},{source.randint(1, 40)},"
        f"{source.randint(100, 99_999) / 100},"
        f"{source.choice(('sent', 'sent', 'sent', 'open', 'returned'))}"
        for at in range(ROWS)
    ]
    return "\n".join(rows)


def tree() -> str:
    """Returns a tree of files as JSON."""
    source = random.Random(SEED)  # noqa: S311  # not for security
    top = []
    for area in ("api", "core", "docs", "tests", "web"):
        folders = []
        for at in range(20):
            files = []
            for which in range(FILES // 100):
                name = f"{source.choice(WORDS)}_{area}_{at}_{which}.{source.choice(ENDINGS)}"
                files.append({"name": name, "type": "file"})
            folders.append({"name": f"{area}-{at:02}", "type": "directory", "children": files})
        top.append({"name": area, "type": "directory", "children": folders})
    top[1]["children"][13]["children"][30]["name"] = "feature_flags.toml"  # type: ignore[index]
    top[4]["children"][6]["children"][2]["name"] = "Dockerfile"  # type: ignore[index]
    return json.dumps(top, indent=2)


TRACES = {each.__name__: each for each in (issues, page, log, table, tree)}

if __name__ == "__main__":
    server = MCPServer("traces", log_level="WARNING")
    for trace in TRACES.values():
        server.add_tool(trace)
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
