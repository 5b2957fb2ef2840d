"""The search as tools use it: what it finds, what it passes over, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tools.core.errors import (
    DeadlineError,
    InternalError,
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    PermissionDeniedError,
)
from tools.sandbox.files.protect import Name
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes import idle_workers
from tools.sandbox.search.content import MAX_FILE_BYTES
from tools.sandbox.search.search import FileSearch, Scope

pytestmark = pytest.mark.boundary

ALL = Scope()
CATASTROPHE = r"(a+)+$"


def fill(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)


def found(result: Any) -> list[tuple[str, int]]:
    return [(item["path"], item["line"]) for item in result.items]


def test_lines_come_with_their_numbers_in_the_order_of_the_files(searcher: Any, root: Path) -> None:
    fill(root, {"b.txt": "x\nneedle\n", "a/c.txt": "needle 1\nno\nneedle 2", "a.txt": "hay"})
    result = searcher.grep("needle", ALL)
    assert found(result) == [("a/c.txt", 1), ("a/c.txt", 3), ("b.txt", 2)]
    assert [item["text"] for item in result.items] == ["needle 1", "needle 2", "needle"]
    assert (result.files, result.truncated) == (3, False)


def test_context_is_what_stands_around(searcher: Any, root: Path) -> None:
    fill(root, {"a": "1\n2\nneedle\n4\n"})
    (item,) = searcher.grep("needle", ALL, context=2).items
    assert (item["before"], item["after"]) == (["1", "2"], ["4"])


def test_results_end_at_the_limit_and_say_so(searcher: Any, root: Path) -> None:
    fill(root, {f"f{number:03}": "needle\n" * 5 for number in range(60)})
    result = searcher.grep("needle", ALL, limit=7)
    assert found(result) == [("f000", line) for line in range(1, 6)] + [("f001", 1), ("f001", 2)]
    assert result.truncated
    assert not searcher.grep("needle", ALL, limit=300).truncated


def test_an_answer_has_no_more_text_than_can_be_read(searcher: Any, root: Path) -> None:
    fill(root, {"a": ("x" * 390 + "\n") * 1000})
    result = searcher.grep("x", ALL, context=20, limit=1000)
    assert result.truncated
    assert 1 <= len(result.items) < 30


def test_paths_narrow_a_search_and_are_shown_from_the_root(searcher: Any, root: Path) -> None:
    fill(root, {"src/a.py": "needle", "src/b.txt": "needle", "c.py": "needle"})
    assert found(searcher.grep("needle", Scope(path="src"))) == [("src/a.py", 1), ("src/b.txt", 1)]
    assert found(searcher.grep("needle", Scope(names="*.py"))) == [("c.py", 1), ("src/a.py", 1)]
    assert found(searcher.grep("needle", Scope(path="src", names="*.py"))) == [("src/a.py", 1)]
    assert found(searcher.grep("needle", Scope(path="src/b.txt"))) == [("src/b.txt", 1)]
    assert found(searcher.grep("needle", Scope(path=str(root / "src/b.txt")))) == [("src/b.txt", 1)]


def test_a_path_through_a_link_is_shown_where_it_really_is(searcher: Any, root: Path) -> None:
    fill(root, {"real/a": "needle"})
    (root / "link").symlink_to("real")
    assert found(searcher.grep("needle", Scope(path="link"))) == [("real/a", 1)]


def test_what_git_ignores_is_left_out_until_it_is_asked_for(searcher: Any, root: Path) -> None:
    fill(root, {".gitignore": "build/\n", "build/a": "needle", "b": "needle"})
    for _ in range(3):
        assert found(searcher.grep("needle", ALL)) == [("b", 1)]
    everything = Scope(include_ignored=True)
    assert found(searcher.grep("needle", everything)) == [("b", 1), ("build/a", 1)]


def test_what_is_no_longer_ignored_is_found_at_once(searcher: Any, root: Path) -> None:
    fill(root, {".gitignore": "build/\n", "build/a": "needle", "b": "needle"})
    for _ in range(3):
        fill(root, {".gitignore": "build/\n"})
        assert found(searcher.grep("needle", ALL)) == [("b", 1)]
        fill(root, {".gitignore": "other/\n"})
        assert found(searcher.grep("needle", ALL)) == [("b", 1), ("build/a", 1)]


def test_links_are_not_followed(searcher: Any, root: Path) -> None:
    fill(root.parent, {"outside/secret": "needle"})
    fill(root, {"a": "needle"})
    (root / "file").symlink_to("../outside/secret")
    (root / "directory").symlink_to("../outside")
    (root / "loop").symlink_to(".")
    assert found(searcher.grep("needle", ALL)) == [("a", 1)]
    for path in ("directory", "file"):
        with pytest.raises(OutsideSandboxError):
            searcher.grep("needle", Scope(path=path))
    names = {item["path"]: item["is_link"] for item in searcher.glob(Scope(names="*")).items}
    assert names == {"a": False, "file": True, "directory": True, "loop": True}


def test_what_is_no_plain_file_holds_nothing_up(searcher: Any, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        fill(root, {"a": "needle"})
        assert found(searcher.grep("needle", ALL)) == [("a", 1)]
        with pytest.raises(InvalidArgumentsError):
            searcher.grep("needle", Scope(path="pipe"))


def test_a_sparse_file_of_ten_gigabytes_is_named_and_not_read(searcher: Any, root: Path) -> None:
    fill(root, {"a": "needle"})
    with (root / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)
    result = searcher.grep("needle", ALL)
    assert (found(result), result.large) == ([("a", 1)], ["sparse"])
    assert searcher.grep("needle", Scope(path="sparse")).large == ["sparse"]


def test_case_is_ignored_where_the_pattern_itself_says_so(searcher: Any, root: Path) -> None:
    fill(root, {"a": b"a NEEDLE", "b": b"a needle", "c": b"none"})
    assert found(searcher.grep("(?i)Needle", ALL)) == [("a", 1), ("b", 1)]


def test_a_file_of_the_largest_size_is_searched(
    open_search: Callable[..., Any], root: Path
) -> None:
    fill(root, {"large": b"x" * (MAX_FILE_BYTES - 7) + b"\nneedle"})
    with open_search() as searcher:
        assert found(searcher.grep("needle", ALL)) == [("large", 2)]


def test_a_growing_file_is_searched_to_an_end(searcher: Any, root: Path) -> None:
    fill(root, {"log": "needle\n"})
    with (root / "log").open("ab") as log:
        for number in range(30):
            log.write(b"hay\n" * 1000 + b"needle\n")
            log.flush()
            assert len(searcher.grep("needle", ALL).items) == number + 2


def test_protected_places_are_not_read_under_any_name(
    open_search: Callable[..., Any], root: Path
) -> None:
    fill(root, {"data/keys": "needle", "settings.toml": "needle", "a": "needle", "z/x": "needle"})
    os.link(root / "settings.toml", root / "innocent.txt")
    protected = (root / "data", root / "settings.toml", root / "missing")
    with open_search(protected=protected) as searcher:
        assert found(searcher.grep("needle", ALL)) == [("a", 1), ("z/x", 1)]
        shown = [item["path"] for item in searcher.glob(Scope(names="*")).items]
        assert sorted(shown) == ["a", "z/x"]
        assert [item["path"] for item in searcher.rank(["needle"], ALL).items] == ["a", "z/x"]
        for path in ("data", "settings.toml", "innocent.txt"):
            with pytest.raises(PermissionDeniedError):
                searcher.grep("needle", Scope(path=path))


class Denied:
    """Rules that deny one directory."""

    def check(self, path: str, *, writing: bool) -> None:
        if path.startswith("denied") and not writing:
            raise PermissionDeniedError(f"{path} is denied.")

    def hides(self, path: str) -> bool:
        return path.partition("/")[0] == "denied"

    def permits(self, _path: str) -> tuple[Name, ...]:
        return ()


def test_what_a_rule_denies_is_left_out(searcher: Any, root: Path) -> None:
    fill(root, {"denied/a": "needle", "b": "needle"})
    (root / "way").symlink_to("denied")
    searcher.sandbox = searcher.sandbox.ruled(Denied())
    assert found(searcher.grep("needle", ALL)) == [("b", 1)]
    assert {item["path"] for item in searcher.glob(Scope(names="*")).items} == {"b", "way"}
    assert [item["path"] for item in searcher.rank(["needle"], ALL).items] == ["b"]
    for path in ("denied", "way", "denied/a", "way/a"):
        with pytest.raises(PermissionDeniedError):
            searcher.grep("needle", Scope(path=path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_what_cannot_be_read_is_told_and_not_fatal(searcher: Any, root: Path) -> None:
    fill(root, {"closed/a": "needle", "b": "needle", "c": "needle"})
    (root / "closed").chmod(0)
    (root / "c").chmod(0)
    try:
        result = searcher.grep("needle", ALL)
        assert (found(result), result.unreadable) == ([("b", 1)], ["closed", "c"])
    finally:
        (root / "closed").chmod(0o755)


@pytest.mark.parametrize("path", ["missing", "a/missing"])
def test_a_path_that_is_not_there_is_told(searcher: Any, root: Path, path: str) -> None:
    (root / "a").mkdir()
    with pytest.raises(NotFoundError):
        searcher.grep("x", Scope(path=path))


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a(b", 1), ("a)", 1), ("[a", 0), ("*a", 0), ("(?P<1>a)", 4), ("a{2,1}", 2), ("\\", 0)],
)
def test_a_malformed_pattern_is_told_with_its_position(
    open_search: Callable[..., Any], pattern: str, position: int
) -> None:
    with open_search() as searcher, pytest.raises(InvalidArgumentsError) as caught:
        searcher.grep(pattern, ALL)
    assert f"at position {position}" in caught.value.message


@pytest.mark.parametrize("pattern", ["(?<=a+)b", "(" * 2000 + ")" * 2000, "a{99999999999}"])
def test_a_pattern_that_cannot_be_compiled_is_told(
    open_search: Callable[..., Any], pattern: str
) -> None:
    with open_search() as searcher:
        with pytest.raises(InvalidArgumentsError, match="not a regular expression"):
            searcher.grep(pattern, ALL)
        assert searcher.grep("x", ALL).items == []


def test_a_pattern_that_backtracks_for_ever_meets_the_deadline(
    open_search: Callable[..., Any], root: Path
) -> None:
    fill(root, {"a": "a" * 60 + "!"})
    with open_search(deadline=0.5) as searcher:
        with pytest.raises(DeadlineError, match=r"\(a\+\)\+\$") as caught:
            searcher.grep(CATASTROPHE, ALL)
        assert caught.value.next_actions
        assert searcher.grep("a!", ALL).items != []


def test_a_pattern_that_takes_for_ever_to_compile_meets_the_deadline(
    open_search: Callable[..., Any], root: Path
) -> None:
    fill(root, {"a": "x"})
    with open_search(deadline=0.5) as searcher, pytest.raises(DeadlineError):
        searcher.grep("[\x80-\U0010ffff]" * 200, ALL, ignore_case=True)


async def test_the_server_answers_others_while_a_pattern_backtracks(root: Path) -> None:
    fill(root, {"a": "a" * 60 + "!", "b": "needle"})
    search, sandbox = FileSearch(deadline=1.0), Sandbox(root)
    others = 0

    async def ask_others() -> None:
        nonlocal others
        while True:
            await search.grep(sandbox, "needle", ALL, limit=1)
            others += 1

    async with anyio.create_task_group() as group:
        group.start_soon(ask_others)
        with pytest.raises(DeadlineError):
            await search.grep(sandbox, CATASTROPHE, ALL, limit=1)
        group.cancel_scope.cancel()
    await search.aclose()
    assert others > 1


async def test_a_search_that_is_cancelled_leaves_no_process(root: Path) -> None:
    fill(root, {"a": "a" * 60 + "!"})
    search, sandbox = FileSearch(), Sandbox(root)
    with anyio.move_on_after(0.3):
        await search.grep(sandbox, CATASTROPHE, ALL, limit=1)
    assert workers() == []
    await search.grep(sandbox, "x", ALL, limit=1)
    assert len(workers()) == 1
    await search.aclose()
    assert workers() == []


async def test_a_worker_ends_when_nothing_is_searched_for_a_while(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root, {"a": "needle"})
    search, sandbox = FileSearch(), Sandbox(root)
    await search.grep(sandbox, "needle", ALL, limit=9)
    assert len(workers()) == 1
    monkeypatch.setattr(idle_workers, "IDLE_SECONDS", 0.0)
    await search.grep(sandbox, "needle", ALL, limit=9)
    with anyio.fail_after(20):
        while workers():
            await anyio.lowlevel.checkpoint()
    assert (await search.grep(sandbox, "needle", ALL, limit=9)).items
    await search.aclose()
    assert workers() == []


def workers() -> list[int]:
    """The worker processes that this process has started and that still run."""
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "search.worker" in line]


async def test_one_worker_serves_several_searches_and_one_that_died_is_replaced(root: Path) -> None:
    fill(root, {"a": "needle"})
    search, sandbox = FileSearch(), Sandbox(root)
    for _ in range(3):
        assert (await search.grep(sandbox, "needle", ALL, limit=9)).items
    (first,) = workers()
    os.kill(first, signal.SIGKILL)
    with suppress(InternalError):  # where it was asked before its end was noticed
        await search.grep(sandbox, "needle", ALL, limit=9)
    assert (await search.grep(sandbox, "needle", ALL, limit=9)).items
    assert first not in workers()
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(lambda: search.grep(sandbox, "needle", ALL, limit=9))
    assert len(workers()) == 1
    await search.aclose()


def is_running(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_worker_ends_with_its_server(root: Path) -> None:
    fill(root, {"a": "x"})
    server = f"""
