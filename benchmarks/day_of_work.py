"""A day of an agent's work on a project, and what confinement costs it.

    python -m benchmarks.day_of_work [--runs N] [--json]

One client over stdio does the day's work: a repository, a Python package in a virtual environment,
its tests, commits, branches, a remote, a work tree and a rebase; a Node project; a server in the
background; and files that other programs obey. The rules are those that `toolcrib policy suggest`
wrote for the project. Each run does the day unconfined and at each level, in turns; what is told is
the time of its calls. Needs git, Node, and the registries of PyPI and npm; Linux only.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from server.clients.locations import command_path

LEVELS = ("bubblewrap", "landlock")
FREE = "none"

MOST_QUESTIONS = 5
"""Questions that the person is asked in a day."""

TARGET = 1.2
"""How many times the time without confinement the day may take."""

NAME, ADDRESS = "Ann Example", "ann@example.com"

REGISTRIES = ("pypi.org:443", "files.pythonhosted.org:443", "registry.npmjs.org:443")

CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")

PYPROJECT = """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "shapes"
version = "0.1.0"

[project.optional-dependencies]
dev = ["pytest"]

[tool.setuptools]
package-dir = {"" = "src"}
"""

SHAPES = """\
def area(width: int, height: int) -> int:
    return width * height
"""

SHAPES_TEST = """\
from shapes import area


def test_areas_are_products() -> None:
    assert area(2, 3) == 6
"""

PACKAGE = """\
{
  "name": "odd",
  "version": "1.0.0",
  "private": true,
  "scripts": {"test": "node --test web"},
  "dependencies": {"is-number": "^7.0.0"}
}
"""

ODD = """\
const isNumber = require("is-number");
module.exports = (value) => isNumber(value) && value % 2 === 1;
"""

ODD_TEST = """\
const test = require("node:test");
const assert = require("node:assert");
const odd = require("./odd.js");

test("three is odd", () => assert.ok(odd(3)));
"""

COMMIT = """\
git add -A && git commit -q -m "$(cat <<'END'
Begin with shapes

The area of a rectangle, with a test; it's "done".
END
)"
"""

OBEYED = {
    ".vscode/settings.json": '{"editor.formatOnSave": true}\n',
    ".pre-commit-config.yaml": "repos: []\n",
    ".husky/pre-commit": "npm test\n",
    ".devcontainer/devcontainer.json": '{"image": "python:3.13"}\n',
}
"""Files that other programs obey, each written after a question."""


@dataclass
class Day:
    """What an agent does with the tools, and what its person is asked meanwhile."""

    root: Path
    client: Client
    questions: list[str] = field(default_factory=list)
    seconds: float = 0.0

    async def bash(self, command: str, *, code: int = 0, **more: object) -> str:
        """Runs a command, which has to end with an exit code; returns what the model reads."""
        result = await self.call("bash", command=command, **more)
        exit_code = (result.structured_content or {}).get("exit_code")
        assert exit_code == (None if more.get("run_in_background") else code), _told(result)
        return _told(result)

    async def call(self, tool: str, **arguments: object) -> types.CallToolResult:
        """Makes a call, which has to succeed."""
        before = time.perf_counter()
        result = await self.client.call_tool(tool, arguments)
        self.seconds += time.perf_counter() - before
        assert not result.is_error, f"{tool} {arguments}\n{_told(result)}"
        return result

    async def write(self, file_path: str, content: str) -> None:
        """Writes a file by the file tool."""
        await self.call("write_file", file_path=file_path, content=content)


def _told(result: types.CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


@asynccontextmanager
async def begin(place: Path, level: str) -> AsyncIterator[Day]:
    """Lays out a project, has its rules suggested, and connects an agent."""
    root, environ = place / "project", _environ(place, level)
    flags = _lay_out(root, place / "config.toml", level)
    command = str(command_path())
    suggest = [command, "policy", "suggest", "--write", "--yes", *flags]
    await anyio.run_process(suggest, env=environ)
    questions: list[str] = []

    async def approve(
        context: object,  # noqa: ARG001  # the protocol has it
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "once"})

    serve = ["serve", *flags, "--data-dir", str(place / "data")]
    server = StdioServerParameters(command=command, args=serve, env=environ)
    async with Client(server, elicitation_callback=approve) as client:
        yield Day(root, client, questions)


def _lay_out(root: Path, config: Path, level: str) -> list[str]:
    """Makes the project as the agent finds it, and the settings; returns the flags of both."""
    root.mkdir()
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "package.json").write_text(PACKAGE)
    config.write_text(_settings(level))
    return ["--root", str(root), "--config", str(config)]


def _settings(level: str) -> str:
    mode = "off" if level == FREE else "required"
    # A machine may reach the registries by a mirror in its own network, which has their names.
    return "\n".join(
        [
            *("[system]", f'sandbox = "{mode}"', f"environment = {json.dumps(CERTIFICATES)}"),
            *("[requests]", f"private = {json.dumps(REGISTRIES)}"),
            *(["[policy]", 'allow = ["bash"]'] if level == FREE else []),
        ]
    )


def _environ(place: Path, level: str) -> dict[str, str]:
    """Variables of the server: a home with a person's name, and no bubblewrap but at its level."""
    home, programs = place / "home", place / "programs"
    home.mkdir()
    programs.mkdir()
    (home / ".gitconfig").write_text(f"[user]\n\tname = {NAME}\n\temail = {ADDRESS}\n")
    path = os.environ["PATH"]
    if level != "bubblewrap":
        broken = programs / "bwrap"
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
        path = f"{programs}:{path}"
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "TOOLCRIB_RESULTS": "both"}
    return {**os.environ, "PATH": path, **own}


