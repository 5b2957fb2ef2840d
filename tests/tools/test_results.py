"""Large results, of our own tools and of functions, and what is read of them."""

import base64
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from storage.keeping.kept_results import KEPT_SECONDS, KeptResults, Owner
from tests.tools.conftest import Crib
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.calling.result_views import View, abridged
from tools.core.spec import Effect, ToolScope

LIMIT = 16_000


def _issues() -> dict[str, Any]:
    return {
        "issues": [
            {"number": at, "state": "open" if at % 7 else "closed", "user": {"login": f"u{at % 9}"},
             "title": f"Issue {at}", "body": f"Body of {at}. " * 20}
            for at in range(300)
        ]
    }  # fmt: skip


def list_issues() -> dict[str, Any]:
    """Lists issues."""
    return _issues()


def write_log() -> str:
    """Returns a log."""
    return "\n".join(f"{at:06} INFO worker {at % 13} did its work" for at in range(40_000))


async def _preview(crib: Crib, function: Any) -> tuple[str, str]:
    """The handle and the whole text of a function's preview."""
    reads = frozenset({Effect.READ})
    spec = FunctionToMCP.convert(function, scope=ToolScope.SANDBOXED, effects=reads)
    crib.app.registry.add(spec)
    text = await crib.text(spec.name)
    found = re.search(r"read_result\(handle='(r[0-9a-f]{16})'\)", text)
    assert found is not None, text
    return found[1], text


async def test_a_large_result_becomes_a_preview_from_which_everything_is_found(crib: Crib) -> None:
    handle, text = await _preview(crib, list_issues)
    assert "300 rows at $" in text
    assert len(text) < LIMIT / 3
    path = "$.issues[?@.number==287].title"
    read = await crib.call("read_result", handle=handle, path=path)
    assert read["parts"] == ["Issue 287"]
    rows = {
        "where": ["state = closed", "user.login = u3"],
        "columns": ["number"],
        "sort": "-number",
    }
    found = (await crib.call("read_result", handle=handle, rows=rows))["parts"]
    wanted = [at for at in range(299, -1, -1) if at % 7 == 0 and at % 9 == 3]
    assert [json.loads(each)["number"] for each in found] == wanted
    assert "Issue 123" in await crib.text("read_result", handle=handle, grep="issue 123|nothing")
    for grep, count in [("issue 123|nothing", 0), ("Issue 123|nothing", 1)]:
        found = await crib.call("read_result", handle=handle, grep=grep, match_case=True)
        assert found["found"] == count


async def test_pages_stay_within_the_limit_and_meet(crib: Crib) -> None:
    handle, text = await _preview(crib, write_log)
    assert "000000 INFO" in text
    assert "039999 INFO" in text
    seen: list[str] = []
    offset = 0
    for _ in range(3):
        page = await crib.call("read_result", handle=handle, grep="worker 5 ", offset=offset)
        assert len("\n".join(page["parts"])) <= LIMIT
        seen += page["parts"]
        offset = page["next_offset"]
    assert seen == [f"{at + 1}: {line}" for at, line in enumerate(write_log().split("\n"))
                    if "worker 5 " in line][: len(seen)]  # fmt: skip
    tail = await crib.call("read_result", handle=handle, lines=[-1, -1])
    assert tail["parts"] == ["40000: 039999 INFO worker 11 did its work"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"handle": "r0123456789abcdef", "grep": "x"}, "no result"),
        ({"handle": "../../etc/passwd", "grep": "x"}, "no result"),
        ({"path": "$.issues["}, "is not a JSONPath"),
        ({"path": "$..a..b..c"}, "at most 2"),
        ({"path": "$[?match(@.title, '(a+)+b')]"}, "is not a JSONPath"),
        ({"rows": {"path": "$.nothing"}}, "no list of objects"),
        ({"rows": {"where": ["state"]}}, "is not COLUMN = VALUE"),
        ({"grep": "x", "lines": [1, 2]}, "exactly one"),
    ],
)
async def test_what_cannot_be_read_is_explained(
    crib: Crib, arguments: dict[str, Any], told: str
) -> None:
    handle, _ = await _preview(crib, list_issues)
    _, text = await crib.failure("read_result", **{"handle": handle, **arguments})
    assert told in text