import anyio, os, signal
from pathlib import Path
from tools.sandbox.search.search import Scope
from tools.sandbox.search.search import FileSearch
from tools.sandbox.files.protect import Name
from tools.sandbox.files.protect import Name
from tools.sandbox.files.sandbox import Sandbox

async def main():
    search = FileSearch()
    await search.grep(Sandbox(Path({str(root)!r})), "x", Scope(), limit=1)
    print(next(iter(search._workers._idle))._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", server], capture_output=True, check=False)
    worker = Path("/proc", done.stdout.decode().strip())
    assert any(not is_running(worker) for _ in range(1_000_000))


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_directory_of_many_files_is_bounded(
    open_search: Callable[..., Any], root: Path, count: int
) -> None:
    (root / "f0").write_bytes(b"")
    home = os.open(root, os.O_RDONLY)
    for number in range(1, count):
        os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=home))
    os.close(home)
    fill(root, {"z": "needle"})
    with open_search() as searcher:
        result = searcher.grep("needle", ALL)
        assert (found(result), result.files) == ([("z", 1)], count + 1)
        shown = searcher.glob(Scope(names="*"), limit=5)
        assert (len(shown.items), shown.truncated) == (5, True)


def test_names_of_all_kinds_are_searched(searcher: Any, root: Path) -> None:
    names = [
        "-e",
        "--",
        "a b",
        "\n",
        "[x]",
        "*",
        "é",
        "\x1b[31m",
        os.fsdecode(b"\xff"),
        "!a",
        "{b}",
    ]
    fill(root, {f"{name}/{name}": "needle" for name in names})
    result = searcher.grep("needle", ALL)
    assert {item["path"] for item in result.items} == {f"{name}/{name}" for name in names}
    for name in names:
        assert found(searcher.grep("needle", Scope(path=name))) == [(f"{name}/{name}", 1)]


