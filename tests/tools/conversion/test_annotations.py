"""Names that only type checkers know: what needs them is refused, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import RequestContext
from tools.core.errors import ToolDefinitionError

if TYPE_CHECKING:
    import numpy as np
    from elsewhere import Session  # type: ignore[import-not-found]  # only type checkers would


def rows(count: int, session: Session | None = None) -> dict[str, np.ndarray[Any, Any]]:
    return {"rows": count, "open": session is None}  # type: ignore[dict-item]  # JSON can say it


def store(count: int, sessions: Annotated[list[Session], "Where to."]) -> None: ...


def shape(array: np.typing.ArrayLike | None = None) -> None: ...


async def test_a_hidden_parameter_and_a_result_need_no_type() -> None:
    spec = FunctionToMCP.convert(rows, hidden={"session"})
    assert spec.input_schema["properties"] == {"count": {"type": "integer"}}
    assert spec.output_schema is None
    result = await spec.invoke(spec.validate({"count": 2}), RequestContext())
    assert result.structured == {"rows": 2, "open": True}


@pytest.mark.parametrize(
    ("function", "name"), [(rows, "Session"), (store, "Session"), (shape, "np")]
)
def test_a_parameter_that_callers_give_needs_its_type(function: Any, name: str) -> None:
    told = f"{function.__name__} has an annotation that names '{name}', which cannot be found"
    with pytest.raises(ToolDefinitionError, match=told):
        FunctionToMCP.convert(function)
