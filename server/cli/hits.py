"""How hits look on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

__all__ = ["print_hits"]

EXCERPT = 160


def print_hits(retrieved: Mapping[str, Any], console: Console | None = None) -> None:
    """Prints a retrieval tool's structured result.

    Args:
        retrieved: The result, as `tools.core.retrieved.Retrieved` in JSON.
        console: Where to; by default stdout.
    """
    console = console or Console()
    coverage = retrieved["coverage"]
    if coverage["embedded"] < coverage["total"]:
        console.print(
            f"{coverage['embedded']} of {coverage['total']} chunks are embedded"
            f" {coverage['problem']}; the rest is found by its words alone.",
            style="yellow",
            markup=False,
        )
    if not retrieved["hits"]:
        console.print("Nothing stored is close enough.")
        return
    table = Table(
        Column("score", justify="right"),
        Column("dense", justify="right"),
        Column("lexical", justify="right"),
        Column("passage", ratio=1),
        box=None,
        padding=(0, 1, 1, 0),
        header_style="dim",
    )
    for hit in retrieved["hits"]:
        dense = "-" if hit["dense"] is None else f"{hit['dense']:.3f}"
        table.add_row(f"{hit['score']:.3f}", dense, f"{hit['lexical']:.2f}", _passage(hit))
    console.print(table)


def _passage(hit: Mapping[str, Any]) -> Text:
    place = " > ".join(part for part in (hit["title"], hit["heading"]) if part)
    excerpt = " ".join(hit["content"].split())
    if len(excerpt) > EXCERPT:
        excerpt = excerpt[:EXCERPT].rsplit(" ", 1)[0] + " …"
    text = Text.assemble((place, "bold"), "  ", (hit["raw_id"], "dim"), "\n", excerpt)
    text.highlight_words(hit["matched"], "green", case_sensitive=False)
    return text
