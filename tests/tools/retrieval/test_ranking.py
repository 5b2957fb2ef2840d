from collections.abc import Sequence

import numpy as np
import pytest

from tools.retrieval.models import ToolRecord
from tools.retrieval.ranking import Duplicates, choose_results
from tools.retrieval.words import Mentions

SCORES = (0.5, 0.4, 0.3, 0.2, 0.1, 0.0)


def results(
    mentions: Mentions, count: int, scores: Sequence[float] = SCORES, ids: Sequence[str] = "012345"
) -> list[tuple[int, float]]:
    records = {
        slot: ToolRecord(tool_id=tool_id, name=f"tool {slot}") for slot, tool_id in enumerate(ids)
    }
    duplicates = Duplicates()
    for slot, record in records.items():
        duplicates.add(slot, record)
    found = choose_results(np.array(scores, dtype=np.float32), mentions, records, duplicates, count)
    return [(slot, round(score, 3)) for slot, score in found]


def test_named_tools_come_first_then_those_whose_name_is_begun() -> None:
    mentions = Mentions(named={5: None, 3: None}, begun={4: None, 2: None, 3: None})
    assert results(mentions, 5) == [(5, 1.0), (3, 1.0), (2, 0.93), (4, 0.91), (0, 0.5)]


def test_of_one_name_the_tool_that_can_be_called_comes_first() -> None:
    ids = ["a", "file:read", "b", "read", "c", "d"]
    mentions = Mentions(named={1: None, 3: None})
    assert results(mentions, 2, ids=ids) == [(3, 1.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("count", "slots"),
    [(1, [0]), (2, [0, 4]), (3, [0, 1, 4]), (4, [0, 1, 3, 4]), (6, [0, 1, 2, 3, 4])],
)
def test_names_in_passing_have_the_last_places_half_at_most(count: int, slots: list[int]) -> None:
    mentions = Mentions(passing=[[5, 4], [3]])
    assert [slot for slot, _ in results(mentions, count)] == slots


def test_scores_never_rise_and_what_does_not_fit_has_no_place() -> None:
    mentions = Mentions(passing=[[5], [4], [3]])
    assert results(mentions, 3) == [(0, 0.5), (1, 0.4), (4, 0.1)]
    rising = (0.5, 0.4, 0.3, 0.25, 0.1, 0.2)
    found = results(Mentions(passing=[[4], [5]]), 4, rising)
    assert [slot for slot, _ in found] == [0, 1, 5, 4]


def test_nothing_that_fits_gives_nothing() -> None:
    assert results(Mentions(), 5, [0.0] * 6) == []
