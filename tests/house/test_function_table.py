"""The docs' table of shapes is whole, and says of Toolcrib what is so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.function_shapes.catalogue import SHAPES
from benchmarks.function_shapes.examination import examine
from benchmarks.function_shapes.shape import Shape
from benchmarks.function_shapes.systems import System, opened
from benchmarks.function_shapes.table import rows_in

ROWS = rows_in(Path(__file__).parents[2] / "docs" / "function-shapes.md")
REMEDY = "Run `python -m benchmarks.function_to_mcp --markdown`."


@pytest.fixture(scope="module")
def toolcrib() -> Iterator[System]:
    with opened("Toolcrib") as system:
        yield system


def test_the_table_has_every_shape_once() -> None:
    assert [title for title, _ in ROWS] == [shape.title for shape in SHAPES], REMEDY
    assert len({(shape.theme, shape.title) for shape in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize(
    ("shape", "passes"),
    [(shape, passes) for shape, (_, passes) in zip(SHAPES, ROWS, strict=False)],
    ids=[f"{shape.theme}: {shape.title}" for shape, _ in zip(SHAPES, ROWS, strict=False)],
)
def test_toolcrib_does_with_a_shape_what_the_table_says(
    toolcrib: System, shape: Shape, passes: bool
) -> None:
    misses = examine(toolcrib, shape)
    assert (not misses) == passes, misses or REMEDY
