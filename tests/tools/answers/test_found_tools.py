"""What a search of tools answers."""

from __future__ import annotations

import pytest

from tools.answers.found_tools import FoundTools
from tools.retrieval.catalogue import Found
from tools.retrieval.models import ToolRecord


@pytest.mark.parametrize(
    ("score", "shown"), [(1.0, "1.00"), (0.4363, "0.44"), (0.0061, "0.01"), (0.0003, "<0.01")]
)
def test_no_score_is_shown_as_none(score: float, shown: str) -> None:
    record = ToolRecord(tool_id="saw", name="saw", description="Saws wood.")
    text = FoundTools.of([Found(record, None, score)]).to_text()
    assert text.split()[-1] == shown
