"""Shapes of Python functions: what Toolcrib, the MCP SDK and FastMCP make of each.

    python -m benchmarks.function_to_mcp [--json | --failures SYSTEM | --markdown | --cost]

Every system makes an MCP server of every function in its own way; one client lists and calls the
tool over the protocol, in memory. A shape counts where every check of it holds.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.function_shapes.catalogue import SHAPES
from benchmarks.function_shapes.cost import measure, print_costs
from benchmarks.function_shapes.examination import examine_all
from benchmarks.function_shapes.shape import Shape
from benchmarks.function_shapes.systems import SYSTEMS
from benchmarks.function_shapes.table import markdown, print_table, write_block

PAGE = Path(__file__).parents[1] / "docs" / "function-shapes.md"


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What becomes of shapes of functions.")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--failures", metavar="SYSTEM", choices=SYSTEMS, help="explain them")
    output.add_argument("--markdown", action="store_true", help=f"rewrite the table in {PAGE.name}")
    output.add_argument("--cost", action="store_true", help="measure CPU instead of shapes")
    parser.add_argument("--rounds", type=int, default=7, help="of each measurement of the cost")
    arguments = parser.parse_args()
    if arguments.cost:
        print_costs(measure(tuple(SYSTEMS), arguments.rounds))
    elif arguments.failures:
        misses = examine_all([arguments.failures])
        _print_failures(SHAPES, misses[arguments.failures])
    else:
        misses = examine_all(tuple(SYSTEMS))
        if arguments.json:
            print(json.dumps(_report(SHAPES, misses), indent=2, ensure_ascii=False))
        elif arguments.markdown:
            write_block(PAGE, markdown(SHAPES, misses))
        else:
            print_table(SHAPES, misses)


def _report(
    shapes: Sequence[Shape], misses: Mapping[str, Sequence[Sequence[str]]]
) -> dict[str, object]:
    """Every shape with what each system misses of it."""
    return {
        "passed": {system: sum(not each for each in found) for system, found in misses.items()},
        "shapes": [
            {
                "theme": shape.theme,
                "title": shape.title,
                "misses": {system: list(found[place]) for system, found in misses.items()},
            }
            for place, shape in enumerate(shapes)
        ],
    }


def _print_failures(shapes: Sequence[Shape], misses: Sequence[Sequence[str]]) -> None:
    for shape, found in zip(shapes, misses, strict=True):
        if found:
            print(f"{shape.theme}: {shape.title}")
            for miss in found:
                print(f"    {miss}")
    print(f"{sum(not found for found in misses)} of {len(shapes)} pass.")


if __name__ == "__main__":
    main()
