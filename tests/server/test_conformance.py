"""The official conformance suite of MCP, by which functions of a plain file are a whole server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.conformance import run, run_tasks, served

SUITES = os.environ.get("MCP_CONFORMANCE_SUITES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SUITES is None, reason="MCP_CONFORMANCE_SUITES is not set; .ci/run sets it"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served("functions", None, tmp_path_factory.mktemp("conformance")) as url:
        yield url


@pytest.mark.parametrize(
    ("version", "revision", "least"),
    [
        ("0.1.16", "", 30),
        ("0.2.0-alpha.12", "2025-11-25", 30),
        ("0.2.0-alpha.12", "2026-07-28", 37),
    ],
)
def test_nothing_that_is_required_fails(url: str, version: str, revision: str, least: int) -> None:
    suite = Path(str(SUITES), version, "node_modules/.bin/conformance")
    report = run("functions", [str(suite)], url, revision)
    assert report.failed == []
    assert report.passed >= least


def test_tasks_are_those_of_the_extension(url: str) -> None:
    suite = Path(str(SUITES), "0.2.0-alpha.12", "node_modules/.bin/conformance")
    report = run_tasks("functions", [str(suite)], url)
    # No tool of ours needs a client that knows tasks: any other waits, or looks with get_task.
    assert report.failed == ["tasks-required-task-error"]