def test_the_newest_files_come_first(searcher: Any, root: Path) -> None:
    fill(root, {"old.py": "", "new.py": "", "b/middle.py": "", "other.txt": ""})
    for age, name in enumerate(("new.py", "b/middle.py", "old.py")):
        os.utime(root / name, (1e9 - age, 1e9 - age))
    shown = [item["path"] for item in searcher.glob(Scope(names="*.py")).items]
    assert shown == ["new.py", "b/middle.py", "old.py"]


def test_words_are_ranked_by_where_they_stand(searcher: Any, root: Path) -> None:
    fill(
        root,
        {
            "policy.py": "nothing",
            "policies/x.py": "nothing",
            "once.txt": "the policy",
            "often.txt": "policy\n" * 20,
            "both.txt": "the policy of approval\n",
            "other.txt": "unpolicied, apolicy, hay",
        },
    )
    ranked = [item["path"] for item in searcher.rank(["polic", "approv"], ALL).items]
    assert ranked[:2] == ["both.txt", "policy.py"]
    assert "other.txt" not in ranked
    assert ranked.index("often.txt") < ranked.index("once.txt")


def test_words_begin_at_capitals_and_underscores(searcher: Any, root: Path) -> None:
    fill(root, {"a": "getUserName()\nuser_name\nUSERNAME\nsurname\n搜索文件", "b": "x"})
    (item,) = searcher.rank(["name"], ALL).items
    assert item["counts"] == [2]
    (item,) = searcher.rank(["索文"], ALL).items
    assert item["lines"] == [[5, "搜索文件"]]
