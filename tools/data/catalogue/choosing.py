"""Chooses among operators without the index: by a regular expression, or by a model's answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated

import anyio
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from tools.core.client import Prompt
from tools.core.errors import DeadlineError, InvalidArgumentsError
from tools.data.catalogue.operator import Operator

SECONDS = 5.0
"""How long a pattern may take: some never end, so it is matched in a process that can be killed."""

MAX_TOKENS = 1_500
"""How long a model's answer may be."""

BEST = 100
"""The score that a model gives to what fits a need wholly."""

_MATCH = """
import json, re, sys
pattern, texts = json.load(sys.stdin)
try:
    found = re.compile(pattern, re.IGNORECASE)
except (re.error, OverflowError, RecursionError) as error:
    sys.exit(str(error))
print([place for place, text in enumerate(texts) if found.search(text)])
"""
_SYSTEM = (
    "You choose operators of the data processing system Data-Juicer for a need. Answer with JSON "
    'alone: {"operators": [{"name": "its_name", "score": 90}]}. Put the best first. Write names as '
    f"they are listed; a score from 1 to {BEST} says how well an operator serves the need. Leave "
    "out operators that do not serve it; the list may be empty."
)
_FENCED = re.compile(r"```\w*\s(.*?)```", re.DOTALL)


class _Rating(BaseModel):
    name: str
    score: Annotated[FiniteFloat, Field(strict=True, ge=0, le=BEST)]


class _Answer(BaseModel):
    operators: list[_Rating]


async def by_pattern(pattern: str, operators: Sequence[Operator]) -> list[Operator]:
    """Returns the operators whose name, description or parameters match a pattern in any case."""
    texts = [
        "\n".join(
            (
                op.name,
                op.description,
                *(f"{each.name} {each.description}" for each in op.parameters),
            )
        )
        for op in operators
    ]
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _MATCH]
    asked = json.dumps([pattern, texts]).encode()
    try:
        with anyio.fail_after(SECONDS):
            done = await anyio.run_process(
                command, input=asked, check=False, stderr=subprocess.PIPE, env={}, cwd="/"
            )
    except TimeoutError:
        raise DeadlineError(
            f"The pattern {pattern[:200]!r} did not finish matching within {SECONDS:g} s.",
            next_actions=["Give a simpler pattern, or mode='bm25'."],
        ) from None
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()
        raise InvalidArgumentsError(
            f"intent: {pattern[:200]!r} is not a regular expression: {problem}",
            next_actions=["Correct the pattern, or search by words: mode='bm25'."],
        )
    return [operators[place] for place in json.loads(done.stdout)]


def question(intent: str, top_k: int, operators: Sequence[Operator]) -> Prompt:
    """Returns what a model is asked, so that `ratings` can read its answer."""
    listed = "\n".join(f"{each.name}: {each.summary}" for each in operators)
    text = f"The need: {intent}\n\nAt most {top_k} of these operators:\n{listed}"
    return Prompt(_SYSTEM, text, MAX_TOKENS)


def ratings(answer: str, operators: Sequence[Operator]) -> list[tuple[Operator, float]]:
    """Reads the operators that a model chose, the best first, with their scores from 0 to 1."""
    fenced = _FENCED.search(answer)
    text = (fenced[1] if fenced else answer).strip()
    if text.startswith("["):  # the list without the object around it
        text = f'{{"operators": {text}}}'
    known = {each.name: each for each in operators}
    try:
        chosen = _Answer.model_validate_json(text).operators
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(": ".join((*map(str, problem["loc"]), problem["msg"]))) from None
    if unknown := [each.name for each in chosen if each.name not in known]:
        raise ValueError(f"{unknown[0][:100]!r} is not among the operators that it was given")
    scores = {each.name: each.score / BEST for each in reversed(chosen) if each.score}
    return sorted(
        ((known[name], score) for name, score in scores.items()),
        key=lambda each: (-each[1], each[0].name),
    )
