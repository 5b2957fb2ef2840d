"""The forms of conversations that the benchmark reads."""

import json
from pathlib import Path

from benchmarks.conversations import read_file, run

DAY_1, DAY_2 = 1_684_549_260.0, 1_684_764_000.0

LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which bicycle did I buy the day before yesterday?",
        "answer": "A red one.",
        "question_date": "2023/05/24 (Wed) 10:00",
        "haystack_session_ids": ["later", "earlier"],
        "haystack_dates": ["2023/05/22 (Mon) 14:00", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I bought a red bicycle.", "has_answer": True},
                {"role": "assistant", "content": "Have fun with it!"},
            ],
            [{"role": "user", "content": "I bought a blue bicycle.", "has_answer": False}],
        ],
        "answer_session_ids": ["later"],
    },
    {
        "question_id": "q2_abs",
        "question_type": "single-session-user",
        "question": "Which car did I buy?",
        "answer": "You did not say.",
        "question_date": "2023/05/24 (Wed) 10:00",
        "haystack_session_ids": ["only"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "A tram.", "has_answer": True}]],
        "answer_session_ids": ["only"],
    },
]


def written(folder: Path) -> Path:
    file = folder / "longmemeval.json"
    file.write_text(json.dumps(LONGMEMEVAL), encoding="utf-8")
    return file


def test_longmemeval_is_read_in_order_of_time_without_what_nothing_answers(tmp_path: Path) -> None:
    (read,) = read_file(written(tmp_path))
    assert [(turn.session, turn.date, turn.speaker) for turn in read.turns] == [
        ("q1-earlier", DAY_1, "user"),
        ("q1-later", DAY_2, "user"),
        ("q1-later", DAY_2, "assistant"),
    ]
    assert read.qrels == {"q1": {read.turns[1].id: 1}}
    assert read.asked == {"q1": DAY_2 + 2 * 86_400 - 4 * 3600}


def test_longmemeval_is_asked_at_its_own_date(tmp_path: Path) -> None:
    report = run(written(tmp_path))
    assert report.questions == 1
    assert report.product.turn_ndcg_10 == 1.0
