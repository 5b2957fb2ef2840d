from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.catalog.catalog import Use, Uses
from storage.database import Database
from storage.index.embedders.bundled import StaticEmbedder
from storage.models import Identity
from tools.retrieval import SearchQuery, ToolIndex, ToolRecord
from tools.retrieval.learning import MOST, MOST_TIMES, SEARCHES, Learning, Shown

ANN = Identity("ann")
BOB = Identity("bob")
ASKED = "post the weekly figures to the team"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "toolcrib.db")) as database:
        yield database


@pytest.fixture
def uses(database: Database) -> Uses:
    return Uses(database)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uses]:
    with closing(Database(tmp_path_factory.mktemp("uses") / "toolcrib.db")) as database:
        yield Uses(database)


@pytest.fixture
def learning(uses: Uses) -> Learning:
    return Learning(uses)


def test_a_tool_that_served_is_boosted_for_questions_like_that(
    learning: Learning, uses: Uses
) -> None:
    learning.remember(ANN, ASKED, "chat")
    assert uses.listed(ANN) == [Use(ASKED, "chat", 1)]
    assert learning.boosts(ANN, ASKED) == pytest.approx({"chat": MOST / 2})
    like = learning.boosts(ANN, "post our monthly figures to the team")
    assert 0 < like["chat"] < MOST / 2
    assert learning.boosts(ANN, "rotate an image") == {}
    assert learning.boosts(BOB, ASKED) == {}


def test_what_was_forgotten_boosts_nothing(learning: Learning, uses: Uses) -> None:
    learning.remember(ANN, ASKED, "chat")
    uses.forget(ANN)
    assert learning.boosts(ANN, ASKED) == {}


def test_one_use_weighs_little_against_many(learning: Learning) -> None:
    for day in ("monday", "tuesday", "wednesday", "thursday"):
        learning.remember(ANN, f"{ASKED} on {day}", "chat")
    learning.remember(ANN, f"{ASKED} on friday", "impostor")
    boosts = learning.boosts(ANN, ASKED)
    assert boosts["chat"] > 3 * boosts["impostor"]


def test_repeating_a_call_soon_proves_no_more(learning: Learning) -> None:
    for _ in range(MOST_TIMES):
        learning.remember(ANN, ASKED, "chat")
    often = learning.boosts(ANN, ASKED)
    for _ in range(50):
        learning.remember(ANN, ASKED, "chat")
    assert learning.boosts(ANN, ASKED) == often
    assert often["chat"] < MOST


def test_several_tools_for_one_question_share_nothing_away(learning: Learning) -> None:
    learning.remember(ANN, ASKED, "chat")
    learning.remember(ANN, ASKED, "sheet")
    boosts = learning.boosts(ANN, ASKED)
    assert boosts["chat"] == boosts["sheet"] == pytest.approx(MOST / 2)


def test_a_single_use_lifts_no_tool_above_one_that_fits_clearly_better(learning: Learning) -> None:
    index = ToolIndex(embedders=())
    index.add_tools(
        [
            ToolRecord(tool_id="chat", name="chat", description="Post figures to the team weekly"),
            ToolRecord(tool_id="rotate", name="rotate", description="Rotate an image of the team"),
        ]
    )
    learning.remember(ANN, ASKED, "rotate")
    found = index.search(SearchQuery(query_text=ASKED), boosts=learning.boosts(ANN, ASKED))
    assert [each.tool.tool_id for each in found] == ["chat", "rotate"]


def test_a_tool_that_no_word_finds_is_found_for_what_it_served(learning: Learning) -> None:
    index = ToolIndex(embedders=())
    index.add_tool(ToolRecord(tool_id="chat", name="pigeon", description="Sends letters"))
    assert index.search(SearchQuery(query_text=ASKED)) == []
    learning.remember(ANN, ASKED, "chat")
    found = index.search(SearchQuery(query_text=ASKED), boosts=learning.boosts(ANN, ASKED))
    assert [each.tool.tool_id for each in found] == ["chat"]


def test_questions_that_mean_the_same_are_alike_without_a_common_word(uses: Uses) -> None:
    learning = Learning(uses, StaticEmbedder())
    learning.remember(ANN, "email my colleague", "mail")
    boosts = learning.boosts(ANN, "send messages to coworkers")
    assert boosts["mail"] > 0
    assert Learning(uses).boosts(ANN, "send messages to coworkers") == {}
    assert learning.boosts(ANN, "resize a photograph") == {}


