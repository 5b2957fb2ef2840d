"""Texts that a pattern fits, matched in a process that can be ended: some patterns never end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import anyio

from tools.core.errors import DeadlineError, InvalidArgumentsError

SECONDS = 5.0

_MATCH = """
import json, re, sys
pattern, texts = json.load(sys.stdin)
try:
    found = re.compile(pattern, re.IGNORECASE)
except (re.error, OverflowError, RecursionError) as error:
    sys.exit(str(error))
print([place for place, text in enumerate(texts) if found.search(text)])
"""


async def matching(pattern: str, texts: Sequence[str]) -> list[int]:
    """The places of the texts in which a pattern is found, whatever their case.

    Raises:
        InvalidArgumentsError: If it is no regular expression.
        DeadlineError: If it takes too long.
    """
    asked = json.dumps([pattern, texts]).encode()
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _MATCH]
    try:
        with anyio.fail_after(SECONDS):
            done = await anyio.run_process(
                command, input=asked, check=False, stderr=subprocess.PIPE, env={}, cwd="/"
            )
    except TimeoutError:
        raise DeadlineError(
            f"The pattern {pattern[:200]!r} was matched for {SECONDS:g} s without an end.",
            next_actions=["Give a simpler pattern, or mode='bm25'."],
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise InvalidArgumentsError(
            f"intent: {pattern[:200]!r} is no regular expression: {said}",
            next_actions=["Correct the pattern, or search by words: mode='bm25'."],
        )
    found: list[int] = json.loads(done.stdout)
    return found
