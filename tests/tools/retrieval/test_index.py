import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.retrieval import SearchQuery, SearchResult, ToolIndex, ToolRecord
from tools.retrieval.index import MAX_CLAUSES, clauses_of
from tools.retrieval.vectors import DensePart, bundled_parts


@pytest.fixture
def index(tools: list[ToolRecord]) -> ToolIndex:
    """The tools, found by their words."""
    index = ToolIndex(embedders=())
    index.add_tools(tools)
    return index


@pytest.fixture
def whole(tools: list[ToolRecord], parts: tuple[DensePart, ...]) -> ToolIndex:
    """The tools, found by their words and meanings."""
    index = ToolIndex(embedders=parts)
    index.add_tools(tools)
    index.build_index()
    return index


def _ids(results: Sequence[SearchResult]) -> list[str]:
    return [result.tool.tool_id for result in results]


def _search(index: ToolIndex, text: str, **options: Any) -> list[str]:
    return _ids(index.search(SearchQuery(query_text=text, **options)))


@pytest.mark.parametrize(
    ("query", "tool_id"),
    [
        ("writing emails to recipients", "mail__send_email"),
        ("news", "web_search"),
        ("spreadsheets", "mail__send_email"),
        ("current", "getCurrentWeather"),
        ("weather", "getCurrentWeather"),
        ("今天天气怎么样", "查询天气"),
        ("post_letter", "mail__send_email"),
    ],
)
def test_a_tool_is_found_by_the_words_of_each_field(
    index: ToolIndex, query: str, tool_id: str
) -> None:
    assert _search(index, query)[0] == tool_id


def test_a_tool_is_found_without_a_common_word_if_it_means_the_same(
    index: ToolIndex, whole: ToolIndex
) -> None:
    question = "how hot will it be outdoors tomorrow"
    assert _search(index, question) == []
    assert _search(whole, question)[0] == "getCurrentWeather"


def test_a_tool_that_one_of_the_models_finds_near_is_found(whole: ToolIndex) -> None:
    described = {"back": "Go back to the previous page", "navigate": "Navigate to a URL"}
    whole.add_tools(
        ToolRecord(tool_id=name, name=name, description=text) for name, text in described.items()
    )
    whole.build_index()
    question = "go to a website"  # which the greater model understands badly
    assert "navigate" in _search(whole, question)


@pytest.mark.parametrize("query", ["zxcvb qwerty", "", "   ", "!?", "the of and", "\0"])
def test_nonsense_finds_nothing(whole: ToolIndex, query: str) -> None:
    assert _search(whole, query) == []


def test_a_query_in_a_script_that_no_model_reads_is_searched_by_its_words(whole: ToolIndex) -> None:
    assert _search(whole, "北京的天气预报") == ["查询天气"]


def test_each_part_of_a_request_finds_its_tool(whole: ToolIndex) -> None:
    asked = "Look up the temperature and wind, then send an email about it to my colleagues"
    assert set(_search(whole, asked, top_k=2)) == {"getCurrentWeather", "mail__send_email"}


def test_all_tools_that_a_query_names_come_first(whole: ToolIndex) -> None:
    asked = "use execute_sql and mail.send_email for the weather"
    results = whole.search(SearchQuery(query_text=asked))
    assert _ids(results)[:2] == ["execute_sql", "mail__send_email"]
    assert [result.score for result in results[:2]] == [1.0, 1.0]


def test_scores_lie_between_0_and_1_and_fall_with_the_rank(whole: ToolIndex) -> None:
    for query in ("weather", "send the search by email", "web", "how do I multiply numbers"):
        results = whole.search(SearchQuery(query_text=query, top_k=50))
        scores = [result.score for result in results]
        assert [result.rank for result in results] == list(range(1, len(results) + 1))
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


def test_hits_below_the_least_score_are_left_out(whole: ToolIndex) -> None:
    scores = [result.score for result in whole.search(SearchQuery(query_text="web news search"))]
    assert len(scores) > 1
    least = SearchQuery(query_text="web news search", min_score=scores[0])
    assert [result.score for result in whole.search(least)] == scores[:1]


