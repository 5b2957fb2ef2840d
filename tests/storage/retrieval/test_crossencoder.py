"""What the bundled cross-encoder makes of questions and passages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from storage.errors import StorageUnavailableError
from storage.retrieval import crossencoder
from storage.retrieval.crossencoder import MODEL_FILE, CrossEncoder

TRAIN = "The train to Oslo leaves at 9:40 from platform 3; the seats are in coach 12."


def readings(question: str, *passages: str) -> list[float]:
    read = CrossEncoder().read(question, passages)
    assert None not in read
    assert all(each.is_english for each in read if each)
    return [each.logit for each in read if each]


@pytest.mark.parametrize(
    ("question", "passage", "other"),
    [
        ("When does the train leave?", TRAIN, "The kettle leaks at the spout."),
        (
            "Which platform does the train leave from?",
            TRAIN,
            "Our platform strategy was postponed.",
        ),
        ("Who waters the plants?", "Ann waters the plants on Monday.", TRAIN),
    ],
)
def test_a_passage_that_answers_stands_out(question: str, passage: str, other: str) -> None:
    own, others = readings(question, passage, other)
    assert own > 0 > others


def test_a_passage_is_read_the_same_alone_and_in_any_company() -> None:
    passages = [TRAIN, "The kettle leaks.", "", "word " * 500]
    together = readings("When does the train leave?", *passages)
    assert [readings("When does the train leave?", each)[0] for each in passages] == together


def test_nothing_is_read_of_no_passages() -> None:
    assert CrossEncoder().read("When?", []) == []


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("火车几点出发", "火车九点四十分出发。"),
        ("火车几点出发", TRAIN),
    ],
)
def test_what_it_does_not_understand_it_does_not_judge(question: str, passage: str) -> None:
    assert CrossEncoder().read(question, [passage]) == [None]


def test_what_is_not_english_is_read_as_such() -> None:
    passage = "Der Zug nach Oslo fährt um 9:40 Uhr von Gleis 3 ab."
    [read] = CrossEncoder().read("Wann fährt der Zug nach Oslo ab?", [passage])
    assert read is not None
    assert not read.is_english


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    shutil.copy(Path(crossencoder.__file__).with_name(MODEL_FILE), tmp_path)
    with (tmp_path / MODEL_FILE).open("r+b") as file:
        file.write(b"damaged")
    with pytest.raises(StorageUnavailableError, match="model is damaged: its SHA-256"):
        CrossEncoder(tmp_path).read("When?", [TRAIN])
