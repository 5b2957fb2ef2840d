"""The file tools of the whole product: what they may reach, whoever asks."""

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl

from tests.conftest import told

pytestmark = pytest.mark.slow

OpenCrib = Callable[..., AbstractAsyncContextManager[Any]]


async def test_the_roots_that_a_client_declares_open_nothing(
    open_crib: OpenCrib, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("private")
    declared = [Root(uri=FileUrl(f"file://{path}")) for path in (tmp_path / "elsewhere", "/")]

    async def roots(context: ClientRequestContext) -> ListRootsResult:
        await anyio.lowlevel.checkpoint()
        return ListRootsResult(roots=declared)

    async with (
        open_crib() as crib,
        Client(crib.app.server, mode=mode, list_roots_callback=roots) as client,
    ):
        for name, arguments in (
            ("read_file", {"file_path": str(tmp_path / "elsewhere" / "file")}),
            ("read_file", {"file_path": "/etc/passwd"}),
            ("write_file", {"file_path": str(tmp_path / "elsewhere" / "new"), "content": "x"}),
            ("list_directory", {"path": str(tmp_path / "elsewhere")}),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert told(result).startswith("outside_sandbox: ")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]


@pytest.mark.parametrize("by", ["a link", "nothing", "a new directory"])
async def test_a_root_that_is_replaced_while_the_server_runs_is_unavailable(
    open_crib: OpenCrib, tmp_path: Path, by: str
) -> None:
    other, functions = tmp_path / "other", tmp_path / "slurp.py"
    other.mkdir()
    (other / "file").write_text("private")
    functions.write_text(
        "from tools.authoring import RequestContext\n\n"
        "def slurp(context: RequestContext) -> str:\n    'Reads.'\n"
        "    return context.sandbox.read('file', max_bytes=9).data.decode()\n"
    )
    calls: list[tuple[str, dict[str, Any]]] = [
        ("bash", {"command": "cat file; touch made"}),
        ("execute_python_code", {"code": "print(open('file').read())"}),
        ("read_file", {"file_path": "file"}),
        ("write_file", {"file_path": "made", "content": "x"}),
        ("search_files", {"query": "private"}),
        ("list_directory", {}),
        ("add_document", {"path": "file"}),
        ("apply_recipe", {"plan_path": "file"}),
        ("inspect_dataset", {"dataset_source": "file"}),
        ("undo_change", {"change_ids": [1]}),
        ("slurp", {}),
    ]
    async with open_crib(functions__paths=[functions], policy__allow=("*",)) as crib:
        await crib.app.functions.loaded()
        await crib.call("write_file", file_path="file", content="ours")
        shutil.rmtree(crib.root)
        if by == "a link":
            crib.root.symlink_to(other)
        elif by == "a new directory":
            crib.root.mkdir()
        answers = {name: await crib.failure(name, **given) for name, given in calls}
    assert {name: kind for name, (kind, _) in answers.items()} == dict.fromkeys(
        answers, "unavailable"
    )
    assert all("Ask the user to put the directory back" in told for _, told in answers.values())
    assert [path.name for path in other.iterdir()] == ["file"]


async def test_the_products_own_files_are_closed_even_inside_the_root(
    open_crib: OpenCrib, tmp_path: Path
) -> None:
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "mine.py").write_text("def mine() -> str:\n    return 'mine'\n")
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "server.log").write_text("log")
    flags: dict[str, Any] = {
        "functions__paths": [str(functions)],
        "log__file": str(tmp_path / "server.log"),
    }
    async with open_crib(root=tmp_path, **flags) as crib:
        own = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        assert own
        for path in [*own, tmp_path / "link" / own[0].name, tmp_path / "server.log"]:
            if path.exists():
                kind, text = await crib.failure("read_file", file_path=str(path))
                assert (kind, "protected" in text) == ("permission_denied", True)
            for name, more in WRITES:
                kind, _ = await crib.failure(name, file_path=str(path), **more)
                assert kind == "permission_denied"
        kind, _ = await crib.failure("list_directory", path="data")
        assert kind == "permission_denied"
        read = await crib.call("read_file", file_path="functions/mine.py")
        assert "def mine" in read["content"]
        for named in ("functions/mine.py", "functions/new.py"):
            for name, more in WRITES:
                kind, _ = await crib.failure(name, file_path=named, **more)
                assert kind in {"permission_denied", "not_found"}
        assert [path.name for path in functions.glob("*.py")] == ["mine.py"]


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"content": "x"}),
    ("edit_file", {"old_text": "def", "new_text": "x"}),
    ("insert_text_file", {"content": "x", "line_number": 1}),
]


