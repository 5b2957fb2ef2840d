"""Lines of a text that are like a passage which is not in it."""

from __future__ import annotations

from tools.sandbox.files.lines import split_lines

__all__ = ["lines_like"]

MOST_COMPARED = 20_000
"""Lines that are compared."""

MOST_LOOKED_AT = 2_000_000
"""Characters of the text that the compared lines are taken from."""

MOST_CHARACTERS = 300
"""Characters of each line that are compared."""

MOST_SUGGESTED = 3

LEAST_LIKENESS = 60
"""How much of two lines has to agree, of 100 (rapidfuzz.fuzz.ratio)."""


def lines_like(text: str, passage: str) -> list[str]:
    """The lines most like the first line of a passage that says anything, with their numbers.

    Where the whole passage is there but for white space at the ends of lines, that alone is told.
    """
    wanted = [line.strip() for line in split_lines(passage)]
    while wanted and not wanted[0]:
        wanted.pop(0)
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return []
    lines = split_lines(text[:MOST_LOOKED_AT])[:MOST_COMPARED]
    plain = [line.strip()[:MOST_CHARACTERS] for line in lines]
    number = _same_but_for_space([line[:MOST_CHARACTERS] for line in wanted], plain)
    if number is not None:
        last = number + len(wanted) - 1
        return [f"lines {number}-{last} differ from it in white space only: {lines[number - 1]!r}"]
    from rapidfuzz import fuzz, process

    found = process.extract(
        wanted[0][:MOST_CHARACTERS],
        plain,
        scorer=fuzz.ratio,
        score_cutoff=LEAST_LIKENESS,
        limit=MOST_SUGGESTED,
    )
    return [f"line {place + 1}: {plain[place]!r}" for _, _, place in found]


def _same_but_for_space(wanted: list[str], lines: list[str]) -> int | None:
    """The line from which on the wanted ones follow each other."""
    joined = "\n".join(("", *lines, ""))
    found = joined.find("\n".join(("", *wanted, "")))
    return None if found < 0 else joined.count("\n", 0, found + 1)