def test_what_was_chosen_by_its_tags_needs_less_in_common(whole: ToolIndex) -> None:
    assert _search(whole, "reach the user", tags_filter=("communication",)) == ["mail__send_email"]
    assert _search(whole, "qzxv wkjh", tags_filter=("database",), min_score=0.2) == []


def test_tags_filter_in_any_case(index: ToolIndex) -> None:
    asked = "send web searches"
    assert set(_search(index, asked, tags_filter=["WEB"])) == {"web_search", "mail__send_email"}
    assert _search(index, asked, tags_filter=["web", "search"], match="all") == ["web_search"]
    assert _search(index, asked, tags_filter=["no such"]) == []
    found = index.search_by_tags(["DATABASE", "communication"])
    assert [tool.tool_id for tool in found] == ["mail__send_email", "execute_sql"]
    assert index.search_by_tags(["search", "web"], match="all") == [index.get_tool("web_search")]
    assert index.search_by_tags([]) == []


def test_what_is_not_admitted_counts_for_nothing(whole: ToolIndex, tools: list[ToolRecord]) -> None:
    def admits(record: ToolRecord) -> bool:
        return record.tool_id != "web_search"

    asked = SearchQuery(query_text="web_search: current information on the internet")
    results = whole.search(asked, admits=admits)
    assert "web_search" not in _ids(results)
    assert whole.search(asked, admits=lambda _: False) == []
    boosts = {"web_search": 0.5}
    assert "web_search" not in _ids(whole.search(asked, admits=admits, boosts=boosts))


def test_a_boost_lifts_a_tool(index: ToolIndex) -> None:
    asked = SearchQuery(query_text="something in other words", top_k=1)
    boosts = {"calculator": 0.3, "no such tool": 1.0}
    results = index.search(asked, boosts=boosts)
    assert [(result.tool.tool_id, round(result.score, 5)) for result in results] == [
        ("calculator", 0.3)
    ]


def test_a_boost_shows_nothing_of_a_tool_in_quarantine(index: ToolIndex) -> None:
    index.add_tool(ToolRecord(tool_id="barred", name="barred", names_only=True))
    asked = SearchQuery(query_text="something in other words")
    assert index.search(asked, boosts={"barred": 0.3}) == []


def test_the_same_tool_on_several_servers_has_one_place(index: ToolIndex) -> None:
    for server in ("one", "two", "three"):
        name = f"{server}__list_files"
        record = ToolRecord(
            tool_id=name, name=name, server=server, description="Lists files of a folder"
        )
        index.add_tool(record)
    results = index.search(SearchQuery(query_text="which files are in the folder"))
    assert [len(result.also) for result in results] == [2]
    named = index.search(SearchQuery(query_text="two__list_files"))
    assert _ids(named) == ["two__list_files"]
    assert named[0].also == ("one__list_files", "three__list_files")
    within = index.search(
        SearchQuery(query_text="list files"), admits=lambda tool: tool.server != "one"
    )
    assert {*_ids(within), *within[0].also} == {"two__list_files", "three__list_files"}