async def test_forgetting_deletes_kept_results(crib: Crib, tmp_path: Path) -> None:
    handle, _ = await _preview(crib, list_issues)
    (kept,) = (tmp_path / "data" / "results").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    await crib.call("remember", content="The kite is red.")
    shown = await crib.call("forget", context_types=["knowledge"])
    assert shown["results"] == 1
    await crib.call("forget", context_types=["knowledge"], dry_run=False)
    assert not kept.exists()
    assert (await crib.failure("read_result", handle=handle, grep="x"))[0] == "not_found"


def test_a_kept_result_belongs_to_its_user_and_session_and_expires(tmp_path: Path) -> None:
    results, owner = KeptResults(tmp_path / "results"), Owner("ann", "s1")
    handle = results.put(owner, {"a": 1})
    assert results.get(handle, owner) == {"a": 1}
    assert results.get(handle, Owner("ann", "s2")) is None
    assert results.get(handle, Owner("bob", "s1")) is None
    old = time.time() - KEPT_SECONDS - 1
    os.utime(tmp_path / "results" / handle, (old, old))
    assert results.get(handle, owner) is None
    (tmp_path / "results" / ".toolcrib-0123456789abcdef.tmp").write_text("killed")
    os.utime(tmp_path / "results" / ".toolcrib-0123456789abcdef.tmp", (old, old))
    results.sweep()
    assert list((tmp_path / "results").iterdir()) == []


async def test_rows_are_counted_beyond_the_page(crib: Crib) -> None:
    handle, _ = await _preview(crib, list_issues)
    rows = {"where": ["state = closed"], "columns": ["number"], "limit": 2}
    page = await crib.call("read_result", handle=handle, rows=rows)
    assert (page["found"], page["next_offset"]) == (43, 2)
    assert page["parts"] == ['{"number":0}', '{"number":7}']


async def test_a_file_of_two_megabytes_is_kept_whole(crib: Crib) -> None:
    (crib.root / "service.log").write_text(write_log())
    text = await crib.text("read_file", file_path="service.log")
    assert "lines 1-40000 of 40000" in text
    handle = re.findall(r"handle='(r[0-9a-f]+)'", text)[0]
    last = await crib.call("read_result", handle=handle, lines=[-1, -1])
    assert last["parts"][0].endswith("039999 INFO worker 11 did its work")


def test_a_preview_shows_only_the_beginning_of_encoded_bytes() -> None:
    encoded = base64.b64encode(bytes(range(256)) * 40).decode()
    shown = View.of(f"A picture:\n{encoded}\nThe end", {}).preview(2_000)
    assert f"{encoded[:30]}… [{len(encoded)} characters]" in shown
    assert "The end" in shown
    short = abridged({"data": encoded, "name": "x"}, 300)
    assert len(short["data"]) < 100


def test_a_csv_text_has_rows_and_prose_has_none() -> None:
    view = View.of("name,size\na,1\nb,20\n", {})
    assert view.tables == {"$": [{"name": "a", "size": "1"}, {"name": "b", "size": "20"}]}
    assert View.of("One line.\nAnother one.", {}).tables == {}


def test_json_within_a_result_has_paths_and_rows() -> None:
    text = json.dumps([{"number": 1}, {"number": 2}])
    view = View.of(f"[200]\n{text}", {"status": 200, "content": text})
    assert view.tables == {"$.content": [{"number": 1}, {"number": 2}]}
    assert view.value["status"] == 200


def test_a_long_line_is_shown_in_pieces_and_found_across_them() -> None:
    from tools.results import _grep  # its edge is hard to meet from outside

    lines = View("x" * 998 + "needle" + "y" * 50).lines()
    assert len(lines) == 2
    assert _grep(lines, "needle", 0, str.casefold)[0].startswith("1:")
