from __future__ import annotations

import numpy as np
import pytest

from tools.retrieval.models import ToolRecord
from tools.retrieval.names import Mentions
from tools.retrieval.placing import Duplicates, placed

SCORES = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.0], dtype=np.float32)


def _placed(mentions: Mentions, count: int) -> list[tuple[int, float]]:
    duplicates = Duplicates()
    for slot in range(len(SCORES)):
        duplicates.add(slot, ToolRecord(tool_id=str(slot), name=f"tool {slot}"))
    places = placed(SCORES, mentions, str, duplicates, count)
    return [(slot, round(score, 3)) for slot, score in places]


def test_named_tools_come_first_then_those_whose_name_is_begun() -> None:
    mentions = Mentions(named={5: None, 3: None}, begun={4: None, 2: None, 3: None})
    assert _placed(mentions, 5) == [(5, 1.0), (3, 1.0), (2, 0.93), (4, 0.91), (0, 0.5)]


def test_of_one_name_the_tool_that_can_be_called_comes_first() -> None:
    mentions = Mentions(named={1: None, 3: None})
    ids = ["a", "file:read", "b", "read", "c", "d"]
    duplicates = Duplicates()
    for slot, name in enumerate(ids):
        duplicates.add(slot, ToolRecord(tool_id=name, name=f"tool {slot}"))
    places = placed(SCORES, mentions, ids.__getitem__, duplicates, 2)
    assert places == [(3, 1.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("count", "slots"),
    [(1, [0]), (2, [0, 4]), (3, [0, 1, 4]), (4, [0, 1, 3, 4]), (6, [0, 1, 2, 3, 4])],
)
def test_names_in_passing_have_the_last_places_half_at_most(count: int, slots: list[int]) -> None:
    mentions = Mentions(passing=[[5, 4], [3]])
    assert [slot for slot, _ in _placed(mentions, count)] == slots


def test_scores_never_rise_and_what_does_not_fit_has_no_place() -> None:
    mentions = Mentions(passing=[[5], [4], [3]])
    assert _placed(mentions, 3) == [(0, 0.5), (1, 0.4), (4, 0.1)]
    rising = np.array([0.5, 0.4, 0.3, 0.25, 0.1, 0.2], dtype=np.float32)
    duplicates = Duplicates()
    for slot in range(len(rising)):
        duplicates.add(slot, ToolRecord(tool_id=str(slot), name=f"tool {slot}"))
    places = placed(rising, Mentions(passing=[[4], [5]]), str, duplicates, 4)
    assert [slot for slot, _ in places] == [0, 1, 5, 4]


def test_nothing_that_fits_gives_nothing() -> None:
    assert placed(np.zeros(3, dtype=np.float32), Mentions(), str, Duplicates(), 5) == []
