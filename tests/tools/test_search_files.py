import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.boundary


def fill(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


async def test_glob_finds_files_by_their_paths(crib: Any) -> None:
    fill(crib.root, {"a.py": "", "src/b.py": "", "src/c.txt": "", ".gitignore": "d.py", "d.py": ""})
    (crib.root / "link.py").symlink_to("a.py")
    found = await crib.call("glob", pattern="*.py")
    assert {file["path"]: file["is_link"] for file in found["files"]} == {
        "a.py": False,
        "src/b.py": False,
        "link.py": True,
    }
    assert not found["truncated"]
    found = await crib.call("glob", pattern="**/*.{py,txt}", path="src")
    assert {file["path"] for file in found["files"]} == {"src/b.py", "src/c.txt"}
    found = await crib.call("glob", pattern="d.py", include_ignored=True)
    assert [file["path"] for file in found["files"]] == ["d.py"]
    text = await crib.text("glob", pattern="*.py", max_results=2)
    assert text.startswith("[2 files, the newest first]\n")
    assert "raise max_results" in text


async def test_grep_finds_lines_and_what_stands_around_them(crib: Any) -> None:
    fill(crib.root, {"a.py": "one\ndef two():\n  three\n\n\n\ndef four(): pass\n", "b.txt": "def"})
    found = await crib.call(
        "grep", pattern=r"^DEF \w+\(", file_pattern="*.py", case_sensitive=False, context_lines=1
    )
    assert found["matches"] == [
        {"path": "a.py", "line": 2, "text": "def two():", "before": ["one"], "after": ["  three"]},
        {"path": "a.py", "line": 7, "text": "def four(): pass", "before": [""], "after": []},
    ]
    assert found["files_searched"] == 1
    text = await crib.text("grep", pattern="def", path="a.py", context_lines=1)
    assert text == (
        "[2 matches in 1 of 1 files]\na.py\n"
        "1- one\n2: def two():\n3-   three\n--\n6- \n7: def four(): pass"
    )


@pytest.mark.parametrize(
    "asked", [{"output_mode": "files_with_matches"}, {"output_mode": "count"}, {"names_only": True}]
)
async def test_grep_names_files_alone_with_their_number_of_lines(
    crib: Any, asked: dict[str, Any]
) -> None:
    for name in ("a", "b", "c"):
        (crib.root / name).write_text("x\n" * ord(name) + "y\n")
    found = await crib.call("grep", pattern="x", max_results=2, **asked)
    assert found["files"] == [{"path": "a", "count": 97}, {"path": "b", "count": 98}]
    assert (found["matches"], found["truncated"]) == ([], True)
    text = await crib.text("grep", pattern="x", **asked)
    assert text.splitlines()[:2] == ["[3 of 3 files have matches]", "a: 97"]


async def test_search_files_says_why_each_file_was_found(crib: Any) -> None:
    fill(crib.root, {"policies.md": "nothing", "docs/a.md": "The policy is safe.\n", "b": "hay"})
    found = await crib.call("search_files", query="where is the safe policy")
    first, second = found["files"]
    assert (first["path"], first["why"]) == ("policies.md", "name: policy")
    assert (second["path"], second["why"]) == ("docs/a.md", "lines: safe x1, policy x1")
    assert second["lines"] == [{"line": 1, "text": "The policy is safe."}]
    assert found["files_searched"] == 3
    text = await crib.text("search_files", query="policy")
    assert "docs/a.md (lines: policy x1)\n  1: The policy is safe." in text


async def test_names_and_lines_cannot_drive_a_terminal(crib: Any) -> None:
    fill(crib.root, {"\x1b[31m\nred": "needle \x1b]0;title\x07 \u202e\ttab"})
    (crib.root / os.fsdecode(b"\xff")).write_text("needle")
    for name, arguments in (
        ("glob", {"pattern": "*"}),
        ("grep", {"pattern": "needle"}),
        ("search_files", {"query": "needle"}),
    ):
        text = await crib.text(name, **arguments)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "\\x1b[31m\\nred" in text
        assert "\\xff" in text


async def test_the_servers_own_files_are_never_found(
    open_crib: Callable[..., AbstractAsyncContextManager[Any]], tmp_path: Path
) -> None:
    async with open_crib(root=tmp_path) as crib:
        fill(tmp_path, {"data/own.txt": "needle", "mine.txt": "needle"})
        found = await crib.call("grep", pattern="needle")
        assert [match["path"] for match in found["matches"]] == ["mine.txt"]
        error_type, _ = await crib.failure("grep", pattern="needle", path="data")
        assert error_type == "permission_denied"


@pytest.mark.parametrize(
    ("name", "arguments", "error_type", "told"),
    [
        ("grep", {"pattern": "a(b"}, "invalid_arguments", "position 1"),
        ("grep", {"pattern": "a", "file_pattern": "{a"}, "invalid_arguments", "unclosed '{'"),
        ("grep", {"pattern": "a", "path": "../x"}, "outside_sandbox", "../x"),
        ("grep", {"pattern": "a", "path": "missing"}, "not_found", "missing"),
        ("glob", {"pattern": "/etc/*"}, "invalid_arguments", "relative to `path`"),
        ("glob", {"pattern": "a", "max_results": 1001}, "invalid_arguments", "1000"),
        ("search_files", {"query": "?!"}, "invalid_arguments", "no word"),
    ],
)
async def test_what_is_wrong_is_told(
    crib: Any, name: str, arguments: dict[str, Any], error_type: str, told: str
) -> None:
    found_type, text = await crib.failure(name, **arguments)
    assert found_type == error_type
    assert told in text