@pytest.mark.parametrize("embedder", [None, StaticEmbedder()])
def test_questions_in_chinese_are_compared_by_their_characters(
    uses: Uses, embedder: StaticEmbedder | None
) -> None:
    learning = Learning(uses, embedder)
    learning.remember(ANN, "查询明天的天气", "weather")
    assert learning.boosts(ANN, "查询后天的天气")["weather"] > 0
    assert learning.boosts(ANN, "发送邮件") == {}


def test_a_record_that_refuses_costs_the_boosts_alone(
    learning: Learning, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    learning.remember(ANN, ASKED, "chat")
    database.path.rename(database.path.with_name("moved.db"))
    assert learning.boosts(ANN, ASKED) == {}
    learning.remember(ANN, ASKED, "chat")
    assert "What was learned cannot be used" in caplog.text
    assert "The use of chat was not remembered" in caplog.text


def test_half_a_character_is_no_hindrance(uses: Uses) -> None:
    learning = Learning(uses, StaticEmbedder())
    asked = "rotate an image \ud83d"
    learning.shown.note(ANN, "s", asked, ["rotate"])
    question = learning.shown.question_for(ANN, "s", "rotate")
    assert question is not None
    learning.remember(ANN, question, "rotate")
    assert learning.boosts(ANN, asked) == pytest.approx({"rotate": MOST / 2})


questions = st.text(st.sampled_from("ab 查天\N{COMBINING ACUTE ACCENT}"), max_size=8)
pairs = st.lists(st.tuples(questions, st.sampled_from("xyz")), max_size=12)


@given(pairs, questions)
def test_no_uses_make_a_boost_larger_than_the_most(
    lasting: Uses, pairs: list[tuple[str, str]], asked: str
) -> None:
    lasting.forget(ANN)
    learning = Learning(lasting)
    for question, tool_id in pairs:
        learning.remember(ANN, question, tool_id)
    assert all(0 < boost < MOST for boost in learning.boosts(ANN, asked).values())


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_a_called_tool_answers_the_latest_question_that_showed_it(shown: Shown) -> None:
    shown.note(ANN, "s", "older", ["chat", "mail"])
    shown.note(ANN, "s", "newer", ["chat", "wiki"])
    assert shown.question_for(ANN, "s", "chat") == "newer"
    assert shown.question_for(ANN, "s", "mail") == "older"
    assert shown.question_for(ANN, "s", "fax") is None


def test_one_search_counts_for_one_use_of_a_tool(shown: Shown) -> None:
    shown.note(ANN, "s", ASKED, ["chat"])
    assert shown.question_for(ANN, "s", "chat") == ASKED
    assert shown.question_for(ANN, "s", "chat") is None
    shown.note(ANN, "s", ASKED, ["chat"])
    assert shown.question_for(ANN, "s", "chat") == ASKED


@pytest.mark.parametrize(("identity", "session"), [(BOB, "s"), (ANN, "t"), (ANN, "")])
def test_only_the_session_that_asked_teaches(
    shown: Shown, identity: Identity, session: str
) -> None:
    shown.note(ANN, "s", ASKED, ["chat"])
    assert shown.question_for(identity, session, "chat") is None


def test_calls_without_a_session_teach_nothing(shown: Shown) -> None:
    shown.note(ANN, "", ASKED, ["chat"])
    assert shown.question_for(ANN, "", "chat") is None


def test_a_search_of_long_ago_teaches_nothing(shown: Shown) -> None:
    shown.note(ANN, "s", ASKED, ["chat"])
    for at in range(SEARCHES):
        shown.note(ANN, "s", f"search {at}", [])
    assert shown.question_for(ANN, "s", "chat") is None


def test_what_is_remembered_of_a_question_is_short_and_holds_no_secret(shown: Shown) -> None:
    shown.note(ANN, "s", "log in with password=hunter2 \n and " + "go on " * 100, ["chat"])
    question = shown.question_for(ANN, "s", "chat")
    assert question is not None
    assert question.startswith("log in with password=[redacted] and go on")
    assert len(question) <= 300
