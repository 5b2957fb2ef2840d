"""Variables of the environment in the settings of other servers: ${NAME} and ${NAME:-default}."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tools.core.errors import UnavailableError

__all__ = ["expand"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand(text: str, environ: Mapping[str, str], where: str) -> str:
    """A text with the values of the variables that it names.

    As in a shell, a default stands for a variable that is empty too.

    Args:
        text: The text of a setting.
        environ: The variables.
        where: Which setting it is, for the error.

    Raises:
        UnavailableError: If it names a variable that is not set, without a default.
    """

    def value(found: re.Match[str]) -> str:
        name, default = found.groups()
        if default is not None:
            return environ.get(name) or default
        if name not in environ:
            raise UnavailableError(
                f"its {where} names the variable {name}, which is not set: set it where Toolcrib"
                f" is started, or write ${{{name}:-default}}"
            )
        return environ[name]

    return _VARIABLE.sub(value, text)
