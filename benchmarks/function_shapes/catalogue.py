"""All shapes."""

from __future__ import annotations

from benchmarks.function_shapes.callables import CALLABLES
from benchmarks.function_shapes.choices import CHOICES
from benchmarks.function_shapes.constructors import CONSTRUCTORS
from benchmarks.function_shapes.containers import CONTAINERS
from benchmarks.function_shapes.defaults import DEFAULTS
from benchmarks.function_shapes.derived import DERIVED
from benchmarks.function_shapes.docstrings import DOCSTRINGS
from benchmarks.function_shapes.errors import ERRORS
from benchmarks.function_shapes.libraries import LIBRARIES, LIBRARY_RESULTS
from benchmarks.function_shapes.pitfalls import PITFALLS
from benchmarks.function_shapes.postponed import POSTPONED, UNFOUND
from benchmarks.function_shapes.results import ODD_RESULTS, RESULTS
from benchmarks.function_shapes.rich_results import RICH_RESULTS
from benchmarks.function_shapes.scalars import SCALARS
from benchmarks.function_shapes.scientific import SCIENTIFIC, SCIENTIFIC_TEXTS
from benchmarks.function_shapes.shape import Shape
from benchmarks.function_shapes.signatures import SIGNATURES
from benchmarks.function_shapes.structures import STRUCTURES
from benchmarks.function_shapes.texts import PROSE
from benchmarks.function_shapes.wrapping import WRAPPED_CALLABLES, WRAPPED_SIGNATURES

SHAPES: tuple[Shape, ...] = tuple(
    shape
    for theme in (
        DOCSTRINGS,
        PROSE,
        SCIENTIFIC_TEXTS,
        SCALARS,
        CHOICES,
        STRUCTURES,
        POSTPONED,
        DEFAULTS,
        PITFALLS,
        LIBRARIES,
        DERIVED,
        SCIENTIFIC,
        UNFOUND,
        SIGNATURES,
        WRAPPED_SIGNATURES,
        CALLABLES,
        WRAPPED_CALLABLES,
        CONSTRUCTORS,
        RESULTS,
        CONTAINERS,
        ODD_RESULTS,
        RICH_RESULTS,
        LIBRARY_RESULTS,
        ERRORS,
    )
    for shape in theme.shapes
)
"""In the order of the table."""
