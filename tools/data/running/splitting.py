"""Splits a data set into parts: rows with the same text come into the same part, in every run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import PurePosixPath

from tools.core.errors import InvalidArgumentsError
from tools.data.answers.runs import WrittenFile
from tools.data.checks.rows import first_rows
from tools.data.running.cleaning import check_free
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["split"]


def split(
    sandbox: Sandbox, source: str, parts: Mapping[str, float], *, seed: int, overwrite: bool
) -> list[tuple[WrittenFile, int]]:
    """Writes each part beside the source, as NAME.PART.jsonl; blocks.

    The digest of a row's text decides its part, so that shares are met about, and no text is in
    two parts.

    Args:
        sandbox: The files.
        source: A JSONL file.
        parts: The share of each part; they need not add up to 1.
        seed: Another one makes other parts.
        overwrite: Whether files that are there are replaced.

    Returns:
        Each file, and its rows.

    Raises:
        InvalidArgumentsError: If it is no JSONL file, or has no texts.
        ToolError: As the methods of Sandbox; ConflictError where something is there.
    """
    path = PurePosixPath(source)
    rows = first_rows(sandbox, source) if path.suffix == ".jsonl" else None
    key = None if rows is None else rows.longest_text()
    if key is None:
        raise InvalidArgumentsError(
            f"{source} is no JSONL file with texts.",
            next_actions=["Write it as one first: `toolcrib data export FILE --to jsonl`."],
        )
    targets = {part: str(path.with_name(f"{path.stem}.{part}.jsonl")) for part in parts}
    if not overwrite:
        check_free(sandbox, list(targets.values()))
    made: dict[str, list[bytes]] = {part: [] for part in parts}
    bounds = list(accumulate(share / sum(parts.values()) for share in parts.values()))
    for line in _lines(sandbox, source):
        place = _place(line, key, seed)
        at = next((at for at, bound in enumerate(bounds) if place < bound), len(bounds) - 1)
        made[list(parts)[at]].append(line)
    written = []
    for part, lines in made.items():
        done = sandbox.write(targets[part], b"".join(line + b"\n" for line in lines))
        file = WrittenFile(path=targets[part], size=done.size, sha256=done.sha256)
        written.append((file, len(lines)))
    return written


def _lines(sandbox: Sandbox, source: str) -> Iterator[bytes]:
    with sandbox.open_read(source) as file:
        rest = b""
        while piece := file.read(1 << 20):
            *lines, rest = (rest + piece).split(b"\n")
            yield from filter(bytes.strip, lines)
        if rest.strip():
            yield rest


def _place(line: bytes, key: str, seed: int) -> float:
    """A number from 0 to 1 that is the same for the same text."""
    try:
        row = json.loads(line)
        text = str(row.get(key, "")) if isinstance(row, dict) else ""
    except ValueError:
        text = ""
    plain = " ".join(text.split()).casefold() or line.decode(errors="replace")
    digest = hashlib.sha256(f"{seed}:{plain}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:7]) / (1 << 56)
