"""Splits a data set into parts: rows with the same text come into the same part, in every run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import PurePosixPath

from tools.core.errors import InvalidArgumentsError
from tools.data.answers.runs import WrittenFile
from tools.data.answers.splits import PartReport, SplitReport
from tools.data.checks.rows import first_rows
from tools.data.running.cleaning import check_free, digest_of
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["split"]

SHOWN_LINES = 5
"""Numbers of lines that hold no row."""


def split(
    sandbox: Sandbox, source: str, parts: Mapping[str, float], *, seed: int, overwrite: bool
) -> SplitReport:
    """Writes each part beside the source, as NAME.PART.jsonl, and a report; blocks.

    The digest of a row's text decides its part, so that shares are met about, and no text is in
    two parts.

    Args:
        sandbox: The files.
        source: A JSONL file.
        parts: The share of each part; they need not add up to 1.
        seed: Another one makes other parts.
        overwrite: Whether files that are there are replaced.

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
    beside = [str(path.with_name(f"{path.stem}.split.report.{form}")) for form in ("md", "json")]
    if not overwrite:
        check_free(sandbox, [*targets.values(), *beside])
    shares = {part: share / sum(parts.values()) for part, share in parts.items()}
    made, broken = _dealt(_lines(sandbox, source), shares, key, seed)
    report = SplitReport(
        source=digest_of(sandbox, source),
        text_key=key,
        seed=seed,
        rows=sum(map(len, made.values())),
        left_out=len(broken),
        broken=broken[:SHOWN_LINES],
        parts=[
            PartReport(
                part=part,
                share=shares[part],
                rows=len(lines),
                file=_written(sandbox, targets[part], lines),
            )
            for part, lines in made.items()
        ],
        report_path=beside[0],
    )
    sandbox.write(beside[0], report.to_markdown())
    sandbox.write(beside[1], f"{report.model_dump_json(indent=2)}\n".encode())
    return report


def _dealt(
    lines: Iterator[bytes], shares: Mapping[str, float], key: str, seed: int
) -> tuple[dict[str, list[bytes]], list[int]]:
    """The lines of each part, and the numbers from 1 of those that hold no row."""
    made: dict[str, list[bytes]] = {part: [] for part in shares}
    bounds = list(zip(shares, accumulate(shares.values()), strict=True))
    broken = []
    for number, line in enumerate(lines, 1):
        text = _text(line, key)
        if text is not None:
            place = _place(text, seed)
            part = next((part for part, bound in bounds if place < bound), bounds[-1][0])
            made[part].append(line)
        elif line.strip():
            broken.append(number)
    return made, broken


def _written(sandbox: Sandbox, path: str, lines: list[bytes]) -> WrittenFile:
    done = sandbox.write(path, b"".join(line + b"\n" for line in lines))
    return WrittenFile(path=path, size=done.size, sha256=done.sha256)


def _lines(sandbox: Sandbox, source: str) -> Iterator[bytes]:
    with sandbox.open_read(source) as file:
        rest = b""
        while piece := file.read(1 << 20):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
        yield rest


def _text(line: bytes, key: str) -> str | None:
    """The text of a row, or the whole row where it has none; None for what is no row."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    return " ".join(str(row.get(key, "")).split()).casefold() or line.decode(errors="replace")


def _place(text: str, seed: int) -> float:
    """A number from 0 to 1 that is the same for the same text."""
    digest = hashlib.sha256(f"{seed}:{text}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:7]) / (1 << 56)
