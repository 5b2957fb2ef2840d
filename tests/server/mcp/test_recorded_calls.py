"""A real server that is killed, or that cannot write: what it answered is recorded, or answered."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slow
def test_what_was_answered_before_a_kill_is_recorded(
    tmp_path: Path, raw_server: Callable[[Path], Any]
) -> None:
    for life in range(3):
        server = raw_server(tmp_path)
        for number in range(5):
            server.call("list_directory", path=f"life{life}-{number}")
        server.kill()
    server = raw_server(tmp_path)
    found = server.call("query_events", filter_by="action", value="list_directory")
    server.kill()
    targets = [each["target"] for each in found["structuredContent"]["events"]]
    assert targets == [f"life{life}-{number}" for life in (2, 1, 0) for number in (4, 3, 2, 1, 0)]
    assert len({each["session"] for each in found["structuredContent"]["events"]}) == 3


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
def test_a_disk_that_takes_nothing_any_more_changes_no_answer(
    tmp_path: Path, raw_server: Callable[[Path], Any]
) -> None:
    server = raw_server(tmp_path)
    before = server.call("list_directory", path=".")
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    for _ in range(3):
        after = server.call("list_directory", path=".")
        assert after["structuredContent"] == before["structuredContent"]
    (told,) = server.call("add_knowledge", content="tea")["content"]
    assert told["text"].startswith("unavailable: ")
    resource.prlimit(
        server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    server.call("list_directory", path="root")
    found = server.call("query_events", outcome="failed")
    server.kill()
    assert [each["target"] for each in found["structuredContent"]["events"]] == ["root"]
