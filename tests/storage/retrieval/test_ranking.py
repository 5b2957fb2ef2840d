"""One order: words and meaning fused, hits of several places reranked, nothing said twice."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.index.embedders.base import DEFAULT_FLOOR
from storage.models import Chunk, Context, ContextType, Entry, Identity, SearchHit
from storage.retrieval.ranking import (
    ENOUGH_CHARS,
    Around,
    Candidate,
    UnifiedHit,
    can_say_the_same,
    candidates_of,
    distinct,
    fuse,
    rerank,
)

SHARES = st.floats(0, 1)
cosines = st.floats(-1, 1)
bm25s = st.floats(1e-6, 50)
seqs = st.integers(1, 20)
alphas = st.floats(0, 1)
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


def test_another_origin_comes_between_hits_of_one_that_are_hardly_better() -> None:
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
        told=0.0,
        coverage=0.0,
        surroundings=None if around is None else around.score,
        surroundings_weight=0.0 if around is None else around.weight,
        matched_terms=(),
    )


LONG = "The deploy key of the staging server is rotated on the first Friday of each month by Ann"


def hit(text: str, origin: str = "documents", layer: int = 0) -> UnifiedHit:
    said = Entry(
        seq=1,
        session_id="",
        client="",
        device_id="",
        agent_id="",
        kind="message",
        time=0,
        action="",
        target="",
        arguments={},
        outcome="ok",
        said=text,
        milliseconds=0,
        importance=0,
        is_recall=False,
    )
    return UnifiedHit(origin=origin, layer=layer, score=1, lexical=1, entry=said)


def kept(*hits: UnifiedHit, limit: int = 10) -> list[int]:
    chosen = distinct(hits, limit)
    return [number for number, each in enumerate(hits) if any(each is one for one in chosen)]


def test_the_same_text_is_told_once_whatever_its_case_and_blanks() -> None:
    same = hit(f"  {LONG.upper()}\n")
    assert kept(hit(LONG), same, hit("Another."), hit(LONG, "memory")) == [0, 2]


def test_nearly_the_same_words_of_another_origin_say_the_same() -> None:
    assert kept(hit(LONG), hit(f"{LONG} now", "memory")) == [0]
    assert kept(hit(LONG), hit(f"{LONG} now")) == [0, 1]
    chinese = "暂存服务器的部署密钥在每个月的第一个星期五由安娜轮换一次请大家注意"
    assert kept(hit(chinese), hit(f"{chinese}哦", "memory")) == [0]


@pytest.mark.parametrize(
    "other",
    [
        LONG.replace("is rotated", "is not rotated"),
        f"{LONG} 2",
        f"{LONG} by Lee",
        LONG.replace("on", "never"),
    ],
)
def test_another_number_a_name_or_a_negation_is_something_else(other: str) -> None:
    assert kept(hit(LONG), hit(other, "memory")) == [0, 1]


def test_no_more_are_chosen_than_are_wanted() -> None:
    assert kept(*(hit(f"Text {number}.") for number in range(5)), limit=3) == [0, 1, 2]


@given(dense=st.dictionaries(seqs, cosines), lexical=st.dictionaries(seqs, bm25s), alpha=alphas)
def test_a_fused_score_lies_between_0_and_1_and_the_floor_holds(
    dense: dict[int, float], lexical: dict[int, float], alpha: float
) -> None:
    fused = fuse(dense, lexical, alpha)
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in fused.values())
    above = {seq for seq, cosine in dense.items() if cosine >= DEFAULT_FLOOR}
    assert fused.keys() == above | lexical.keys()


@given(
    dense=st.dictionaries(seqs, cosines, min_size=1),
    lexical=st.dictionaries(seqs, bm25s),
    alpha=alphas,
    data=st.data(),
)
def test_who_is_better_on_both_sides_never_ranks_lower(
    dense: dict[int, float], lexical: dict[int, float], alpha: float, data: st.DataObject
) -> None:
    fused = fuse(dense, lexical, alpha)
    embedded = sorted(fused.keys() & dense.keys())
    if not embedded:
        return
    one, two = data.draw(st.sampled_from(embedded)), data.draw(st.sampled_from(embedded))
    if dense[one] >= dense[two] and lexical.get(one, 0) >= lexical.get(two, 0):
        assert fused[one] >= fused[two] - 1e-9


@given(lexical=st.dictionaries(seqs, bm25s, min_size=1), alpha=alphas)
def test_without_vectors_words_alone_rank(lexical: dict[int, float], alpha: float) -> None:
    fused = fuse({}, lexical, alpha)
    top = max(lexical.values())
    assert fused == pytest.approx({seq: score / top for seq, score in lexical.items()})


@given(dense=st.dictionaries(seqs, cosines, min_size=1), lexical=st.dictionaries(seqs, bm25s))
def test_the_ends_of_alpha_are_one_side_alone(
    dense: dict[int, float], lexical: dict[int, float]
) -> None:
    words, meaning = fuse(dense, lexical, 0.0), fuse(dense, lexical, 1.0)
    for seq in dense.keys() & lexical.keys():
        assert math.isclose(words[seq], lexical[seq] / max(lexical.values()))
    for seq in dense.keys() & meaning.keys():
        if dense[seq] == max(dense.values()):
            assert math.isclose(meaning[seq], 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit of Acme is 30 MB.", "The limit of Globex is 30 MB."),
        ("the limit of acme is 30 mb", "the limit of globex is 30 mb"),
        ("Ann likes tea", "Ben likes tea"),
        ("ann likes tea", "ben likes tea"),
        ("The limit of Firm1 is 30 MB.", "The limit of Firm17 is 30 MB."),
        ("Host host-a1 runs Debian.", "Host host-b1 runs Debian."),
        ("Write to a@acme.org first.", "Write to b@acme.org first."),
        ("The staging server runs Debian.", "The production server runs Debian."),
        ("Maria's sister is a nurse.", "Maria's brother is a nurse."),
        ("The limit is 30 MB.", "The limit is 40 MB."),
        ("The audit is on 2026-05-03.", "The audit is on 2026-06-03."),
        ("We meet on Monday.", "We meet on Thursday."),
        ("She has two cats.", "She has three cats."),
        ("Ann likes tea.", "Ann doesn't like tea."),
        ("Der Laden von Anna ist offen.", "Der Laden von Hanna ist offen."),
        ("Das Büro ist montags zu.", "Das Büro ist montags nicht zu."),
        ("Die Frist endet im Mai.", "Die Frist endet im Juni."),
        ("阿里的上传限制是30MB", "腾讯的上传限制是30MB"),
        ("张伟住在合肥", "张强住在合肥"),
        ("我们要等Acme", "我们要等Globex"),
        ("银行周日开门", "银行周日不开门"),
        ("仓库有两个门", "仓库有三个门"),
    ],
)
def test_what_names_another_subject_or_denies_says_something_else(one: str, other: str) -> None:
    assert not can_say_the_same(one, other)
    assert not can_say_the_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit of Acme is 30 MB.", "Acme's limit is 30 MB."),
        ("The user prefers dark mode.", "The user likes dark mode"),
        ("The invoices of Acme were sent.", "Acme sent the invoices."),
        ("Ann isn't in on Monday.", "Ann is not in on Monday."),
        ("Das Limit von Acme ist 30 MB.", "Acmes Limit beträgt 30 MB."),
        ("Der Nutzer bevorzugt Tee.", "Der Nutzer mag Tee"),
        ("阿里的上传限制是30MB", "阿里上传限制为 30 MB。"),
    ],
)
def test_another_wording_of_the_same_can_say_the_same(one: str, other: str) -> None:
    assert can_say_the_same(one, other)
    assert can_say_the_same(other, one)


@given(text=st.text(max_size=60))
def test_any_text_can_say_the_same_as_itself(text: str) -> None:
    assert can_say_the_same(text, text)
