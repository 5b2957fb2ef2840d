"""Our BM25 against rank-bm25's.

Both weigh a term by f * (k1 + 1) / (f + k1 * (1 - b + b * D / avgdl)). Their inverse document
frequencies differ, so the oracle is given ours; and rank-bm25 counts a term as often as the query
repeats it, so the queries repeat none.
"""

import math
import random
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from storage.contexts.contexts import ContextRepository
from storage.contexts.filters import Selection, compile_filter
from storage.contexts.ingestion import PreparedChunk
from storage.database import Database
from storage.index.lexical import MAX_QUERY_TERMS, UserIndex, count_chunks
from storage.models import Identity, NewContext, SearchFilter
from storage.tokenize import tokenize

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")


def _store(
    database: Database, texts: Sequence[str], title: str = "", identity: Identity = ANN
) -> None:
    chunks = [
        PreparedChunk(
            heading="",
            content=text,
            start=0,
            title_terms=tuple(tokenize(title)),
            body_terms=tuple(tokenize(text)),
        )
        for text in texts
    ]
    document = NewContext(
        raw_type="text",
        raw_id=title,
        title=title,
        text="",
        markdown=False,
        media_type="text/plain",
        sha256="",
    )
    ContextRepository(database).replace_document(identity, document, chunks)


def _matches(
    database: Database,
    terms: Sequence[str],
    limit: int = 10_000,
    also: Collection[int] = (),
    owner: Identity = ANN,
) -> dict[int, float]:
    with database.read() as connection:
        everything = Selection(connection, compile_filter(owner, SearchFilter()))
        return UserIndex(connection, owner.user_id).matches(terms, everything, limit, also)


def _contents(database: Database) -> dict[int, str]:
    with database.read() as connection:
        return dict(connection.execute("SELECT seq, content FROM chunks").fetchall())


def _found(database: Database, query: str, owner: Identity = ANN) -> dict[str, float]:
    """Text → score, best first."""
    contents = _contents(database)
    scores = _matches(database, tokenize(query), owner=owner)
    return {contents[seq]: score for seq, score in scores.items()}


def _holders(texts: list[str]) -> Counter[str]:
    return Counter(term for text in texts for term in set(tokenize(text)))


def _paragraphs() -> list[str]:
    """The project's own prose: real text, a paragraph a text."""
    folder = Path(__file__).parents[3]
    patterns = ("*.md", "docs/*.md", "storage/**/*.py")
    files = sorted(file for pattern in patterns for file in folder.glob(pattern))
    texts = [text for path in files for text in path.read_text(encoding="utf-8").split("\n\n")]
    return [text for text in dict.fromkeys(texts) if len(tokenize(text)) > 5]


