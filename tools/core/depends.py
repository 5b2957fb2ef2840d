"""Declares dependencies: parameters whose value a function provides at each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Dependency:
    """The declaration that `Depends` returns.

    Attributes:
        dependency: Provides the value.
        use_cache: Whether parameters of a call that depend on the same function share one value.
    """

    dependency: Callable[..., Any]
    use_cache: bool = True


def Depends(dependency: Callable[..., Any], *, use_cache: bool = True) -> Any:  # noqa: ANN401, N802  # like FastAPI's: a default of any type
    """Declares that a function provides a parameter's value, not the caller.

    Write it as `Annotated[T, Depends(function)]`, or as the parameter's default.

    Args:
        dependency: A plain or async function whose parameters are a RequestContext, dependencies
            themselves, or have defaults. A generator yields the value, and the rest of it runs
            after the call.
        use_cache: Whether to call the function once for all parameters of a call that depend on it,
            however deep.
    """
    return Dependency(dependency, use_cache)
