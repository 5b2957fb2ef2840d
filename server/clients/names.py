"""Names of servers, made to fit the settings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

__all__ = ["LONGEST", "fitted"]

LONGEST = 30
"""Characters of a server's name in the settings."""

_OTHER = re.compile(r"[^a-z0-9_-]+")
_SEPARATORS = re.compile(r"[-_]{2,}")


def fitted(name: str, taken: Collection[str]) -> str:
    """A name that the settings take, as near as possible to the one that a client has.

    Args:
        name: The client's, of any characters.
        taken: Names that others have got.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    single = _SEPARATORS.sub("-", _OTHER.sub("-", plain)).strip("-_")
    whole = single[:LONGEST].rstrip("-_") or "server"
    number, fitting = 1, whole
    while fitting in taken:
        number += 1
        suffix = f"-{number}"
        fitting = whole[: LONGEST - len(suffix)].rstrip("-_") + suffix
    return fitting
