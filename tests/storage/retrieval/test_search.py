import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.contexts.filters import Selection, compile_filter
from storage.index.embedders.base import DEFAULT_FLOOR
from storage.index.embedders.bundled import MODEL_FILE, TOKENIZER_FILE, MiniLMEmbedder
from storage.index.embedding_models import passage
from storage.index.lexical import UserIndex
from storage.library import Library, Shelf
from storage.models import Identity, NewContext, SearchFilter, SearchHit, TimeRange
from storage.retrieval import search as search_module
from storage.retrieval.ranking import CANDIDATES
from storage.tokenize import tokenize

ANN = Identity(user_id="ann")
ANY = SearchFilter()

TEXTS = {
    "rice": "Boil the grains in salted water for twelve minutes, then let them steam.",
    "heron": "The grey heron stands still in shallow water and waits for fish.",
    "court": "The judge adjourned the hearing until the witness could be found.",
    "tyre": "To mend a punctured bicycle wheel, lever the tube out and patch it.",
    "rates": "The central bank raised interest rates by half a point.",
    "zh": "苍鹭站在浅水里等待鱼儿游过来。",
    "zh2": "中央银行把利率提高了半个百分点。",
}


@pytest.fixture
def shelved(
    library_of: Callable[..., Library], minilm: MiniLMEmbedder, world: ModuleType
) -> Library:
    """The texts on the real embedder, not embedded yet."""
    library = library_of(minilm)
    for raw_id, text in TEXTS.items():
        library.shelf(ANN).add(world.new_document(raw_id, text))
    return library


def _found(library: Library, query: str, **options: Any) -> dict[str, SearchHit]:
    hits = library.engine.search(ANN, query, ANY, options.pop("top_k", 10), **options).hits
    return {hit.context.raw_id: hit for hit in hits}


def _lexical(connection: sqlite3.Connection, query: str, seqs: Collection[int]) -> dict[int, float]:
    everything = Selection(connection, compile_filter(ANN, ANY))
    return UserIndex(connection, ANN.user_id).matches(tokenize(query), everything, 0, seqs)


def test_before_embedding_words_answer_and_the_result_says_so(shelved: Library) -> None:
    result = shelved.engine.search(ANN, "heron", ANY, 5)
    assert (result.mode, result.status.total, result.status.embedded) == ("lexical", 7, 0)
    assert not result.status.complete
    (hit,) = result.hits
    assert hit.context.raw_id == "heron"
    assert hit.dense is None
    assert hit.score == 1
    assert hit.lexical > 0


def test_after_embedding_meaning_answers_too(shelved: Library, world: ModuleType) -> None:
    assert _found(shelved, "Repairing a flat tyre on my bike").keys() == {"tyre"}
    assert _found(shelved, "preparing a side dish for supper") == {}
    world.drain(shelved)
    result = shelved.engine.search(ANN, "preparing a side dish for supper", ANY, 5)
    assert (result.mode, result.status.complete) == ("hybrid", True)
    assert result.hits[0].context.raw_id == "rice"
    assert result.hits[0].lexical == 0
    assert result.hits[0].matched_terms == ()


def test_a_text_that_is_not_embedded_yet_is_found_beside_those_that_are(
    shelved: Library, world: ModuleType
) -> None:
    world.drain(shelved)
    shelved.shelf(ANN).add(world.new_document("new", "A kingfisher dives for fish."))
    result = shelved.engine.search(ANN, "kingfisher", ANY, 5)
    assert (result.mode, result.status.total, result.status.embedded) == ("hybrid", 8, 7)
    assert result.hits[0].context.raw_id == "new"
    assert result.hits[0].dense is None


@pytest.mark.parametrize("query", ["heron fish water", "bank interest", "a wading bird", "judge"])
def test_every_hit_has_its_true_scores(shelved: Library, world: ModuleType, query: str) -> None:
    world.drain(shelved)
    hits = _found(shelved, query)
    assert hits
    embedder = shelved.models.current()[1]
    vector = embedder.embed_query(query)
    with shelved.database.read() as connection:
        seq_of = {
            (row[0], row[1]): row[2]
            for row in connection.execute(
                "SELECT x.id, c.position, c.seq FROM chunks c"
                " JOIN contexts x ON x.seq = c.context_seq"
            )
        }
        lexical = _lexical(connection, query, seq_of.values())
    for hit in hits.values():
        text = passage(hit.context.title, hit.chunk.heading, hit.chunk.content)
        cosine = float(embedder.embed_passages([text])[0] @ vector)
        assert hit.dense == pytest.approx(cosine, abs=0.03)  # the batch moves a vector a little
        assert hit.lexical == pytest.approx(
            lexical.get(seq_of[hit.context.id, hit.chunk.position], 0.0)
        )
        assert 0 <= hit.score <= 1


