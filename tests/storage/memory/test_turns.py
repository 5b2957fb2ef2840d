import pytest

from storage.memory.turns import Turn, is_topical, prose_in

DAY = 86_400.0


def turn(prompt: str, answer: str = "All right.", session: str = "1", moment: float = 0.0) -> Turn:
    return Turn(session, 1, moment, prompt, answer)


@pytest.mark.parametrize(
    ("older", "newer", "replaced"),
    [
        ("lint it with eslint", "eslint is slow, so biome lints it instead", True),
        ("the upload limit is 50 MB", "the upload limit is 250 MB now", True),
        ("exports go to the share", "exports go to the bucket instead of the share", True),
        ("Der Knopf ist rot.", "Rot wirkt wie ein Fehler, der Knopf ist grün.", True),
        ("use prettier for formatting", "add a test for prettier", False),
        ("use prettier for formatting", "is prettier documented?", False),
        ("what does prettier do?", "swap prettier for biome", False),
        ("we use tabs in Go", "we use spaces in Python", False),
        ("the board wants prettier reports", "nobody reads the weekly mails", False),
    ],
)
def test_only_a_statement_about_the_same_thing_replaces_one(
    older: str, newer: str, replaced: bool
) -> None:
    assert turn(newer, "Done.", "2", DAY).replaces(turn(older)) is replaced


def test_a_turn_replaces_nothing_newer_and_nothing_of_its_session() -> None:
    old, new = (
        turn("the upload limit is 50 MB"),
        turn("the upload limit is 250 MB", session="2", moment=DAY),
    )
    assert new.replaces(old)
    assert not old.replaces(new)
    assert not turn("the upload limit is 250 MB", moment=DAY).replaces(old)


@pytest.mark.parametrize(
    ("before", "prompt", "least", "most"),
    [
        (turn("Check it.", "Which host is it?"), "gpu-07 on 8443", 0.9, 1.0),
        (turn("Why?", "I suspect the cache."), "and?", 0.8, 0.9),
        (turn("Why?", "I suspect the cache."), "the proxy drops the header", 0.5, 0.8),
        (turn("Why?", "I suspect the cache."), "add a footer", 0.0, 0.4),
    ],
)
def test_a_reply_is_about_what_came_before_it(
    before: Turn, prompt: str, least: float, most: float
) -> None:
    assert least < turn(prompt).share_of(before) < most


def test_general_words_are_no_topics() -> None:
    words = ["postgres", "use", "changes", "the", "0042", "dayjs"]
    assert [word for word in words if is_topical(word)] == ["postgres", "0042", "dayjs"]


def test_prose_leaves_out_code_and_splits_what_people_type() -> None:
    text = "it hangs. look:\n\n```\nERROR 7\n```\nso i want it in the worker. can you?\n```\nopen"
    parts = ["it hangs.", "look:", "so i want it in the worker.", "can you?"]
    assert prose_in(text, typed=True) == parts