def test_scores_and_ranks_agree_with_rank_bm25_on_real_text(database: Database) -> None:
    texts = _paragraphs()
    assert len(texts) > 200
    _store(database, texts)
    oracle = BM25Okapi([tokenize(text) for text in texts], k1=1.2, b=0.75)
    chance = random.Random(7)  # noqa: S311  # queries, not secrets
    oracle.idf = {  # rank-bm25's own is 0 for a term in half of the texts, and below it negative
        term: math.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
        for term, holders in _holders(texts).items()
    }
    contents = _contents(database)
    for _ in range(60):
        words = tokenize(chance.choice(texts))
        terms = list(dict.fromkeys(chance.choices(words, k=chance.randint(1, 5))))
        expected = {
            text: score
            for text, score in zip(texts, oracle.get_scores(terms), strict=True)
            if score > 0
        }
        found = {contents[seq]: score for seq, score in _matches(database, terms).items()}
        assert found == pytest.approx(expected)
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_term_in_every_text_is_worth_little_beside_one_in_a_single_text(
    database: Database,
) -> None:
    _store(database, [f"common word{number}" for number in range(10)])
    common, rare = _found(database, "common"), _found(database, "word3")
    assert len(common) == 10
    assert 0 < 20 * max(common.values()) < rare["common word3"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_word_counts_in_a_young_library_too(database: Database, count: int) -> None:
    _store(database, [f"heron{number} lake" for number in range(count)])
    assert _found(database, "heron0")["heron0 lake"] > 0.2


def test_a_title_counts_twice_and_lifts_every_chunk_under_it(database: Database) -> None:
    _store(database, ["about something"], title="kestrel")
    _store(database, ["about a kestrel"], title="something")
    for number in range(5):
        _store(database, ["about nothing"], title=f"other{number}")
    scores = _found(database, "kestrel")
    assert list(scores) == ["about something", "about a kestrel"]


def test_given_chunks_are_scored_as_in_the_search(database: Database) -> None:
    texts = [f"heron number{number} {'heron ' * (number % 4)} lake" for number in range(50)]
    _store(database, [*texts, *(f"filler{number}" for number in range(60))])
    terms = tokenize("heron lake")
    best, every = _matches(database, terms), list(_contents(database))
    assert _matches(database, terms, 0, every) == pytest.approx(best)
    some = every[5:20]
    assert _matches(database, terms, 0, some) == {seq: best[seq] for seq in some}
    assert list(_matches(database, terms, 7).items()) == list(best.items())[:7]


def test_no_terms_and_no_chunks_find_nothing(database: Database) -> None:
    assert _matches(database, ["heron"]) == {}
    _store(database, ["heron"])
    assert _matches(database, []) == {}
    assert _matches(database, [], 5, [1]) == {}
    assert _matches(database, ["heron"], 0) == {}
    assert _matches(database, ["heron"], 5, [1, 7]) == _matches(database, ["heron"])


def test_of_equal_scores_the_oldest_come_first(database: Database) -> None:
    _store(database, ["heron"] * 20)
    assert list(_matches(database, ["heron"], 5)) == sorted(_contents(database))[:5]


def test_a_pasted_text_is_cut_and_its_first_terms_count(database: Database) -> None:
    _store(database, ["first", "last"])
    query = " ".join(["first", *(f"w{number}" for number in range(MAX_QUERY_TERMS)), "last"])
    assert list(_found(database, query)) == ["first"]
    assert list(_found(database, "first " * 1000 + "last")) == ["first", "last"]


def test_users_are_apart(database: Database) -> None:
    _store(database, ["heron of ann"])
    _store(database, ["heron of bob"], identity=BOB)
    assert list(_found(database, "heron")) == ["heron of ann"]
    assert list(_found(database, "heron", BOB)) == ["heron of bob"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=200))
def test_no_query_is_a_syntax_error(database: Database, query: str) -> None:
    _found(database, query)


@pytest.mark.parametrize(
    "query",
    ['"', "a AND", "NEAR(a b)", "title:x", "*", "-x", "a OR (b", "{title body}: x", "^a", "' OR 1"],
)
def test_the_query_language_of_the_index_is_plain_text(database: Database, query: str) -> None:
    _store(database, ["nothing of it"])
    assert _found(database, query) == {}


def test_what_others_keep_does_not_change_a_score(database: Database) -> None:
    _store(database, ["heron lake", "lake"])
    alone = _found(database, "heron lake")
    _store(database, ["heron", "heron mouse"], identity=BOB)
    assert _found(database, "heron lake") == alone


def test_a_group_is_scored_as_one_text(database: Database) -> None:
    _store(database, ["heron lake", "lake lake mud", "reed", "heron heron reed", "", "mud"])
    seqs = sorted(_contents(database))
    groups = {10: seqs[:2], 20: seqs[2:4], 30: seqs[4:]}
    with database.read() as connection:
        index = UserIndex(connection, "ann")
        scores = index.group_scores(["heron", "lake", "heron"], groups)
        assert index.group_scores(["heron"], {}) == {}
    idf = math.log1p((6 - 2 + 0.5) / 2.5)  # both words stand in two chunks of six
    lengths = {10: 5, 20: 4, 30: 1}
    average = sum(lengths.values()) / 3

    def weight(count: int, group: int) -> float:
        return count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[group] / average))

    assert scores == pytest.approx(
        {10: idf * (weight(1, 10) + weight(3, 10)), 20: idf * weight(2, 20), 30: 0.0}
    )


def test_chunks_are_counted(database: Database) -> None:
    _store(database, ["heron", "lake"])
    _store(database, ["mud"], identity=BOB)
    with database.write() as connection:
        assert count_chunks(connection, "ann") == 2
        connection.execute("DELETE FROM contexts WHERE user_id = 'ann'")
        assert count_chunks(connection, "ann") == 0
        assert count_chunks(connection, "bob") == 1
