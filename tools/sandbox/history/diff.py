"""What differs between two contents of a file, as a unified diff."""

from __future__ import annotations

import difflib

MOST_LINES = 2_000
"""Lines of either side that are compared."""

LONGEST_LINE = 300
"""Characters of a line that are shown."""


def unified(path: str, old: bytes | None, new: bytes | None) -> str:
    """The difference as lines; one that says how large both are where they are no short texts.

    Args:
        path: The file, for the head.
        old: What it holds; None where it is not there.
        new: What it would hold; None where it would not be there.
    """
    head = (
        "--- " + ("/dev/null" if old is None else path),
        "+++ " + ("/dev/null" if new is None else path),
    )
    before, after = _lines(old or b""), _lines(new or b"")
    if before is None or after is None:
        sizes = (f"{len(each)} bytes" if each is not None else "nothing" for each in (old, new))
        return "\n".join((*head, " -> ".join(sizes)))
    changed = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    return "\n".join((*head, *(line[:LONGEST_LINE] for line in changed)))


def _lines(content: bytes) -> list[str] | None:
    """The lines of a text; None for what is none, or has too many."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text or text.count("\n") > MOST_LINES:
        return None
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines
