import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from storage.index.lexical import K1, B
from tools.retrieval.models import ToolRecord, spaced
from tools.retrieval.words import (
    Mentions,
    Names,
    Postings,
    brief_text,
    fields_of,
    full_text,
    terms_of,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$defs", "description", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def test_a_name_weighs_more_than_a_description_and_that_more_than_a_parameters_text() -> None:
    record = ToolRecord(
        tool_id="1",
        name="sendMail",
        description="quickly",
        parameters={"properties": {"recipient": {"description": "somebody"}}},
    )
    terms = terms_of(fields_of(record))
    assert terms["mail"] > terms["quick"] == terms["recipi"] > terms["somebodi"] > 0


def test_nested_parameters_are_read_too() -> None:
    schema = {
        "properties": {"filter": {"anyOf": [{"properties": {"zebra": {}}}, {"type": "null"}]}},
        "$defs": {"Place": {"properties": {"meadow": {"description": "with flowers"}}}},
    }
    terms = terms_of(fields_of(ToolRecord(tool_id="1", name="a1", parameters=schema)))
    assert {"filter", "zebra", "meadow", "flower"} <= set(terms)


def test_a_servers_name_before_a_tools_counts_once() -> None:
    record = ToolRecord(tool_id="1", name="github__create_issue", server="github")
    assert terms_of(fields_of(record))["github"] == 1
    assert brief_text(record).startswith("create issue:")


def test_names_are_spaced() -> None:
    assert spaced("getHTTPResponse_v2.Now") == "get HTTP Response v2 Now"


def test_what_json_cannot_hold_is_no_record() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"items": deep}
    for wrong in ({"parameters": deep}, {"description": "\ud800"}, {"tags": ("\ud800",)}):
        with pytest.raises(ValidationError, match="not what JSON can hold"):
            ToolRecord.model_validate({"tool_id": "1", "name": "a", **wrong})


@given(st.dictionaries(st.sampled_from(["properties", "items", "allOf"]), JSON), st.text())
def test_wild_records_are_read(schema: dict[str, Any], text: str) -> None:
    record = ToolRecord(tool_id="1", name="a", description=text, tags=(text,), parameters=schema)
    fields = fields_of(record)
    assert all(weight > 0 for weight in terms_of(fields).values())
    assert fields == fields_of(record.model_copy(deep=True))
    full, brief = ("".join(each(record).split()) for each in (full_text, brief_text))
    assert full.startswith(brief[:5])  # they differ in spaces


WORDS = ("mail", "send", "list", "file", "get")
TERMS = st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.5, 1.0, 2.0, 3.5]), max_size=5)
CHANGES = st.lists(st.tuples(st.integers(0, 7), st.none() | TERMS), max_size=40)


def _fresh(tools: dict[int, dict[str, float]]) -> Postings:
    postings = Postings()
    for slot, terms in tools.items():
        postings.add(slot, terms)
    return postings


@given(CHANGES)
def test_tools_that_come_and_go_in_any_order_leave_what_a_fresh_index_has(
    changes: list[tuple[int, dict[str, float] | None]],
) -> None:
    postings = Postings()
    tools: dict[int, dict[str, float]] = {}
    for slot, terms in changes:
        postings.remove(slot)
        tools.pop(slot, None)
        if terms is not None:
            postings.add(slot, terms)
            tools[slot] = terms
        postings.scores(WORDS, 8)  # what is remembered of a search must not outlive a change
    fresh = _fresh(tools)
    assert len(postings) == len(tools)
    for word in WORDS:
        assert (word in postings) == any(word in terms for terms in tools.values())
        assert postings.idf(word) == fresh.idf(word)
    assert postings.scores(WORDS, 8).tolist() == fresh.scores(WORDS, 8).tolist()


def test_the_score_is_that_of_the_formula() -> None:
    postings = _fresh({0: {"mail": 3.0, "send": 1.0}, 1: {"mail": 0.5}, 2: {"list": 1.5}})
    idf = math.log1p((3 - 2 + 0.5) / (2 + 0.5))
    norms = [K1 * (1 - B + B * length / 2.0) for length in (4.0, 0.5)]
    expected = [idf * 3.0 / (3.0 + norms[0]), idf * 0.5 / (0.5 + norms[1]), 0.0]
    found = postings.scores(["mail"], 3).tolist()
    assert all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(found, expected, strict=True))


def test_a_term_that_no_tool_holds_tells_most() -> None:
    postings = _fresh({0: {"mail": 1.0}, 1: {"mail": 1.0, "send": 1.0}})
    assert postings.idf("unheard") > postings.idf("send") > postings.idf("mail") > 0


NAMES = (
    "web_search",
    "mail__send_email",
    "getCurrentWeather",
    "calculator",
    "now",
    "todo",
    "search",
)


@pytest.fixture
def names() -> Names:
    names = Names()
    for slot, name in enumerate(NAMES):
        server = "mail" if name.startswith("mail__") else ""
        names.add(slot, ToolRecord(tool_id=f"{slot}", name=name, server=server))
    return names


def test_what_comes_from_files_is_not_named_by_that() -> None:
    names = Names()
    names.add(0, ToolRecord(tool_id="file:send_email", name="Send Email"))
    assert names.mentioned("file") == Mentions()
    assert names.mentioned("send").begun == {0: None}


def _shown(slots: dict[int, None]) -> list[str]:
    return [NAMES[slot] for slot in slots]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("web_search", ["web_search"]),
        ("please use WebSearch for this", ["web_search"]),
        ("a web search about herons", ["web_search"]),
        ("try web-search.", ["web_search"]),
        ("call `calculator` with 3", ["calculator"]),
        ("mail.send_email", ["mail__send_email"]),
        ("mail/send_email it to Ann", ["mail__send_email"]),
        ("mcp__mail__send_email it to Ann", ["mail__send_email"]),
        ("send_email, then getCurrentWeather", ["mail__send_email", "getCurrentWeather"]),
        ("get current weather", ["getCurrentWeather"]),
        ("calculator and todo", ["calculator", "todo"]),
        ("NOW", ["now"]),
        ("what is the weather right now", []),
        ("help me search for shoes", []),
        ("", []),
    ],
)
def test_names_are_known_however_they_are_written(
    names: Names, query: str, named: list[str]
) -> None:
    assert _shown(names.mentioned(query).named) == named


def test_a_word_of_a_sentence_that_is_a_name_is_noted_in_passing(names: Names) -> None:
    assert names.mentioned("a calculator for my taxes").passing == [[NAMES.index("calculator")]]


@pytest.mark.parametrize(
    ("query", "begun"),
    [
        ("get_curr", ["getCurrentWeather"]),
        ("mail__", ["mail__send_email"]),
        ("web", ["web_search"]),
        ("is there send_em or so", ["mail__send_email"]),
        ("is it mail__s, mail__send or mail__", ["mail__send_email"]),
        ("calculate my taxes", []),
    ],
)
def test_the_beginning_of_a_name_is_enough(names: Names, query: str, begun: list[str]) -> None:
    assert _shown(names.mentioned(query).begun) == begun


def test_what_is_removed_is_not_named(names: Names) -> None:
    for slot, name in enumerate(NAMES):
        server = "mail" if name.startswith("mail__") else ""
        names.remove(slot, ToolRecord(tool_id=f"{slot}", name=name, server=server))
    assert all(names.mentioned(name) == Mentions() for name in NAMES)
