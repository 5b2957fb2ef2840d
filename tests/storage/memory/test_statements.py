from storage.memory.cues import Kind
from storage.memory.statements import Passage, statements_in, without_superseded


def said(text: str, moment: float = 1.0, speaker: str = "User") -> Passage:
    return Passage("s", 1, speaker, moment, text)


def test_a_passage_is_read_sentence_by_sentence() -> None:
    text = "I use Neo. We agreed on tabs. TODO: fix it. It is on port 80. Why? ```\nalways\n```"
    found = [(each.kind, each.text) for each in statements_in(said(text), others=True)]
    assert found == [
        (Kind.PERSON, "I use Neo."),
        (Kind.DECISION, "We agreed on tabs."),
        (Kind.OPEN, "TODO: fix it."),
        (Kind.OTHER, "It is on port 80."),
    ]


def test_without_others_only_statements_and_what_is_done_are_read() -> None:
    text = "It is on port 80. The port is fixed."
    found = [(each.kind, each.done) for each in statements_in(said(text), others=False)]
    assert found == [(None, True)]


def test_a_short_decision_is_read_with_its_answer() -> None:
    (found,) = statements_in(said("2 sounds good"), others=False, answer="OK. I'll build option 2.")
    assert (found.kind, found.reply) == (Kind.DECISION, "I'll build option 2.")


def test_another_value_of_the_same_thing_replaces_the_older_one() -> None:
    texts = [(1.0, "limit uploads to 50 MB now"), (2.0, "raise the limit of uploads to 250 MB")]
    found = [each for at, text in texts for each in statements_in(said(text, at), others=True)]
    assert [each.text for each in without_superseded(found)] == [texts[1][1]]


def test_of_one_turn_the_users_words_stay() -> None:
    user = said("We decided to deploy the shop to Hetzner.")
    echo = said("Decision: deploy the shop to Hetzner.", speaker="codex")
    found = [each for passage in (echo, user) for each in statements_in(passage, others=False)]
    assert [each.text for each in without_superseded(found)] == [user.content]