async def test_two_hundred_edits_of_one_file_lose_none(crib: Any) -> None:
    (crib.root / "file").write_text("begin\nend\n")

    async def insert(number: int) -> None:
        await crib.call("insert_text_file", file_path="file", content=str(number), line_number=2)

    async with anyio.create_task_group() as group:
        for number in range(200):
            group.start_soon(insert, number)
    lines = (crib.root / "file").read_text().split()
    assert (lines[0], lines[-1]) == ("begin", "end")
    assert sorted(map(int, lines[1:-1])) == list(range(200))


async def test_a_cancelled_write_is_done_or_not_done(crib: Any) -> None:
    (crib.root / "file").write_text("old")
    for delay in (0.0, 0.0005, 0.002, 0.01):
        with anyio.move_on_after(delay):
            await crib.call("write_file", file_path="file", content="new" * 300_000)
        await crib.call("write_file", file_path="other", content="x")  # after it: one at a time
        assert (crib.root / "file").read_text() in {"old", "new" * 300_000}
    assert sorted(path.name for path in crib.root.iterdir()) == ["file", "other"]


@pytest.mark.boundary
async def test_what_programs_obey_is_written_after_a_question_and_what_is_closed_is_not(
    crib: Any,
) -> None:
    path = crib.root / ".vscode" / "settings.json"
    await crib.call("write_file", file_path=".vscode/settings.json", content="{}\n")
    await crib.call("Edit", path=".vscode/settings.json", old_string="{}", new_string="[]")
    assert path.read_text() == "[]\n"
    (crib.root / ".envrc").symlink_to(".vscode/settings.json")
    for closed in (
        ".git/hooks/pre-commit",
        ".envrc",
        ".config/toolcrib/config.toml",
        ".toolcribignore",
    ):
        kind, _ = await crib.failure("write_file", file_path=closed, content="evil")
        assert kind == "permission_denied"
    assert path.read_text() == "[]\n"


@pytest.mark.boundary
@pytest.mark.parametrize("profile", ["standard", "trusting"])
async def test_nobody_to_ask_leaves_what_programs_obey_as_it_was(
    open_crib: OpenCrib, profile: str
) -> None:
    async with (
        open_crib(policy__profile=profile, approvals__wait_seconds=0) as crib,
        Client(crib.app.server) as client,
    ):
        result = await client.call_tool("write_file", {"file_path": ".envrc", "content": "x"})
        assert told(result).startswith("approval_required: ")
        assert "Shells and sessions run what stands in .envrc" in str(result.content)
        assert not (crib.root / ".envrc").exists()


@pytest.mark.boundary
async def test_a_rule_that_names_it_lets_what_programs_obey_be_written_beside_a_running_job(
    open_crib: OpenCrib,
) -> None:
    rules = ["write_file(**/.vscode/*)", "write_file(.envrc)", "scope:system"]
    async with open_crib(policy__allow=rules) as crib:
        (crib.root / ".envrc").write_text("before")
        line = "touch up; until [ -e go ]; do sleep 0.01; done; echo evil > .vscode/settings.json"
        job = await crib.call("bash", command=line, run_in_background=True)
        while not (crib.root / "up").exists():
            await anyio.lowlevel.checkpoint()
        for path in (".vscode/settings.json", "pkg/.vscode/tasks.json", ".envrc"):
            await crib.call("write_file", file_path=path, content="approved")
        (crib.root / "go").touch()
        told = {"state": "running"}
        with anyio.fail_after(30):
            while told["state"] == "running":
                told = await crib.call("bash_output", job_id=job["job_id"])
        for path in (".vscode/settings.json", "pkg/.vscode/tasks.json", ".envrc"):
            assert (crib.root / path).read_text() == "approved"
