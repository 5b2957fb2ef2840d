from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from storage.index.lexical import K1, B
from tools.retrieval.postings import Postings

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
