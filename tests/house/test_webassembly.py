"""CPython 3.14, built for WebAssembly: does Toolcrib make of functions there what it makes here?"""

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.function_shapes.catalogue import SHAPES
from benchmarks.function_shapes.scientific import SCIENTIFIC, SCIENTIFIC_TEXTS
from benchmarks.webassembly.running import run

FOLDER = os.environ.get("PYTHON_IN_WEBASSEMBLY")
ABSENT = {shape.title for theme in (SCIENTIFIC, SCIENTIFIC_TEXTS) for shape in theme.shapes}
"""Shapes of numpy and pandas throughout."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOLDER is None, reason="PYTHON_IN_WEBASSEMBLY is not set; .ci/run sets it"),
]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(Path(str(FOLDER)))


def test_every_shape_that_can_run_passes(report: dict[str, Any]) -> None:
    assert report["python"].startswith("3.14.")
    rows = report["as_written"]
    assert {row["title"] for row in rows} == {shape.title for shape in SHAPES} - ABSENT
    lacking = {row["title"]: row["lacks"] for row in rows if row["misses"]}
    assert [title for title, lacks in lacking.items() if not lacks] == []
    assert {each for lacks in lacking.values() for each in lacks} <= {
        "numpy",
        "pandas",
        "PIL",
        "threads",
    }
    assert len(rows) - len(lacking) >= 355


def test_annotations_that_are_looked_up_late_are_read_like_texts(report: dict[str, Any]) -> None:
    rows = report["without_future"]
    assert {row["title"] for row in rows} >= {
        "a result whose type only checkers know",
        "a hidden parameter whose type only checkers know",
        "a parameter whose type only checkers know",
    }
    assert [row for row in rows if row["misses"]] == []
