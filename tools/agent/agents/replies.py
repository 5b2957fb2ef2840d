"""Replies: what an agent answered, in what it printed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.agent.agents.agent import Reply
from tools.core.invisible import encodable

MOST_COST = 1e6
"""US dollars above which nothing is a cost."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent answered.

    Attributes:
        text: Its words; all that it printed where no answer was found in it.
        cost: US dollars; None where it did not tell.
        session: What it calls its session; empty where it did not tell.
        is_found: Whether its answer stood where it should.
    """

    text: str
    cost: float | None = None
    session: str = ""
    is_found: bool = True


def read_answer(printed: str, reply: Reply) -> Answer:
    """Reads what an agent printed; whatever that is, it is read.

    Of JSON lines, the last that has an answer counts, and their costs are added up.
    """
    if not reply.answer:
        return Answer(printed.strip())
    documents = list(_documents(printed))
    texts = [encodable(text) for text in _found(documents, reply.answer) if isinstance(text, str)]
    costs = [cost for cost in _found(documents, reply.cost) if _is_cost(cost)]
    sessions = [
        encodable(each) for each in _found(documents, reply.session) if isinstance(each, str)
    ]
    return Answer(
        text=(texts[-1] if texts else printed).strip(),
        cost=sum(costs) if costs else None,
        session=sessions[-1][:200] if sessions else "",
        is_found=bool(texts),
    )


def _documents(printed: str) -> Iterator[object]:
    """The JSON in a text: the whole of it, or each line that is some."""
    for text in (printed, *printed.splitlines()):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        yield from found if isinstance(found, list) else [found]
        if text is printed:
            return


def _found(documents: list[object], path: str) -> Iterator[Any]:
    """What stands at a path, in each document that has it."""
    for found in documents if path else ():
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None  # noqa: PLW2901  # one step down
        if found is not None:
            yield found


def _is_cost(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= MOST_COST  # no NaN is
