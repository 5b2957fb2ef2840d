"""What a parameter depends on: a function whose value it is given at each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Dependency:
    """What `Depends` says.

    Attributes:
        dependency: Makes the value.
        use_cache: Whether parameters that depend on the same function share one value in a call.
    """

    dependency: Callable[..., Any]
    use_cache: bool = True


def Depends(dependency: Callable[..., Any], *, use_cache: bool = True) -> Any:  # noqa: ANN401, N802  # as FastAPI has it: the default of a parameter of any type
    """Says that a parameter is given what a function returns, and not by the caller.

    To be written as `Annotated[T, Depends(function)]`, or as the parameter's default.

    Args:
        dependency: A function, plain or async, whose parameters are a RequestContext, dependencies
            themselves, or have defaults. What a generator yields is the value, and the rest of it
            runs after the call.
        use_cache: Whether the function is called once for all parameters of a call that depend on
            it, however deep.
    """
    return Dependency(dependency, use_cache)
