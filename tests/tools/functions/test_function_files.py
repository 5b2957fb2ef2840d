"""Function files: what of them becomes a tool, and how they are imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from tools.core.context import Link, RequestContext
from tools.core.spec import Effect, ToolScope

if TYPE_CHECKING:
    from tests.tools.functions.conftest import Serve

pytestmark = pytest.mark.slow

CRAFTS = '''
    """Crafts."""
    from dataclasses import dataclass
    from pathlib import Path as public_by_import
    from textwrap import indent

    @dataclass
    class Piece:
        length: float

    def cut(length: float, parts: int = 2) -> list[Piece]:
        """Cuts a piece.

        Args:
            length: How long it is, in metres.
        """
        return [Piece(length / parts)] * parts

    def ready() -> bool:
        return True

    def untyped(x):
        return x

    def _private(x: int) -> int:
        return x

    def pid() -> int:
        import os
        return os.getpid()
'''


async def test_every_public_typed_function_becomes_a_tool(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert served.names == ["cut", "pid", "ready"]
        spec = served.registry.find("cut")
        assert spec.input_schema["properties"]["length"]["description"].startswith("How long")
        assert spec.input_schema["required"] == ["length"]
        assert spec.scope is ToolScope.SANDBOXED
        assert (spec.read_only, spec.destructive, spec.open_world) == (False, True, True)
        assert spec.source == f"function:{served.folder / 'crafts.py'}"
        assert await served.value("cut", length="3") == [{"length": 1.5}] * 2
        assert await served.value("ready") is True
        (problem,) = served.files.problems
        assert problem.startswith(f"{served.folder / 'crafts.py'}:22: untyped is not a tool")


async def test_commands_of_a_file_become_tools_each_once(serve: Serve) -> None:
    source = """
        import click
        import typer

        app = typer.Typer()

        @app.command()
        def bye(name: str):
            print("Bye", name)

        @click.group()
        def cli(): ...

        @cli.command()
        @click.option("--size", type=int, required=True)
        def dig(size):
            click.echo(f"dug {size}")

        @click.command()
        def rest():
            print("slept")

        def token() -> str:
            return "secret"
    """
    async with serve(source) as served:
        assert served.names == ["bye", "dig", "rest"]
        assert await served.value("bye", name="Ann") == "Bye Ann"
        assert await served.value("dig", size=3) == "dug 3"
        assert await served.value("rest") == "slept"


async def test_functions_run_in_a_process_of_their_file(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        served.save("def other_pid() -> int:\n    import os\n    return os.getpid()", "other.py")
        pids = {await served.value(name) for name in ("pid", "pid", "other_pid")}
        assert len(pids) == 2
        assert os.getpid() not in pids


async def test_a_wrong_argument_is_told_as_by_any_other_tool(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        kind, message = await served.error("cut", lenght=3, parts="two")
        assert kind == "invalid_arguments"
        assert "`lenght` is unknown; did you mean `length`?" in message
        assert "`parts` is 'two'; send an integer." in message


async def test_module_hints_and_marks_refine_what_is_known_of_a_tool(serve: Serve) -> None:
    source = """
        from tools.core.spec import tool

        __tool_options__ = {"effects": ["read"], "tags": ["wood"], "timeout": 5}

        @tool
        def look(at: str) -> str:
            return at

        @tool(effects={"read", "write"}, title="Saw it", hidden={"blade"})
        def saw(what: str, blade: str = "fine") -> str:
            return f"{what}, {blade}"
    """
    async with serve(source) as served:
        look, saw = served.registry.find("look"), served.registry.find("saw")
        assert (look.read_only, look.tags, look.timeout) == (True, ("wood",), 5)
        assert (saw.title, saw.tags) == ("Saw it", ("wood",))
        assert saw.effects == {Effect.READ, Effect.WRITE}
        assert list(saw.input_schema["properties"]) == ["what"]
        assert await served.value("saw", what="oak") == "oak, fine"


async def test_all_decides_what_is_public_where_there_is_one(serve: Serve) -> None:
    source = """
        __all__ = ["named", "_too"]
        def named(x): return x
        def _too(x: int) -> int: return x
        def other(x: int) -> int: return x
    """
    async with serve(source) as served:
        assert served.names == ["named", "too"]


HELPER = """
    import click
    import typer
    from tools.authoring import Depends, prompt, resource, tool

    def auth_headers() -> dict[str, str]:
        return {"Authorization": "Bearer token"}
