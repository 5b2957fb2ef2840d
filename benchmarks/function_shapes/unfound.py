"""Names that exist for type checkers only: what needs them is refused, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.function_shapes.checks import gets, lacks, takes
from benchmarks.function_shapes.shape import Options, Theme

if TYPE_CHECKING:
    from collections import ChainMap as Store

Function = Callable[..., Any]

UNFOUND = Theme("types")


@UNFOUND.shape("a result whose type only checkers know", gets({"size": 2}, [0, 0]))
def result_of_checkers(size: int) -> Store[int, int]:
    return [0] * size  # type: ignore[return-value]  # what JSON can say of it


@UNFOUND.shape(
    "a hidden parameter whose type only checkers know",
    lacks("store"),
    takes("size"),
    gets({"size": 2}, "2 True"),
    options=Options(hidden={"store"}),
)
def hidden_of_checkers(size: int, *, store: Store[int, int] | None = None) -> str:
    return f"{size} {store is None}"


@UNFOUND.shape("a parameter whose type only checkers know", refused="Store")
def parameter_of_checkers(store: Store[int, int]) -> int:
    return len(store)
