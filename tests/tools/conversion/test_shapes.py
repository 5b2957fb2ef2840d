"""What every shape of function in the docs' table becomes, word for word.

`tests/house/test_function_table.py` calls the same shapes. After an intended change,
`python tests/tools/conversion/test_shapes.py` rewrites the file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.function_shapes.catalogue import SHAPES
from benchmarks.function_shapes.shape import Shape
from benchmarks.function_shapes.systems import System, opened
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import ToolDefinitionError

SCHEMAS = Path(__file__).with_name("shapes.jsonl")
"""A line a shape: its title, then its description and schemas, or why it cannot be a tool."""


def _line(shape: Shape, system: System) -> str:
    function: Any = shape.make(system)
    try:
        spec = FunctionToMCP.convert(function, name="tool", hidden=shape.options.hidden)
    except ToolDefinitionError as error:
        parts: list[Any] = [re.sub("0x[0-9a-f]+", "0x", str(error))]
    else:
        parts = [spec.description, spec.input_schema, spec.output_schema]
    return json.dumps([shape.title, *parts], ensure_ascii=False)


def test_every_shape_has_its_texts_and_schemas() -> None:
    with opened("Toolcrib") as system:
        found = [_line(shape, system) for shape in SHAPES]
    assert found == SCHEMAS.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    with opened("Toolcrib") as toolcrib:
        text = "\n".join(_line(shape, toolcrib) for shape in SHAPES)
    SCHEMAS.write_text(f"{text}\n", encoding="utf-8")
