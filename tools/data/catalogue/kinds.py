"""What kinds of operators there are, and how their names are understood."""

from __future__ import annotations

from typing import Literal

Kind = Literal["mapper", "filter", "deduplicator", "selector", "grouper", "aggregator", "pipeline"]
"""What an operator does to a data set."""

OwnKind = Literal["mapper", "filter", "deduplicator", "selector"]
"""Those that are begun here for somebody to write."""

How = Literal["exact", "case", "alphanumeric", "fuzzy"]
"""How a name was understood; each way is tried after the one before."""

Runs = Literal["here", "full", "no"]
"""Which set-up of Data-Juicer runs an operator."""
