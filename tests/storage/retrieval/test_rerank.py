"""The order of what was found in several places."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.models import Chunk, Context, ContextType, Identity, SearchHit
from storage.retrieval.rerank import ENOUGH_CHARS, Candidate, candidates_of, rerank
from storage.retrieval.surroundings import Around

SHARES = st.floats(0, 1)
CANDIDATES = st.builds(
    Candidate,
    similarity=st.none() | SHARES,
    words=SHARES,
    origin=st.sampled_from(["memory", "documents", "events"]),
    length=st.integers(0, 5000),
    around=st.none() | st.builds(Around, SHARES, st.floats(0, 2)),
)


def test_what_is_nearer_in_meaning_comes_first() -> None:
    assert _order(_candidate(similarity=0.5), _candidate(similarity=0.9)) == [1, 0]


def test_what_has_more_of_the_words_comes_first() -> None:
    assert _order(_candidate(words=0.2), _candidate(words=0.7)) == [1, 0]


def test_a_text_too_short_to_say_much_comes_after_one_that_is_not() -> None:
    assert _order(_candidate(length=20), _candidate(length=ENOUGH_CHARS)) == [1, 0]


def test_more_length_than_enough_gains_nothing() -> None:
    assert _order(_candidate(length=ENOUGH_CHARS), _candidate(length=5000)) == [0, 1]


def test_what_stands_around_a_passage_counts_by_its_weight() -> None:
    fitting, other = Around(score=1.0, weight=0.9), Around(score=0.0, weight=0.9)
    assert _order(_candidate(around=other), _candidate(), _candidate(around=fitting)) == [2, 1, 0]


def test_another_origin_comes_between_findings_of_one_that_are_hardly_better() -> None:
    memories = [_candidate(origin="memory", words=0.50) for _ in range(3)]
    assert _order(*memories, _candidate(origin="documents", words=0.49)) == [0, 3, 1, 2]


def test_another_origin_does_not_come_before_what_is_much_better() -> None:
    memories = [_candidate(origin="memory", words=0.9) for _ in range(3)]
    assert _order(*memories, _candidate(origin="documents", words=0.1)) == [0, 1, 2, 3]


def test_words_speak_for_both_where_there_is_no_vector() -> None:
    [(_, unknown)] = rerank([_candidate(similarity=None, words=0.8)])
    [(_, known)] = rerank([_candidate(similarity=0.8, words=0.8)])
    assert unknown == pytest.approx(known)


def test_equals_of_one_origin_stay_in_the_order_they_were_found_in() -> None:
    assert _order(*[_candidate()] * 4) == [0, 1, 2, 3]


def test_nothing_is_put_in_order_where_nothing_was_found() -> None:
    assert rerank([]) == []


@given(st.lists(CANDIDATES, max_size=30))
def test_each_candidate_has_one_place_and_a_score_no_higher_than_the_one_before(
    candidates: list[Candidate],
) -> None:
    ranked = rerank(candidates)
    scores = [score for _, score in ranked]
    assert sorted(index for index, _ in ranked) == list(range(len(candidates)))
    assert all(0 <= score <= 1 + 1e-9 for score in scores)
    assert all(before >= after for before, after in pairwise(scores))


def test_similarity_and_words_are_shares_of_the_best() -> None:
    hits = [
        _hit(dense=0.6, lexical=8.0),
        _hit(dense=0.3, lexical=2.0),
        _hit(dense=-0.2, lexical=0.0),
    ]
    candidates = candidates_of(hits, ["documents"] * 3, by_meaning=True)
    assert [(each.similarity, each.words) for each in candidates] == [(1, 1), (0.5, 0.25), (0, 0)]


def test_vectors_that_tell_nothing_are_left_out() -> None:
    [candidate] = candidates_of([_hit(dense=0.6, lexical=1.0)], ["events"], by_meaning=False)
    assert candidate.similarity is None


def test_a_passage_without_a_vector_has_no_similarity() -> None:
    [candidate] = candidates_of([_hit(dense=None, lexical=1.0)], ["events"], by_meaning=True)
    assert candidate.similarity is None


def test_the_surroundings_of_a_passage_keep_their_weight() -> None:
    hit = _hit(dense=0.5, lexical=1.0, around=Around(0.7, 0.9))
    [candidate] = candidates_of([hit], ["events"], by_meaning=True)
    assert candidate.around == Around(0.7, 0.9)


def _candidate(
    *,
    similarity: float | None = 0.5,
    words: float = 0.5,
    origin: str = "documents",
    length: int = ENOUGH_CHARS,
    around: Around | None = None,
) -> Candidate:
    return Candidate(
        similarity=similarity, words=words, origin=origin, length=length, around=around
    )


def _order(*candidates: Candidate) -> list[int]:
    return [index for index, _ in rerank(candidates)]


def _hit(*, dense: float | None, lexical: float, around: Around | None = None) -> SearchHit:
    context = Context(
        id="c",
        context_type=ContextType.DOCUMENT,
        identity=Identity(),
        raw_type="text",
        raw_id="c",
        title="",
        summary="",
        keywords=(),
        entities=(),
        confidence=5.0,
        importance=5.0,
        create_time=0.0,
        update_time=0.0,
        event_time=0.0,
        metadata={},
        media_type="text/plain",
        file_path="",
        sha256="",
        merge_count=0,
        hierarchy_level=0,
        time_bucket="",
        parent_id="",
        chunk_count=1,
        memory_layer=0,
    )
    return SearchHit(
        chunk=Chunk(position=0, start=0, heading="", content="text"),
        context=context,
        score=0.5,
        dense=dense,
        lexical=lexical,
        surroundings=None if around is None else around.score,
        surroundings_weight=0.0 if around is None else around.weight,
        matched_terms=(),
    )
