"""Function files over time: saved, broken, mended, renamed, installed for."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from tools.core.context import Link, RequestContext
from tools.functions import file, files
from tools.functions.files import function_files

if TYPE_CHECKING:
    from tests.tools.functions.conftest import Serve

pytestmark = pytest.mark.slow


async def test_a_name_that_is_taken_stays_with_its_owner(serve: Serve) -> None:
    async with serve("def plane(x: int) -> int: return x") as served:
        served.save("def plane() -> int: return 0\ndef sand() -> int: return 1", "other.py")
        assert await served.value("sand") == 1
        assert await served.value("plane", x=2) == 2
        (problem,) = served.files.problems
        assert problem.startswith(f"{served.folder / 'other.py'}: ")
        assert "crafts.py" in problem


async def test_a_name_that_its_owner_gives_up_goes_to_the_next(serve: Serve) -> None:
    async with serve("def plane() -> int: return 1") as served:
        served.save("def plane() -> int: return 2", "other.py")
        await served.files.refresh()
        assert len(served.files.problems) == 1
        served.save("def saw() -> int: return 3")
        await served.files.refresh()
        assert await served.value("plane") == 2
        assert served.files.problems == []


async def test_a_file_that_is_saved_keeps_its_names(serve: Serve) -> None:
    async with serve("def plane() -> int: return 1", name="b.py") as served:
        served.save("def plane() -> int: return 2", "a.py")
        await served.files.refresh()
        served.save("def plane() -> int: return 3", "b.py")
        assert await served.value("plane") == 3


async def test_a_file_that_is_renamed_is_served_under_its_new_name(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WATCH_SECONDS", 0.01)
    async with serve("def plane() -> int: return 1") as served:
        (served.folder / "crafts.py").rename(served.folder / "renamed.py")
        with anyio.fail_after(20):
            while "renamed.py" not in served.registry.find("plane").source:
                await anyio.lowlevel.checkpoint()
        assert await served.value("plane") == 1
        assert served.files.problems == []


async def test_what_editors_put_beside_a_file_is_no_function_file(serve: Serve) -> None:
    async with serve("def size() -> int: return 1") as served:
        (served.folder / ".#crafts.py").symlink_to("somebody@somewhere.1")
        (served.folder / "._crafts.py").write_bytes(b"\0\5\x16\7")
        (served.folder / "package.py").mkdir()
        await served.files.refresh()
        assert served.files.problems == []


async def test_a_folder_that_is_away_for_a_while_is_served_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WATCH_SECONDS", 0.01)
    async with serve("def size() -> int: return 1") as served:
        away = served.folder.rename(served.folder.with_name("away"))
        with anyio.fail_after(20):
            while served.names:
                await anyio.lowlevel.checkpoint()
        assert served.files.problems == []
        away.rename(served.folder)
        assert await served.value("size") == 1


async def test_a_saved_change_is_served_by_the_next_call(serve: Serve) -> None:
    async with serve("def size() -> int: return 0") as served:
        for size in range(1, 6):  # of one length and within a second, as bytecode caches tell them
            served.save(f"def size() -> int: return {size}")
            assert await served.value("size") == size


async def test_a_change_of_a_module_beside_the_file_counts_too(serve: Serve) -> None:
    async with serve("def idle() -> None: ...", name="other.py") as served:
        served.save("SIZE = 1", "_sizes.py")
        served.save("from _sizes import SIZE\ndef size() -> int: return SIZE")
        assert await served.value("size") == 1
        served.save("SIZE = 2", "_sizes.py")
        assert await served.value("size") == 2


async def test_a_change_of_a_module_that_could_not_be_imported_counts_too(serve: Serve) -> None:
    async with serve("def size() -> int: return 1") as served:
        served.save("SIZE = ", "_sizes.py")
        served.save("from _sizes import SIZE\ndef size() -> int: return SIZE")
        assert await served.value("size") == 1
        served.save("SIZE = 2", "_sizes.py")
        assert await served.value("size") == 2
        served.save("from _missing import SIZE\ndef size() -> int: return SIZE")
        assert await served.value("size") == 2
        served.save("SIZE = 3", "_missing.py")
        assert await served.value("size") == 3


async def test_the_last_good_version_in_a_new_process_still_waits_for_the_next(
    serve: Serve,
) -> None:
    async with serve("import os\ndef die() -> None: os.abort()") as served:
        served.save("SIZE = ", "_sizes.py")
        served.save("from _sizes import SIZE\ndef size() -> int: return SIZE")
        assert (await served.error("die"))[0] == "tool_failed"
        assert (await served.error("die"))[0] == "tool_failed"
        served.save("SIZE = 2", "_sizes.py")
        assert await served.value("size") == 2


async def test_the_next_call_finds_new_functions_and_not_those_that_are_gone(serve: Serve) -> None:
    async with serve("def old() -> int: return 1") as served:
        served.save("def new(x: int) -> int: return x")
        assert await served.value("new", x=1) == 1
        assert served.names == ["new"]
        assert (await served.error("old"))[0] == "unknown_tool"
        served.save("def newest() -> int: return 2", "third.py")
        assert await served.value("newest") == 2


async def test_a_function_that_is_gone_at_its_call_is_unknown(serve: Serve) -> None:
    async with serve("def old() -> int: return 1") as served:
        served.save("def new() -> int: return 2")
        kind, message = await served.error("old")
        assert kind == "unknown_tool"
        assert "crafts.py was changed and has no function 'old' now." in message


async def test_a_syntax_error_keeps_the_last_good_version(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve("def size() -> int: return 1\ndef die() -> None: import os; os.abort()") as it:
        path = it.save("def size() -> int:\n    return (2")
        assert await it.value("size") == 1
        assert it.files.problems == [f"{path}:2:12: SyntaxError: '(' was never closed"]
        (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert record.getMessage() == it.files.problems[0]
        assert (await it.error("die"))[0] == "tool_failed"
        assert await it.value("size") == 1  # in a new process, of a file that is still broken
        it.save("def size() -> int:\n    return (2)")
        assert await it.value("size") == 2
        assert it.files.problems == []


async def test_an_import_without_end_is_told_and_not_tried_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "LOAD_SECONDS", 0.5)
    async with serve("while True: pass") as served:
        path = served.folder / "crafts.py"
        assert served.files.problems == [f"{path}: Its import took longer than 0.5 seconds."]
        monkeypatch.setattr(file, "RETRY_SECONDS", 0)
        with anyio.fail_after(0.4):
            await served.files.refresh()


async def test_a_file_that_talks_nonsense_while_it_is_imported_ends_no_more_than_itself(
    serve: Serve,
) -> None:
    source = """
        import os
        line = b'{"loaded": {"offers": [{"name": "x"}], "problems": [], "files": []}}\\n'
        for fd in range(3, 30):
            try:
                os.write(fd, line)
            except OSError:
                pass
    """
    async with serve(source) as served:
        (problem,) = served.files.problems
        assert "cannot be loaded" in problem
        served.save("def size() -> int: return 1")
        assert await served.value("size") == 1


async def test_a_worker_that_ends_by_itself_is_started_by_the_next_call_alone(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WATCH_SECONDS", 0.01)
    source = """
        import os, threading
        with open("starts", "a") as starts:
            starts.write("x")
        def die() -> None: os.abort()
        def size() -> int: return 1
    """
    async with serve(source) as served:
        starts = served.root / "starts"
        await served.error("die")
        for name in ("b.py", "c.py"):  # each is found by a look
            served.save(f"def {name[0]}() -> int: return 1", name)
            with anyio.fail_after(20):
                while served.registry.get(name[0]) is None:
                    await anyio.lowlevel.checkpoint()
        assert starts.read_text() == "x"
        assert await served.value("size") == 1
        assert starts.read_text() == "xx"


async def test_a_file_that_vanishes_is_served_as_it_was(serve: Serve) -> None:
    async with serve("def size() -> int: return 1") as served:
        (served.folder / "crafts.py").unlink()
        assert await served.value("size") == 1
        assert "cannot be read" in served.files.problems[0]


def test_a_folder_gives_its_own_python_files(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "_c.py", "test_d.py", "conftest.py", "e.txt", "sub/f.py", ".g.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = function_files([tmp_path, tmp_path / "_c.py"])
    assert [path.name for path in found] == ["a.py", "b.py", "_c.py"]


def test_a_file_that_is_named_in_several_ways_comes_once(tmp_path: Path) -> None:
    folder = tmp_path / "crafts"
    folder.mkdir()
    file = folder / "saws.py"
    file.touch()
    (folder / "link.py").symlink_to(file)
    around = folder / ".." / "crafts" / "saws.py"
    assert list(function_files([file, folder, around])) == [file]


async def test_a_file_has_the_dependencies_it_names_and_no_others(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    source = """
        # /// script
        # dependencies = ["six==1.17.0"]
        # ///
        import six

        def version() -> str:
            return six.__version__

        def find(package: str) -> bool:
            from importlib.util import find_spec
            return find_spec(package) is not None
    """
    async with serve("def idle() -> None: ...", name="other.py") as served:
        served.save(source)
        heard: list[str | None] = []

        async def hear(_done: float, _total: float | None, message: str | None) -> None:
            heard.append(message)

        with anyio.fail_after(60):
            await served.files.refresh()
        assert await served.value("version") == "1.17.0"
        assert await served.value("find", package="chromadb") is False
        assert await served.value("find", package="tools") is True
        served.save(source.replace("1.17.0", "1.16.0"))
        context = RequestContext(link=Link(hear))
        result = await served.manager.execute("version", {}, context)
        assert result.structured == {"result": "1.16.0"}
        assert any("six" in (line or "") for line in heard)
        served.save(source.replace("six==1.17.0", "pydantic<2"))
        assert await served.value("version") == "1.16.0"
        assert "pydantic" in served.files.problems[0]


async def test_a_wait_for_an_installation_can_be_given_up(serve: Serve) -> None:
    source = """
        # /// script
        # dependencies = ["six==1.17.0"]
        # ///
        import six

        def version() -> str:
            return six.__version__
    """
    async with serve("def idle() -> None: ...", name="other.py") as served:
        served.save(source)
        with anyio.move_on_after(0) as waiting:
            await served.files.refresh()
        assert waiting.cancelled_caught
        assert await served.value("version") == "1.17.0"


async def test_installations_hold_up_no_other_file(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_WAIT", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        async with serve("def size() -> int: return 1", UV_DEFAULT_INDEX=index) as served:
            for name in ("a", "b", "c"):
                head = f'# /// script\n# dependencies = ["{name}"]\n# ///\n'
                served.save(f"{head}def {name}() -> int: return 1", f"{name}.py")
            kind, message = await served.error("b")
            assert kind == "unavailable"
            assert "a.py, b.py, c.py may have it" in message
            served.save("def size() -> int: return 2")
            with anyio.fail_after(20):
                assert await served.value("size") == 2
