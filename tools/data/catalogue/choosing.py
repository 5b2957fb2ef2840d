"""Chooses among operators without the index: by a regular expression, or by a model's answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from storage.errors import UnreadableDocumentError
from storage.reading.isolated import run_isolated
from tools.core.client import Prompt
from tools.core.errors import DeadlineError, InvalidArgumentsError
from tools.data.catalogue.operator import Operator

SECONDS = 5.0
"""Of a processor, for a pattern: some never end, so a process that can be killed matches it."""

MAX_TOKENS = 1_500
"""How long a model's answer may be."""

BEST = 100
"""The score that a model gives to what fits a need wholly."""

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
        "\n".join((op.name, op.description, *(f"{p.name} {p.description}" for p in op.parameters)))
        for op in operators
    ]
    shown = repr(pattern[:200])
    try:
        match = partial(_match, pattern, texts)
        places = await run_isolated(match, name=shown, timeout=SECONDS)
    except UnreadableDocumentError:
        raise DeadlineError(
            f"The pattern {shown} did not finish matching within {SECONDS:g} s.",
            next_actions=["Give a simpler pattern, or mode='bm25'."],
        ) from None
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidArgumentsError(
            f"intent: {shown} is not a regular expression: {error}",
            next_actions=["Correct the pattern, or search by words: mode='bm25'."],
        ) from None
    return [operators[place] for place in places]


def _match(pattern: str, texts: Sequence[str]) -> list[int]:
    """Returns the places of the texts that match; runs in a process of its own."""
    search = re.compile(pattern, re.IGNORECASE).search
    return [place for place, text in enumerate(texts) if search(text)]


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
