from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.events.extractive import extract
from storage.index.embedders.base import Embedder
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.reading.chunk import sentences
from storage.tokenize import SPACELESS_LETTERS

GARDEN = [
    "Planted beans in the garden. The dentist moved the appointment to Friday.",
    "Watered the beans in the garden. Weeded the bean bed in the garden.",
    "The garden beans are growing well.",
]


def test_what_is_short_enough_is_told_whole_in_its_order(world: ModuleType) -> None:
    assert extract(GARDEN, world.HashEmbedder(), 1000) == GARDEN


def test_the_most_central_sentences_are_told(minilm: MiniLMEmbedder) -> None:
    first, second, third = extract(GARDEN, minilm, 110)
    assert "dentist" not in first + second + third
    assert "beans" in first + second + third
    assert len(f"{first} {second} {third}") <= 112


def test_the_next_sentence_is_unlike_those_before(minilm: MiniLMEmbedder) -> None:
    texts = [
        "The heron stands in the pond.",
        "A heron is standing in the pond.",
        "There is a heron standing in that pond.",
        "The pond freezes over in winter.",
    ]
    told = [text for text in extract(texts, minilm, 75) if text]
    assert len(told) == 2
    assert texts[3] in told


class RaisedEmbedder:
    """Another embedder, whose cosines are raised towards 1 as those of E5 are."""

    model_id = "raised"
    unread = SPACELESS_LETTERS

    def __init__(self, embedder: Embedder, share: float) -> None:
        self.embedder = embedder
        self.share = share
        self.floor = share + (1 - share) * embedder.floor

    def embed_passages(self, texts: Sequence[str]) -> Any:
        vectors = self.embedder.embed_passages(texts)
        common = np.full((len(texts), 1), np.sqrt(self.share), dtype=np.float32)
        return np.hstack([common, np.sqrt(1 - self.share, dtype=np.float32) * vectors])

    def embed_query(self, text: str) -> Any:
        return self.embed_passages([text])[0]


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_model_that_leaves_texts_less_room_tells_the_same(
    minilm: MiniLMEmbedder, share: float
) -> None:
    texts = [
        "The heron stands in the pond.",
        "A heron is standing in the pond.",
        "The pond freezes over in winter.",
        "The dentist moved the appointment.",
    ]
    assert extract(texts, RaisedEmbedder(minilm, share), 100) == extract(texts, minilm, 100)


def test_a_sentence_said_again_counts_once(world: ModuleType) -> None:
    assert extract(["Went home. Went home.", "WENT HOME."], world.HashEmbedder(), 1000) == [
        "Went home.",
        "",
    ]


def test_a_first_sentence_that_is_too_long_is_cut(world: ModuleType) -> None:
    assert extract(["word " * 100], world.HashEmbedder(), 20) == ["word word word word "]


def test_nothing_is_told_of_nothing(world: ModuleType) -> None:
    assert extract([], world.HashEmbedder(), 100) == []
    assert extract(["", " \n "], world.HashEmbedder(), 100) == ["", ""]


def test_of_very_many_sentences_some_from_every_part_are_compared(world: ModuleType) -> None:
    embedder = world.HashEmbedder()
    texts = [f"On day {day} number {turn} happened." for day in range(50) for turn in range(20)]
    told = extract(texts, embedder, 1200)
    assert embedder.embedded <= 200
    assert any(told[:250])
    assert any(told[750:])


@given(
    st.lists(st.text(st.sampled_from("ab. !?\n。"), max_size=60), max_size=8),
    st.integers(min_value=1, max_value=80),
)
def test_what_is_told_was_said_and_fits(
    world: ModuleType, texts: list[str], max_characters: int
) -> None:
    told = extract(texts, world.HashEmbedder(), max_characters)
    assert len(told) == len(texts)
    assert len(" ".join(filter(None, told))) <= max_characters
    for part, text in zip(told, texts, strict=True):
        assert all(word in text for word in part.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Dr. Who came. We met at 3.5 m. And left!",
            ["Dr.", "Who came.", "We met at 3.5 m.", "And left!"],
        ),
        ("今日は晴れ。明日は雨。", ["今日は晴れ。", "明日は雨。"]),
        ("one\n\n\ntwo\nthree", ["one", "two", "three"]),
        ("", []),
    ],
)
def test_sentences_end_at_their_marks_and_with_their_lines(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
