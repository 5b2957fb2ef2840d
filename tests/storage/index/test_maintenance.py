"""The index against rank-bm25 through additions, deletions and all that the maintenance does."""

import math
import sqlite3
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from storage.contexts import ingestion
from storage.contexts.contexts import ContextRepository
from storage.contexts.filters import Selection, compile_filter
from storage.contexts.ingestion import PreparedChunk, chunk_terms, prepare
from storage.database import Database
from storage.index import lexical, maintenance
from storage.index.lexical import Postings
from storage.models import Identity, NewContext, SearchFilter

ANY = SearchFilter()
WORDS = ("ant", "bee", "cow", "doe", "elk", "fox")

_numbers = count()
_texts = st.lists(st.sampled_from(WORDS), max_size=6)
_steps = st.one_of(
    st.tuples(st.just("add"), st.lists(_texts, min_size=1, max_size=4), _texts),
    st.tuples(st.just("delete"), st.integers(0, 20)),
    st.tuples(st.just("work"), st.integers(1, 6)),
    st.tuples(st.just("reset")),
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything happens with a handful of chunks that otherwise needs thousands."""
    for name, value in {
        "FOLD_CHUNKS": 3,
        "TIER_SEGMENTS": 2,
        "MERGE_CHUNKS": 2,
        "WASTE_BLOCKS": 2,
        "INDEX_CHUNKS": 2,
        "PURGE_SECONDS": -1,
    }.items():
        monkeypatch.setattr(maintenance, name, value)
    monkeypatch.setattr(maintenance, "BLOCK_POSTINGS", 3)


class _Shelf:
    """What one user was given, beside the record that should know it."""

    def __init__(self, database: Database, user_id: str = "") -> None:
        self.database = database
        self.user_id = user_id or f"user{next(_numbers)}"
        self.kept: dict[int, list[str]] = {}
        """The terms of each chunk by its seq, those of the title twice."""

    def add(self, texts: Sequence[Sequence[str]], title: Sequence[str] = ()) -> None:
        chunks = [
            PreparedChunk(
                heading="",
                content=" ".join(text),
                start=0,
                title_terms=tuple(title),
                body_terms=tuple(text),
            )
            for text in texts
        ]
        new = NewContext(title=" ".join(title), raw_type="text", raw_id=f"{next(_numbers)}")
        ContextRepository(self.database).append(Identity(self.user_id), new, chunks)
        with self.database.read() as connection:
            seqs = connection.execute(
                "SELECT seq FROM chunks WHERE user_id = ? ORDER BY seq DESC LIMIT ?",
                (self.user_id, len(texts)),
            ).fetchall()
        for row, text in zip(reversed(seqs), texts, strict=True):
            self.kept[row[0]] = [*title, *title, *text]

    def delete(self, number: int) -> None:
        if self.kept:
            seq = sorted(self.kept)[number % len(self.kept)]
            del self.kept[seq]
            with self.database.write() as connection:
                connection.execute("DELETE FROM chunks WHERE seq = ?", (seq,))

    def found(self, terms: Sequence[str]) -> dict[int, float]:
        with self.database.read() as connection:
            everything = Selection(connection, compile_filter(Identity(self.user_id), ANY))
            return lexical.UserIndex(connection, self.user_id).matches(terms, everything, 1000)

    def expected(self, terms: Sequence[str]) -> dict[int, float]:
        """What rank-bm25 says, with our inverse document frequencies."""
        if not any(self.kept.values()):
            return {}
        oracle = BM25Okapi(list(self.kept.values()), k1=1.2, b=0.75)
        total = len(self.kept)
        for word in WORDS:
            holders = sum(word in text for text in self.kept.values())
            oracle.idf[word] = math.log1p((total - holders + 0.5) / (holders + 0.5))
        scores = zip(self.kept, oracle.get_scores(terms), strict=True)
        return {seq: score for seq, score in scores if score > 0}

    def check(self) -> None:
        for terms in (WORDS, WORDS[:2], *((word,) for word in WORDS)):
            assert self.found(terms) == pytest.approx(self.expected(terms))
        with self.database.read() as connection:
            assert lexical.count_chunks(connection, self.user_id) == len(self.kept)


def _work(database: Database, times: int = 1000) -> None:
    for _ in range(times):
        if not maintenance.work(database):
            return


def _rows(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608  # our own names


def _waits_for_indexing(database: Database) -> bool:
    with database.read() as connection:
        return _rows(connection, "lexical_todo") > 0


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(_steps, max_size=25))
def test_scores_agree_with_rank_bm25_whatever_happened(
    database: Database, small: None, steps: list[tuple[object, ...]]
) -> None:
    shelf = _Shelf(database)
    for what, *given_ in steps:
        if what == "add":
            shelf.add(*given_)  # type: ignore[arg-type]  # as the strategy made them
        elif what == "delete":
            shelf.delete(*given_)  # type: ignore[arg-type]  # as the strategy made them
        elif what == "work":
            _work(database, *given_)  # type: ignore[arg-type]  # as the strategy made them
        else:
            with database.write() as connection:
                maintenance.reset(connection)
        if not _waits_for_indexing(database):
            shelf.check()
    _work(database)
    shelf.check()
    assert _postings(database, shelf.user_id) == {
        (seq, lexical.hash_term(word), text.count(word))
        for seq, text in shelf.kept.items()
        for word in text
    }
    with database.read() as connection:
        assert not maintenance.has_work(connection)
        for table, of in (("lexical_blocks", "segment_seq"), ("lexical_segments", "seq")):
            left = connection.execute(
                f"SELECT count(*) FROM {table} WHERE {of} NOT IN"  # noqa: S608  # our own names
                " (SELECT seq FROM lexical_segments WHERE live)"
            )
            assert left.fetchone()[0] == 0


def _postings(database: Database, user_id: str) -> set[tuple[int, int, int]]:
    """Every posting of a user: chunk, term and how often."""
    with database.read() as connection:
        fresh, held = lexical.read_fresh(connection, user_id)
        parts = [(fresh, held)]
        for segment, chunks in lexical.read_segments(connection, user_id).items():
            whole = maintenance.read_segment(connection, segment, -(2**63), 2**63 - 1)
            parts.append((chunks, whole))
    return {
        (int(chunks.seqs[place]), int(term), int(number))
        for chunks, held in parts
        for term, place, number in zip(held.terms, held.places, held.counts, strict=True)
    }


def test_many_chunks_end_in_few_segments(database: Database, small: None) -> None:
    shelf = _Shelf(database)
    for _ in range(30):
        shelf.add([WORDS] * 3)
        _work(database)
    with database.read() as connection:
        assert _rows(connection, "lexical_fresh") == 0
        assert _rows(connection, "lexical_segments") <= 5  # 90 chunks, doubling from 3
    shelf.check()


def test_a_deleted_chunk_leaves_its_segment_when_its_time_has_come(
    database: Database, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PURGE_SECONDS", 3600)
    shelf = _Shelf(database)
    shelf.add([["ant", f"w{number}"] for number in range(60)])
    _work(database)
    shelf.delete(0)
    assert not maintenance.work(database)
    shelf.check()
    assert len(_postings(database, shelf.user_id)) == 120
    with database.write() as connection:
        connection.execute("UPDATE lexical_dead SET time = time - 3601")
    _work(database)
    assert len(_postings(database, shelf.user_id)) == 118
    shelf.check()


def test_many_deletions_are_purged_at_once(
    database: Database, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PURGE_SECONDS", 3600)
    shelf = _Shelf(database)
    shelf.add([["ant"]] * 60)
    _work(database)
    for _ in range(6):
        shelf.delete(7)
    _work(database)
    assert len(_postings(database, shelf.user_id)) == 54


def test_one_user_costs_another_nothing(database: Database, small: None) -> None:
    ann, bob = _Shelf(database), _Shelf(database)
    ann.add([WORDS] * 10)
    bob.add([WORDS[:2]] * 10)
    _work(database)
    bob.delete(3)
    ann.check()
    bob.check()
    assert ann.found(["ant"]).keys().isdisjoint(bob.found(["ant"]))


def test_a_merge_that_died_leaves_no_trace(
    database: Database, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = _Shelf(database)
    shelf.add([WORDS] * 12)
    write, written = maintenance.write_postings, count()

    def dying(connection: sqlite3.Connection, segment_seq: int, held: Postings) -> None:
        if next(written) == 5:
            raise KeyboardInterrupt
        write(connection, segment_seq, held)

    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "write_postings", dying)
        with pytest.raises(KeyboardInterrupt):
            _work(database)
    with database.read() as connection:
        assert _rows(connection, "lexical_segments WHERE live = 0") == 1
    shelf.check()
    _work(database)
    shelf.check()
    with database.read() as connection:
        assert _rows(connection, "lexical_segments WHERE live = 0") == 0


def test_a_reset_in_the_middle_of_a_merge_wins(
    database: Database, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = _Shelf(database)
    shelf.add([WORDS] * 12)
    write, written = maintenance.write_postings, count()

    def resetting(connection: sqlite3.Connection, segment_seq: int, held: Postings) -> None:
        if next(written) == 5:
            maintenance.reset(connection)
        write(connection, segment_seq, held)

    monkeypatch.setattr(maintenance, "write_postings", resetting)
    _work(database)
    shelf.check()


def test_a_chunk_deleted_while_it_is_indexed_does_not_come_back(
    database: Database, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = _Shelf(database)
    shelf.add([["ant"], ["bee"]])
    with database.write() as connection:
        maintenance.reset(connection)

    def deleting(*args: object) -> object:
        shelf.delete(0)
        return chunk_terms(*args)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(ingestion, "chunk_terms", deleting)
    _work(database)
    assert shelf.kept == {}
    shelf.check()
    with database.read() as connection:
        assert _rows(connection, "lexical_dead") == 0


def test_a_chunk_is_indexed_anew_as_it_was(database: Database, small: None) -> None:
    new = NewContext(
        title="Herons",
        text="They stand still.\n\n" * 200,
        summary="A wading bird",
        keywords=("ornithology",),
    )
    chunks = prepare(new)
    ContextRepository(database).append(Identity("ann"), new, chunks)
    before = _postings(database, "ann")
    assert len(chunks) > 1
    with database.write() as connection:
        maintenance.reset(connection)
    assert _postings(database, "ann") == set()
    _work(database)
    assert _postings(database, "ann") == before
