"""Replies: an answer is found in whatever an agent prints."""

import json

import pytest

from tools.agent.agents.agent import PRESETS, Reply
from tools.agent.agents.programs import Answer, read_answer


def test_all_that_is_printed_is_the_answer_where_nothing_else_is_said() -> None:
    assert read_answer(" {1} \n", Reply()) == Answer("{1}")


@pytest.mark.parametrize(
    ("preset", "printed", "answer"),
    [
        (
            "claude-code",
            [{"type": "result", "result": "Done.", "total_cost_usd": 0.5, "session_id": "c-1"}],
            Answer("Done.", 0.5, "c-1"),
        ),
        (
            "codex",
            [
                {"type": "thread.started", "thread_id": "x-1"},
                {"type": "item.completed", "item": {"type": "reasoning", "text": "Hm."}},
                {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
                {"type": "turn.completed", "usage": {"input_tokens": 1}},
            ],
            Answer("Done.", None, "x-1"),
        ),
        ("gemini", [{"session_id": "g-1", "response": "Done."}], Answer("Done.", None, "g-1")),
        (
            "opencode",
            [
                {"type": "text", "sessionID": "o-1", "part": {"type": "text", "text": "Done."}},
                {"type": "step_finish", "sessionID": "o-1", "part": {"cost": 0.25}},
                {"type": "step_finish", "sessionID": "o-1", "part": {"cost": 0.5}},
            ],
            Answer("Done.", 0.75, "o-1"),
        ),
    ],
)
def test_the_answer_of_each_preset_is_found(
    preset: str, printed: list[object], answer: Answer
) -> None:
    lines = "\n".join(["a line of no JSON", *map(json.dumps, printed)])
    assert read_answer(lines, PRESETS[preset].reply) == answer
    if len(printed) == 1:
        assert read_answer(json.dumps(printed[0], indent=1), PRESETS[preset].reply) == answer


@pytest.mark.parametrize(
    "printed",
    ["", "[" * 100_000, '{"result": 1}', '{"result": {"result": "no"}}', "[[]]", "NaN", '{"a"'],
)
def test_what_holds_no_answer_is_told_as_it_is(printed: str) -> None:
    found = read_answer(printed, Reply(answer="result"))
    assert (found.text, found.is_found) == (printed, False)


@pytest.mark.parametrize("cost", ["NaN", "Infinity", "-1", "true", '"5"', "1e300", "[1]"])
def test_no_nonsense_is_a_cost(cost: str) -> None:
    printed = f'{{"result": "x", "cost": {cost}}}'
    assert read_answer(printed, Reply(answer="result", cost="cost")).cost is None


def test_half_of_a_character_is_no_reason_to_lose_an_answer() -> None:
    printed = r'{"said": "an \ud83d owl", "id": "\udfff"}'
    assert read_answer(printed, Reply(answer="said", session="id")) == Answer("an ? owl", None, "?")
