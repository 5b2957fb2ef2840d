"""The errors of a worker."""

from __future__ import annotations

import re

MISSING = re.compile(r"MissingPackageError: (\S+)")
"""Matches a missing package in a traceback."""


class RecipeError(Exception):
    """The recipe or its data is wrong."""

    def __init__(self, message: str, action: str = "Correct the recipe and run it again.") -> None:
        super().__init__(message)
        self.action = action


class UnreadableError(RecipeError):
    """The data cannot be read: why not, and what to do next."""


class AllRowsError(Exception):
    """An operator failed with rows, and left none: the first error."""


class MissingPackageError(ImportError):
    """An operator needs a package that is not installed."""


class NotHereError(Exception):
    """The confinement does not let `dj-process` run."""


class OperatorError(Exception):
    """An operator failed."""

    def __init__(self, operator: str, cause: BaseException) -> None:
        super().__init__(f"{operator}: {type(cause).__name__}: {cause}")
        self.operator = operator
        self.cause = cause