"""


@pytest.mark.parametrize(
    "chosen",
    [
        "@tool\n    def look() -> int: return 1",
        "@resource('a://b')\n    def look() -> int: return 1",
        "@prompt\n    def look() -> str: return 'Look.'",
        "@click.command()\n    def look(): ...",
        "app = typer.Typer()\n    @app.command()\n    def look(): ...",
        "def look(): ...\n    __all__ = ['look']",
        "@tool\n    def _look() -> int: return 1",
        "@click.command()\n    def _look(): ...",
        "class Eye:\n        @tool\n        def look(self) -> int: return 1",
        (
            "from mcp.server import MCPServer\n    mcp = MCPServer('x')\n"
            "    @mcp.tool()\n    def look() -> int: return 1"
        ),
        "def look(by: dict[str, str] = Depends(auth_headers)) -> int: return 1",
    ],
)
async def test_a_helper_is_not_offered_where_the_author_chose(serve: Serve, chosen: str) -> None:
    async with serve(f"{HELPER}\n    {chosen}\n") as served:
        assert set(served.names) <= {"look"}
        assert served.files.problems == []


@pytest.mark.parametrize(
    ("helper", "missing"),
    [
        ("def auth_headers(): return {}", "no return type"),
        ("def auth_headers(realm: str): return {}", "no return type"),
        ("async def auth_headers(realm) -> dict: return {}", "no type for realm"),
        ("def auth_headers(*realms, **more) -> dict: return {}", "no type for realms, more"),
    ],
)
async def test_a_function_without_marks_needs_types(
    serve: Serve, helper: str, missing: str
) -> None:
    async with serve(f"{helper}\ndef look(at=1) -> int: return at") as served:
        assert served.names == ["look"]
        (problem,) = served.files.problems
        assert f"auth_headers is not a tool because it has {missing}: annotate it" in problem


async def test_what_others_depend_on_is_no_tool_unless_its_author_says_so(serve: Serve) -> None:
    source = """
        from contextlib import contextmanager
        from tools.authoring import Depends, prompt, tool

        def token() -> str: return "secret"
        @contextmanager
        def connection(token: str = Depends(token)): yield token
        @tool
        def today() -> str: return "Monday"
        @tool
        def beds(by=Depends(connection), day: str = Depends(today)) -> str: return f"{by} {day}"

        def days() -> list[str]: return ["Monday"]
        @prompt(complete={"day": days})
        def plan(day: str) -> str: return day
    """
    async with serve(source) as served:
        assert served.names == ["beds", "today"]
        assert served.files.problems == []
        assert await served.value("beds") == "secret Monday"
        listed = served.folder / "crafts.py"
        listed.write_text(f"{listed.read_text()}\n__all__ = ['beds', 'token']")
        await served.files.refresh()
        assert served.names == ["beds", "token"]


async def test_a_mark_gives_a_tool_a_name_and_a_text_of_its_own(serve: Serve) -> None:
    source = """
        from tools.authoring import tool

        @tool(name="measure", description="Tells a size.")
        def größe(what: str) -> int:
            return len(what)
    """
    async with serve(source) as served:
        assert served.registry.find("measure").description == "Tells a size."
        assert await served.value("measure", what="oak") == 3


@pytest.mark.parametrize(
    ("hints", "wrong"),
    [
        ('__tool_options__ = {"efects": ["read"]}', "efects"),
        ('__tool_options__ = {"scope": "mcp"}', "scope mcp"),
        ("__tool_options__ = 5", "__tool_options__"),
    ],
)
async def test_wrong_hints_are_a_problem_that_names_them(
    serve: Serve, hints: str, wrong: str
) -> None:
    async with serve(f"{hints}\ndef f(x: int) -> int: return x") as served:
        assert served.names == []
        assert wrong in served.files.problems[0]


async def test_a_file_that_fails_to_import_says_where_and_what_to_do(serve: Serve) -> None:
    async with serve("import sys\nimport not_installed_anywhere") as served:
        path = served.folder / "crafts.py"
        (problem,) = served.files.problems
        assert problem.startswith(f"{path}:2:1: ModuleNotFoundError: No module named")
        assert "`# /// script`" in problem
        served.save("import sys\n1 / 0")
        await served.files.refresh()
        assert served.files.problems == [f"{path}:2:1: ZeroDivisionError: division by zero"]
        served.save("import sys\nsys.exit('no')")
        await served.files.refresh()
        assert served.files.problems == [f"{path}:2:1: SystemExit: no"]


async def test_wrong_metadata_is_told_with_its_line(serve: Serve) -> None:
    source = '# /// script\n# dependencies = ["not a requirement"]\n# ///\ndef f() -> int: return 1'
    async with serve(source) as served:
        (problem,) = served.files.problems
        assert problem.startswith(f"{served.folder / 'crafts.py'}:2: ")


async def test_an_authors_own_tools_package_is_theirs(serve: Serve) -> None:
    async with serve("def idle() -> None: ...", name="other.py") as served:
        served.save("LENGTH = 7", "tools/lengths.py")
        served.save("WIDTH = 8", "storage.py")
        served.save(
            """
            from storage import WIDTH
            from tools.lengths import LENGTH
            def area(x: int = 1) -> int: return LENGTH * WIDTH * x
            """
        )
        assert await served.value("area", x="2") == 112


@pytest.mark.parametrize(
    "name",
    ["tools.py", "storage.py", "json.py", "pydantic.py", "logging.py", "saw.v2.py", "säge-1.py"],
)
async def test_a_file_can_have_any_name(serve: Serve, name: str) -> None:
    source = """
        from tools.core.spec import tool

        @tool(effects={"read"})
        def half(x: int) -> float: return x / 2
        @tool()
        def fail(x: int) -> float: return x / 0
    """
    async with serve(source, name=name) as served:
        assert await served.value("half", x="3") == 1.5
        assert (await served.error("half", y=3))[0] == "invalid_arguments"
        assert (await served.error("fail", x=3))[0] == "tool_failed"
        assert served.files.problems == []


async def test_modules_beside_a_file_that_are_named_like_others_do_not_break_the_worker(
    serve: Serve,
) -> None:
    source = "from datetime import date\ndef year(of: date) -> int: return of.year"
    async with serve("raise RuntimeError", name="queue.py") as served:
        for name in ("anyio", "json", "pydantic", "traceback"):
            served.save("raise RuntimeError", f"{name}.py")
        served.save(source)
        assert await served.value("year", of="2024-02-29") == 2024


async def test_what_hides_our_own_package_is_told(serve: Serve) -> None:
    async with serve("def idle() -> None: ...", name="other.py") as served:
        served.save("", "tools/__init__.py")
        served.save("from tools.core.spec import tool")
        await served.files.refresh()
        assert "Your own 'tools' hides Toolcrib's" in served.files.problems[0]


async def test_a_file_is_imported_as_python_would_run_it(serve: Serve) -> None:
    source = """
        import asyncio, sys
        from pathlib import Path

        async def two() -> int: return 2
        NUMBER = asyncio.run(two())
        NAME = Path(sys.argv[0]).name
        def told() -> list[object]: return [NUMBER, NAME, len(sys.argv)]
    """
    async with serve(source) as served:
        assert await served.value("told") == [2, "crafts.py", 1]


async def test_a_file_of_a_package_imports_from_its_package(serve: Serve) -> None:
    async with serve("def idle() -> None: ...", name="other.py") as served:
        served.save("", "__init__.py")
        served.save("LENGTH = 7", "_lengths.py")
        served.save("from ._lengths import LENGTH\ndef length() -> int: return LENGTH")
        assert await served.value("length") == 7


async def test_a_function_that_asks_for_the_context_works_beneath_the_root(serve: Serve) -> None:
    source = """
        from tools.core.context import RequestContext

        async def note(context: RequestContext, text: str) -> str:
            await context.report_progress(1, 2, "halfway")
            context.sandbox.write("note.txt", text.encode())
            return context.sandbox.read("note.txt", max_bytes=99).data.decode()

        def escape(context: RequestContext) -> str:
            return context.sandbox.read("../functions/crafts.py", max_bytes=99).data.decode()

        def whose(context: RequestContext) -> str:
            return context.identity.user_id
    """
    async with serve(source) as served:
        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(done: float, total: float | None, message: str | None) -> None:
            heard.append((done, total, message))

        context = RequestContext(link=Link(hear))
        result = await served.manager.execute("note", {"text": "hello"}, context)
        assert result.structured == {"result": "hello"}
        assert (served.root / "note.txt").read_text(encoding="utf-8") == "hello"
        assert heard == [(1, 2, "halfway")]
        assert (await served.error("escape"))[0] == "outside_sandbox"
        assert await served.value("whose") == "local"


async def test_a_functions_working_directory_is_the_root(serve: Serve) -> None:
    async with serve("import os\ndef here() -> str: return os.getcwd()") as served:
        assert await served.value("here") == str(served.root)


async def test_a_slow_write_of_a_function_file_holds_up_no_other_file(serve: Serve) -> None:
    source = """
        import time
        from pathlib import Path

        __tool_options__ = {"effects": ["write"]}

        def wait_for(name: str) -> None:
            while not Path(name).exists():
                time.sleep(0.005)
    """
    async with serve(source) as served, anyio.create_task_group() as group:
        served.save(
            "from pathlib import Path\n"
            '__tool_options__ = {"effects": ["write"]}\n'
            "def touch(name: str) -> None: Path(name).touch()",
            "other.py",
        )
        group.start_soon(lambda: served.call("wait_for", name="here"))
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(10):
            await served.call("touch", name="here")