async def work(day: Day) -> None:
    """Does the day's work.

    Raises:
        AssertionError: A call failed, or its result is not what the work needs.
    """
    await _begin_a_repository(day)
    await _make_a_package(day)
    await _use_branches(day)
    await _use_a_remote(day)
    await _make_a_node_project(day)
    await _ask_a_server(day)
    await _write_obeyed_files(day)


async def _begin_a_repository(day: Day) -> None:
    await day.bash("git init -q -b main && git status --short")
    await day.write(".gitignore", ".venv/\nnode_modules/\n__pycache__/\n*.egg-info/\n*.log\n")
    assert "No commits yet" in await day.bash("git status 2>&1 | head -5")


async def _make_a_package(day: Day) -> None:
    await day.write("src/shapes.py", SHAPES)
    await day.write("tests/test_shapes.py", SHAPES_TEST)
    await day.bash("python3 -m venv .venv")
    await day.bash(
        "source .venv/bin/activate && pip install --quiet -e '.[dev]'", timeout_seconds=300
    )
    await day.bash("source .venv/bin/activate && pytest -q > test.log 2>&1; tail -1 test.log")
    assert "1 passed" in await day.bash("CI=1 .venv/bin/pytest -q tests")
    await day.bash(COMMIT)
    log = await day.bash("git log -1 --format='%an <%ae>%n%B'")
    assert f"{NAME} <{ADDRESS}>" in log
    assert 'it\'s "done".' in log


async def _use_branches(day: Day) -> None:
    await day.bash("git checkout -q -b perimeter")
    await day.call(
        "edit_file",
        path="src/shapes.py",
        old_string="    return width * height\n",
        new_string="    return width * height\n\n\ndef perimeter(w: int, h: int) -> int:\n"
        "    return 2 * (w + h)\n",
    )
    await day.bash("git commit -q -am 'Measure around'")
    await day.bash("git switch -q main && git mv tests/test_shapes.py tests/test_area.py")
    await day.bash("git commit -q -m 'Name a test by its subject' && git switch -q perimeter")
    await day.bash("git rebase -q main")
    await day.bash("git worktree add -q .trees/fix -b fix && git -C .trees/fix status --short")
    await day.bash("git worktree remove .trees/fix && git branch -D -q fix")
    await day.bash("git branch -m perimeter around")
    assert "around" in await day.bash("git branch --show-current")
    await day.bash('for file in src/shapes.py tests/test_area.py; do wc -l "$file"; done')


async def _use_a_remote(day: Day) -> None:
    await day.bash("git clone -q --bare . shared.git")
    await day.bash("git remote add origin ./shared.git && git fetch -q origin")
    await day.bash("git branch --set-upstream-to=origin/main main")
    await day.bash("git config pull.rebase true")
    assert "origin/main" in await day.bash("git branch -vv")
    await day.bash("git clone -q shared.git copy && ls copy")
    await day.bash("rm -rf copy")
    assert not (day.root / "copy").exists()


async def _make_a_node_project(day: Day) -> None:
    await day.write("web/odd.js", ODD)
    await day.write("web/odd.test.js", ODD_TEST)
    await day.bash("npm install", timeout_seconds=300)
    assert "# pass 1" in await day.bash("NO_COLOR=1 npm test 2>&1")


async def _ask_a_server(day: Day) -> None:
    await day.bash("python3 -m http.server 8123 --bind 127.0.0.1", run_in_background=True)
    page = "curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8123/"
    assert "pyproject.toml" in await day.bash(page)


async def _write_obeyed_files(day: Day) -> None:
    for name, content in OBEYED.items():
        await day.write(name, content)
    await day.bash("git add -A && git status --short")
    for name, content in OBEYED.items():
        assert (day.root / name).read_text() == content


@dataclass(frozen=True, slots=True)
class Cost:
    """The day at one level."""

    level: str
    seconds: float
    ratio: float
    questions: int


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="The cost of confinement in a day of work.")
    parser.add_argument("--runs", type=int, default=3, help="days of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    costs = anyio.run(measure, arguments.runs)
    if arguments.json:
        print(json.dumps([asdict(one) for one in costs]))
        return
    for one in costs:
        print(f"{one.level:12}{one.seconds:8.1f} s{one.ratio:8.2f}   {one.questions} questions")
    print(f"Confined, the day may take {TARGET} times as long.")


async def measure(runs: int) -> list[Cost]:
    """Does the day at each level in turn."""
    levels = (FREE, *LEVELS)
    seconds: dict[str, list[float]] = {level: [] for level in levels}
    questions = dict.fromkeys(levels, 0)
    for _ in range(runs):
        for level in levels:
            with tempfile.TemporaryDirectory(prefix="toolcrib-day-") as place:
                async with begin(Path(place), level) as day:
                    await work(day)
            seconds[level].append(day.seconds)
            questions[level] = max(questions[level], len(day.questions))
    return [
        Cost(
            level,
            statistics.median(taken),
            statistics.median(map(_ratio, taken, seconds[FREE])),
            questions[level],
        )
        for level, taken in seconds.items()
    ]


def _ratio(confined: float, free: float) -> float:
    return confined / free


if __name__ == "__main__":
    main()
