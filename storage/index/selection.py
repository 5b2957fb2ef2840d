"""What a filter lets through, for every kind of search alike.

A condition that most candidates fit is asked about the best of them, as many as are needed; one
that few fit is answered with all chunks that do, so that these are compared one by one. Which it is
tell the best candidates themselves, whatever the condition is made of.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from storage.contexts.filters import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Seqs: TypeAlias = NDArray[np.int64]

__all__ = ["Selection"]

SAMPLE = 500
"""Candidates that are asked about first."""

FEW = 32
"""Where fewer than one candidate in so many fits, all that fit cost less than asking on."""


class Selection:
    """The chunks that fit a condition, during one transaction.

    Args:
        connection: The record.
        where: The condition on `contexts AS x`.
    """

    def __init__(self, connection: sqlite3.Connection, where: Where) -> None:
        self._connection = connection
        self._where = where
        self._fits: dict[int, bool] = {}

    @property
    def narrows(self) -> bool:
        """Whether some of the user's chunks may not fit."""
        return self._where.narrows

    @cached_property
    def members(self) -> Seqs:
        """All chunks that fit, ascending."""
        import numpy as np  # noqa: PLC0415  # imported on first use

        rows = self._connection.execute(
            "SELECT c.seq FROM contexts x CROSS JOIN chunks c ON c.context_seq = x.seq"
            f" WHERE {self._where.sql}",
            self._where.values,
        )
        return np.sort(np.fromiter((row[0] for row in rows), np.int64))

    def keep(self, seqs: Seqs) -> Seqs:
        """Those of the user's given chunks that fit, in the given order."""
        import numpy as np  # noqa: PLC0415  # imported on first use

        if not self.narrows:
            return seqs
        unknown = [seq for seq in seqs.tolist() if seq not in self._fits]
        rows = self._connection.execute(
            "SELECT c.seq FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
            " CROSS JOIN contexts x ON x.seq = c.context_seq"
            f" WHERE {self._where.few or self._where.sql}",
            (json.dumps(unknown), *self._where.values),
        )
        self._fits |= dict.fromkeys(unknown, False)
        self._fits |= dict.fromkeys((row[0] for row in rows), True)
        fits = [self._fits[seq] for seq in seqs.tolist()]
        kept: Seqs = seqs[np.array(fits, dtype=bool)]
        return kept

    def first(
        self, ranked: Callable[[int], Seqs], count: int, enough: int | None = None
    ) -> Seqs | None:
        """The best candidates that fit, best first; None if few fit: `members` are to be ranked.

        Args:
            ranked: Gives so many of the best candidates, best first, or all if there are fewer.
            count: How many are wanted.
            enough: With how many it is not asked on; by default all that are wanted.
        """
        if not self.narrows or not count:
            return ranked(count)
        if "members" in vars(self):  # few fitted before
            return None
        enough = enough or count
        size = max(count, SAMPLE)
        while True:
            candidates = ranked(size)
            fitting = self.keep(candidates)
            if len(fitting) >= enough or len(candidates) < size:
                return fitting[:count]
            if len(fitting) * FEW < len(candidates):
                return None
            size = 1 + size * enough * 3 // (len(fitting) * 2)
