"""Of findings that say the same only the best stays."""

from __future__ import annotations

import pytest

from storage.memory.models import Entry
from storage.retrieval.duplicates import distinct
from storage.retrieval.inquiry import Finding

LONG = "The deploy key of the staging server is rotated on the first Friday of each month by Ann"


def finding(text: str, origin: str = "documents", layer: int = 0) -> Finding:
    said = Entry(
        seq=1,
        session_id="",
        client="",
        device_id="",
        agent_id="",
        kind="message",
        time=0,
        action="",
        target="",
        arguments={},
        outcome="ok",
        said=text,
        milliseconds=0,
        importance=0,
        is_recall=False,
    )
    return Finding(origin=origin, layer=layer, score=1, lexical=1, entry=said)


def kept(*findings: Finding, limit: int = 10) -> list[int]:
    chosen = distinct(findings, limit)
    return [number for number, each in enumerate(findings) if any(each is one for one in chosen)]


def test_the_same_text_is_told_once_whatever_its_case_and_blanks() -> None:
    same = finding(f"  {LONG.upper()}\n")
    assert kept(finding(LONG), same, finding("Another."), finding(LONG, "memory")) == [0, 2]


def test_nearly_the_same_words_of_another_origin_say_the_same() -> None:
    assert kept(finding(LONG), finding(f"{LONG} Lee", "memory")) == [0]
    assert kept(finding(LONG), finding(f"{LONG} Lee")) == [0, 1]
    chinese = "暂存服务器的部署密钥在每个月的第一个星期五由安娜轮换一次请大家注意"
    assert kept(finding(chinese), finding(f"{chinese}哦", "memory")) == [0]


@pytest.mark.parametrize(
    "other",
    [LONG.replace("is rotated", "is not rotated"), f"{LONG} 2", LONG.replace("on", "never")],
)
def test_another_number_or_a_negation_is_something_else(other: str) -> None:
    assert kept(finding(LONG), finding(other, "memory")) == [0, 1]


def test_no_more_are_chosen_than_are_wanted() -> None:
    assert kept(*(finding(f"Text {number}.") for number in range(5)), limit=3) == [0, 1, 2]