def test_a_tool_in_quarantine_is_found_by_its_names_only(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    index = ToolIndex(embedders=parts)
    barred = tools[1].model_copy(update={"names_only": True})
    index.add_tools([tools[0], barred, *tools[2:]])
    index.build_index()
    for query in ("compose and send an email to recipients", "spreadsheet", "communication"):
        assert barred.tool_id not in _search(index, query)
    assert index.search_by_tags(["communication"]) == []
    for query in ("send_email", "mail__send", "please use mail.send_email"):
        shown = index.search(SearchQuery(query_text=query))[0].tool
        assert shown.name == barred.name
        assert (shown.description, shown.tags, shown.parameters) == ("", (), None)


def test_a_tool_that_is_replaced_is_not_found_by_what_it_was(whole: ToolIndex) -> None:
    changed = ToolRecord(tool_id="calculator", name="abacus", description="Paints pictures")
    whole.add_tool(changed)
    whole.build_index()
    assert _search(whole, "multiplying") == []
    assert _search(whole, "calculator") == ["calculator"]  # its id still names it
    assert _search(whole, "drawing with a brush")[0] == "calculator"
    assert whole.get_tool("calculator") == changed
    assert len(whole) == len(whole.get_all_tools()) == 6


def test_a_tool_that_is_removed_is_gone(whole: ToolIndex) -> None:
    assert whole.remove_tool("getCurrentWeather")
    assert not whole.remove_tool("getCurrentWeather")
    assert whole.get_tool("getCurrentWeather") is None
    for query in ("getCurrentWeather", "temperature, rain and wind", "how hot will it be outdoors"):
        assert "getCurrentWeather" not in _search(whole, query)
    whole.add_tool(ToolRecord(tool_id="new", name="piano", description="Plays a melody"))
    assert _search(whole, "a melody") == ["new"]  # in the place of the old one, without its vector


def test_a_tool_without_a_vector_yet_is_judged_by_its_words(whole: ToolIndex) -> None:
    late = ToolRecord(tool_id="late", name="translate", description="Translates text to French")
    whole.add_tool(late)
    assert set(whole.coverage.values()) == {6 / 7}
    before = whole.search(SearchQuery(query_text="translate this letter to French"))
    whole.build_index()
    after = whole.search(SearchQuery(query_text="translate this letter to French"))
    assert set(whole.coverage.values()) == {1.0}
    assert before[0].tool == after[0].tool == late


def test_what_comes_while_the_index_is_started_is_filled_in_the_background(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    index = ToolIndex(embedders=parts)
    index.start()
    index.add_tools(tools)
    index.build_index()
    assert set(index.coverage.values()) == {1.0}
    index.close()
    index.close()


def test_tools_come_and_go_while_others_search(tools: list[ToolRecord]) -> None:
    index = ToolIndex(embedders=())
    index.add_tools(tools)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for turn in range(40):
                record = ToolRecord(tool_id=f"{number}", name=f"tool{turn}", description="email")
                index.add_tool(record)
                assert _search(index, "email news weather", top_k=20)
                assert index.remove_tool(f"{number}")
        except BaseException as error:  # noqa: BLE001  # shown by the main thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert index.get_all_tools() == tools


def test_a_record_that_is_refused_leaves_the_index_as_it_was(index: ToolIndex) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"properties": {"a": deep}}
    refused = ToolRecord.model_construct(tool_id="deep", name="deep_well", parameters=deep)
    before = index.get_all_tools()
    with pytest.raises(RecursionError):
        index.add_tool(refused)
    assert index.get_all_tools() == before
    assert _search(index, "deep_well") == []
    index.add_tool(ToolRecord(tool_id="deep", name="deep_well", description="Holds water"))
    assert _search(index, "deep_well") == ["deep"]


def test_half_a_character_keeps_no_tool_from_being_understood(parts: tuple[DensePart, ...]) -> None:
    index = ToolIndex(embedders=parts)
    index.add_tool(ToolRecord.model_construct(tool_id="half", name="half", description="\ud800"))
    index.add_tool(ToolRecord(tool_id="whole", name="whole", description="Paints pictures"))
    index.build_index()
    assert set(index.coverage.values()) == {1.0}
    assert _search(index, "drawing with a brush \ud800")[0] == "whole"


@pytest.mark.parametrize(
    "repeated", [" ", "a", "天", "mail__ ", "mail__a.", "and ", ", ", "'a", "é"]
)
def test_a_long_query_is_answered_soon(repeated: str) -> None:
    index = ToolIndex(embedders=())
    index.add_tools(
        ToolRecord(tool_id=name, name=name, server="mail", description="Sends")
        for name in (f"mail__tool{number}" for number in range(3_000))
    )
    began = time.thread_time()
    index.search(SearchQuery(query_text=f"x{repeated * 200_000}x"))
    assert time.thread_time() - began < 0.5


TOOLS = st.builds(
    ToolRecord,
    tool_id=st.sampled_from("abcde"),
    name=st.sampled_from(["s1__send_mail", "s2__send_mail", "list_files", "search"]),
    description=st.sampled_from(["Sends a letter by mail", "Lists files", "Finds a letter"]),
    tags=st.sampled_from([(), ("post",), ("POST", "disk")]),
    server=st.sampled_from(["", "s1", "s2"]),
    names_only=st.booleans(),
)
QUERIES = (
    *("send_mail", "a letter and then the files", "list", "search for mail", "post", "envelope"),
)


@given(st.lists(TOOLS | st.sampled_from("abcde"), max_size=12))
def test_tools_that_come_and_go_in_any_order_leave_what_a_fresh_index_has(
    changes: list[ToolRecord | str],
) -> None:
    def empty() -> ToolIndex:
        return ToolIndex(embedders=bundled_parts()[:1])

    index, fresh = empty(), empty()
    for change in changes:
        if isinstance(change, str):
            index.remove_tool(change)
        else:
            index.add_tool(change)
            index.build_index()
    fresh.add_tools(index.get_all_tools())
    fresh.build_index()
    assert len(index) == len(fresh)
    for text in QUERIES:
        for tags in ((), ("Post",)):
            asked = SearchQuery(query_text=text, tags_filter=tags, top_k=3)
            found = [(each.tool, each.also, each.rank) for each in index.search(asked)]
            assert found == [(each.tool, each.also, each.rank) for each in fresh.search(asked)]


WILD = st.text(max_size=30) | st.text("aB_.-:`'\" 天é\u0301\u200b1", max_size=30)


@given(st.lists(st.tuples(WILD, WILD, WILD), max_size=6), WILD, st.integers(1, 4))
def test_wild_records_and_queries_fail_nothing(
    records: list[tuple[str, str, str]], query: str, top_k: int
) -> None:
    index = ToolIndex(embedders=())
    for name, description, tag in records:
        record = ToolRecord(
            tool_id=name or "x",
            name=name or "x",
            description=description,
            tags=(tag,),
            aliases=(tag,),
            server=tag,
            names_only="天" in tag,
        )
        index.add_tool(record)
    results = index.search(SearchQuery(query_text=query, top_k=top_k, tags_filter=()))
    assert len(results) <= top_k
    scores = [result.score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    for name, _, _ in records:
        index.remove_tool(name or "x")
    assert len(index) == 0
    assert _search(index, query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Send the report to Ann", []),
        (
            "Send the report to Ann and then delete the draft folder",
            ["Send the report to Ann", "delete the draft folder"],
        ),
        (
            "Book a flight to Rome. Finally tell my colleagues about it",
            ["Book a flight to Rome.", "Finally tell my colleagues about it"],
        ),
        ("Find red, green and blue shoes", []),  # a list of things is one request
        ("查询北京的天气。然后发送一封邮件", ["查询北京的天气。", "然后发送一封邮件"]),
        (
            "Sort files by size\nrename every picture",
            ["Sort files by size", "rename every picture"],
        ),
    ],
)
def test_a_request_for_several_things_is_split(query: str, expected: list[str]) -> None:
    assert [query[start:end] for start, end in clauses_of(query)] == expected


@given(
    st.text() | st.lists(st.sampled_from(["send mail", " and ", ", ", ".", "\n", "x"])).map("".join)
)
def test_clauses_follow_each_other_within_the_query(query: str) -> None:
    clauses = clauses_of(query)
    assert len(clauses) <= MAX_CLAUSES
    assert len(clauses) != 1
    places = [place for clause in clauses for place in clause]
    assert places == sorted(places)
    assert all(0 <= start < end <= len(query) for start, end in clauses)
