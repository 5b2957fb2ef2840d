from storage.memory.cues import Kind
from storage.memory.statements import Passage, kind_by_place, statements_in, without_superseded


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


def test_a_reply_to_a_question_or_to_options_is_a_decision() -> None:
    for before in ("Which host?", "1. **S3**: dear\n2. **B2**: cheap"):
        passages = [said("cheaper one"), said(before, speaker="codex"), said("Go on.")]
        assert kind_by_place(passages, 0) is Kind.DECISION
    passages = [said("the bank's"), said("Both work.", speaker="codex"), said("Visa or Stripe?")]
    assert kind_by_place(passages, 0) is Kind.DECISION
    passages = [said("the bank's"), said("It works.", speaker="codex"), said("Run it.")]
    assert kind_by_place(passages, 0) is None


def test_what_the_user_accepts_in_a_few_words_was_found_out() -> None:
    answer = said("The lease expired.", speaker="codex")
    assert kind_by_place([said("phew, that was it"), answer], 1) is Kind.FOUND
    assert kind_by_place([said("and the other one?"), answer], 1) is None
    assert kind_by_place([said("add a test"), answer], 1) is None
    assert kind_by_place([answer], 0) is None
    (found,) = statements_in(answer, others=False, kind_here=Kind.FOUND)
    assert (found.kind, found.text) == (Kind.FOUND, "The lease expired.")