def test_true_scores_reach_hits_that_only_the_other_side_found(
    library: Library, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "CANDIDATES", 3)
    world.add_many(library, "a", 60)
    world.drain(library)
    query = world.content_of("a", 30)
    vector = library.models.current()[1].embed_query(query)
    hits = library.engine.search(ANN, query, ANY, 100).hits
    assert 3 <= len(hits) <= 6
    with library.database.read() as connection:
        rows = connection.execute("SELECT position, seq FROM chunks").fetchall()
        lexical = _lexical(connection, query, [row[1] for row in rows])
    seq_of = dict(rows)
    for hit in hits:
        expected = float(
            library.models.current()[1].embed_passages([hit.chunk.content])[0] @ vector
        )
        assert hit.dense == pytest.approx(expected, abs=1e-5)
        assert hit.lexical == pytest.approx(lexical.get(seq_of[hit.chunk.position], 0.0))


def test_the_index_and_the_exact_comparison_agree(
    library: Library, shelf: Shelf, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_many(library, "a", 2300)
    world.add_many(library, "b", 30, Identity(user_id="bob"))
    world.drain(library)
    for number in (0, 999, 2299):
        query = world.content_of("a", number)
        by_index = shelf.search(query, ANY, 10).hits
        with monkeypatch.context() as exactly:
            exactly.setattr(search_module, "EXACT_LIMIT", 10**9)
            exact = shelf.search(query, ANY, 10).hits
        assert [(hit.chunk, hit.dense) for hit in by_index] == [
            (hit.chunk, hit.dense) for hit in exact
        ]
        assert by_index[0].chunk.content == query


def test_what_the_index_has_not_heard_of_is_compared_all_the_same(
    library: Library, world: ModuleType
) -> None:
    world.add_many(library, "a", 2100)
    world.drain(library)
    # Of stop words alone: the words of the query cannot find it.
    library.shelf(ANN).add(world.new_document("new", "of the and", title=""))
    world.embed(library)
    assert library.vectors.count(1, "ann") == 2100
    hits = library.engine.search(ANN, "of the and", ANY, 1).hits
    assert [hit.context.raw_id for hit in hits] == ["new"]
    library.shelf(ANN).delete_document("text", "new")
    hits = library.engine.search(ANN, "of the and", ANY, 100).hits
    assert {hit.context.raw_id for hit in hits} == {"a"}


def test_a_filter_that_leaves_few_is_exact(library: Library, world: ModuleType) -> None:
    world.add_many(library, "a", 2100)  # each nearer to "and", by being shorter
    rare = world.new_document("rare", "and by other words far away", title="")
    library.shelf(ANN).add(replace(rare, event_time=5.0))
    world.drain(library)
    vector = library.models.current()[1].embed_query("and")
    cosine = float(library.models.current()[1].embed_passages([rare.text])[0] @ vector)
    assert cosine > DEFAULT_FLOOR
    with library.database.read() as connection:
        (seq,) = connection.execute("SELECT max(seq) FROM chunks").fetchone()
    assert seq not in library.vectors.nearest(1, "ann", vector, 5 * CANDIDATES)
    few = SearchFilter(time_range=TimeRange(0, 10))
    (hit,) = library.engine.search(ANN, "and", few, 5).hits
    assert hit.context.raw_id == "rare"
    assert hit.dense == pytest.approx(cosine, abs=1e-5)


@pytest.mark.parametrize(
    "query",
    [
        "rust compiler borrow checker",
        "who won the 1998 world cup",
        "best pizza in Naples",
        "learn to play guitar",
    ],
)
def test_what_is_about_nothing_stored_finds_nothing(
    shelved: Library, world: ModuleType, query: str
) -> None:
    assert _found(shelved, query) == {}
    world.drain(shelved)
    assert _found(shelved, query) == {}


def test_a_chinese_query_finds_the_chinese_text(shelved: Library, world: ModuleType) -> None:
    for _ in range(2):  # by words alone, then with vectors of a model that reads no Chinese
        assert next(iter(_found(shelved, "苍鹭在水里"))) == "zh"
        assert next(iter(_found(shelved, "银行的利率"))) == "zh2"
        world.drain(shelved)


def test_the_matched_words_are_told_as_the_query_wrote_them(shelved: Library) -> None:
    hit = _found(shelved, "Waiting HERONS and unicorns")["heron"]
    assert hit.matched_terms == ("Waiting", "HERONS")


def test_alpha_chooses_between_words_and_meaning(shelved: Library, world: ModuleType) -> None:
    world.drain(shelved)
    by_words = shelved.engine.search(ANN, "water", ANY, 10, alpha=0.0)
    assert {hit.context.raw_id for hit in by_words.hits} == {"rice", "heron"}
    by_meaning = _found(shelved, "a wading bird", alpha=1.0)
    assert next(iter(by_meaning)) == "heron"
    scores = [hit.score for hit in by_meaning.values()]
    assert scores == sorted(scores, reverse=True)


def test_top_k_cuts_the_same_ranking(shelved: Library, world: ModuleType) -> None:
    world.drain(shelved)
    every = list(_found(shelved, "water bank judge"))
    for top_k in range(1, len(every) + 1):
        assert list(_found(shelved, "water bank judge", top_k=top_k)) == every[:top_k]


def test_without_a_query_the_newest_are_listed(shelved: Library, world: ModuleType) -> None:
    shelved.shelf(ANN).add(world.new_document("rice", "Rice again."))
    result = shelved.shelf(ANN).search(None, ANY, 3)
    assert result.mode == "listing"
    assert [hit.context.raw_id for hit in result.hits] == ["rice", "zh2", "zh"]


@pytest.mark.parametrize(
    "query", ["", " ", "the of and", '"', "\x00", "a" * 20_000, "NOT AND OR", "%_", "🦢", "\n"]
)
def test_an_odd_query_is_answered(shelved: Library, world: ModuleType, query: str) -> None:
    for _ in range(2):
        for hit in _found(shelved, query).values():
            assert 0 <= hit.score <= 1
        world.drain(shelved)


def test_where_the_embedder_fails_words_still_find_and_the_result_says_why(
    shelved: Library, world: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world.drain(shelved)
    for name in (MODEL_FILE, TOKENIZER_FILE):
        (tmp_path / name).write_bytes(b"no model")
    monkeypatch.setattr(shelved.models.current()[1], "embedder", MiniLMEmbedder(tmp_path))
    result = shelved.engine.search(ANN, "heron", ANY, 5)
    assert (result.mode, [hit.context.raw_id for hit in result.hits]) == ("lexical", ["heron"])
    assert "is damaged" in result.status.problem


def test_a_chinese_query_without_a_shared_word_finds_nothing(
    shelved: Library, world: ModuleType
) -> None:
    world.drain(shelved)
    assert _found(shelved, "煮米饭的方法") == {}


@pytest.mark.parametrize("query", ["🦆", "x" * 200])
def test_what_cannot_be_read_finds_no_text_that_cannot_be_read(
    library_of: Callable[..., Library], minilm: MiniLMEmbedder, query: str
) -> None:
    library = library_of(minilm)
    shelf = library.shelf(Identity())
    shelf.add(NewContext(raw_type="text", raw_id="a", title="", text="水壶不漏水"))
    while library.indexer.step():
        pass
    assert not shelf.search(query, SearchFilter(), 5).hits
    assert shelf.search("水壶", SearchFilter(), 5).hits


@pytest.fixture
def ask(
    library_of: Callable[..., Library], tmp_path: Path, world: ModuleType
) -> Callable[[Sequence[str], str], SearchHit]:
    """The best hit of a question among some texts, by words alone."""

    def best(texts: Sequence[str], question: str) -> SearchHit:
        library = library_of(world.HashEmbedder(), tmp_path / str(len(texts)))
        for number, text in enumerate(texts):
            library.shelf(ANN).add(world.new_document(str(number), text))
        return library.engine.search(ANN, question, SearchFilter(), 1, alpha=0.0).hits[0]

    return best


def test_the_words_of_a_chinese_question_count_and_hardly_what_joins_them(
    ask: Callable[[Sequence[str], str], SearchHit],
) -> None:
    question = "苍鹭吃的是什么鱼"
    others = [f"会议推迟到{month}月。" for month in range(1, 10)]
    assert ask(["苍鹭吃鱼。", *others], question).coverage > 0.6
    assert ask(["他吃的是面包。", *others, *others], question).coverage < 0.2


def test_what_a_hit_tells_hardly_depends_on_how_much_is_stored(
    ask: Callable[[Sequence[str], str], SearchHit],
) -> None:
    heron, question = "The grey heron waits for fish.", "Which fish does a heron wait for?"
    others = [f"The judge adjourned hearing {number} until the spring." for number in range(60)]
    alone, among = ask([heron], question), ask([heron, *others], question)
    assert among.lexical > 5 * alone.lexical
    assert among.told == pytest.approx(alone.told, rel=0.3)
