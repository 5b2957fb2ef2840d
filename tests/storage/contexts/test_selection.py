from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from storage.contexts import filters
from storage.contexts.contexts import insert_whole
from storage.contexts.filters import Selection, compile_filter
from storage.contexts.ingestion import PreparedChunk
from storage.database import Database, View
from storage.models import Identity, NewContext, SearchFilter, TimeRange

ANN = Identity(user_id="ann")
COUNT = 400
FILTERS = {
    "everything": SearchFilter(cards=True),
    "nothing": SearchFilter(raw_types=("none",)),
    "few": SearchFilter(time_range=TimeRange(7, 9)),
    "some": SearchFilter(time_range=TimeRange(0, 99)),
    "most": SearchFilter(time_range=TimeRange(20, None)),
    "a rare name": SearchFilter(entities=("una",)),
    "a common name": SearchFilter(entities=("ole",)),
    "one name or the other": SearchFilter(entities=("una", "ole")),
    "a name and a time": SearchFilter(entities=("ole",), time_range=TimeRange(0, 99)),
}

Seqs = NDArray[np.int64]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Ann has a chunk for each second, between those of another; Una is in some, Ole in most."""
    database = Database(tmp_path_factory.mktemp("selection") / "toolcrib.db")
    piece = PreparedChunk(heading="", content="x", start=0, title_terms=(), body_terms=("x",))
    with database.write() as connection:
        for second in range(COUNT):
            new = NewContext(
                title="",
                raw_type="t",
                raw_id=f"{second}",
                event_time=float(second),
                entities=("Una",) * (second % 50 == 0) + ("Ole",) * (second % 5 > 0),
            )
            for owner in (ANN, Identity(user_id="bob")):
                insert_whole(View(connection, owner), new, [piece], 0.0)
    yield database
    database.close()


@pytest.fixture
def seqs(database: Database, monkeypatch: pytest.MonkeyPatch) -> Seqs:
    """Ann's chunks, oldest first."""
    monkeypatch.setattr(filters, "SAMPLE", 10)
    with database.read() as connection:
        rows = connection.execute("SELECT seq FROM chunks WHERE user_id = 'ann' ORDER BY seq")
        return np.array([row[0] for row in rows])


def _fits(name: str, second: int) -> bool:
    return {
        "everything": True,
        "nothing": False,
        "few": 7 <= second <= 9,
        "some": second <= 99,
        "most": second >= 20,
        "a rare name": second % 50 == 0,
        "a common name": second % 5 > 0,
        "one name or the other": second % 50 == 0 or second % 5 > 0,
        "a name and a time": second % 5 > 0 and second <= 99,
    }[name]


def _fitting(name: str, seqs: Seqs) -> list[int]:
    return [int(seq) for second, seq in enumerate(seqs) if _fits(name, second)]


def _ranked(seqs: Seqs) -> Callable[[int], Seqs]:
    return lambda count: seqs[:count]


@pytest.mark.parametrize("name", FILTERS)
def test_it_is_what_the_filter_lets_through(database: Database, seqs: Seqs, name: str) -> None:
    with database.read() as connection:
        selection = Selection(connection, compile_filter(ANN, FILTERS[name]))
        assert selection.narrows == (name != "everything")
        assert selection.keep(seqs[::-1]).tolist() == _fitting(name, seqs)[::-1]
        assert selection.keep(seqs[:7]).tolist() == _fitting(name, seqs[:7])
        assert selection.members.tolist() == _fitting(name, seqs)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("count", [0, 1, 10, 60, 1000])
def test_the_best_that_fit_are_found_either_way(
    database: Database, seqs: Seqs, name: str, count: int
) -> None:
    shuffled = np.random.default_rng(5).permutation(seqs)
    fitting = set(_fitting(name, seqs))
    expected = [seq for seq in shuffled.tolist() if seq in fitting][:count]
    with database.read() as connection:
        selection = Selection(connection, compile_filter(ANN, FILTERS[name]))
        best = selection.first(_ranked(shuffled), count)
        if best is None:
            best = shuffled[np.isin(shuffled, selection.members)][:count]
    assert best.tolist() == expected


def test_where_few_fit_all_that_do_are_to_be_ranked(database: Database, seqs: Seqs) -> None:
    with database.read() as connection:
        few = Selection(connection, compile_filter(ANN, FILTERS["few"]))
        assert few.first(_ranked(seqs[::-1]), 5) is None
        assert few.members.tolist() == seqs[7:10].tolist()
        assert few.first(_ranked(few.members), 5) is None  # it is known now
        most = Selection(connection, compile_filter(ANN, FILTERS["most"]))
        found = most.first(_ranked(seqs[::-1]), 5)
        assert found is not None
        assert found.tolist() == seqs[:-6:-1].tolist()


@pytest.mark.parametrize(
    ("condition", "order", "plan"),
    [
        ("x.id IN ('a', 'b')", "", "(id=?)"),
        ("x.seq IN (SELECT context_seq FROM mentions)", "", "(rowid=?)"),
        ("x.raw_type = 'a' AND x.raw_id = 'b'", "update_time", "raw_id=?"),
        ("x.event_time > 5 AND x.event_time < 7", "update_time", "event_time<?"),
        ("x.device_id = 'a'", "", "device_id=?"),
        ("x.context_type = 'event'", "update_time", "contexts_by_update_time"),
    ],
)
def test_no_filter_goes_through_all_that_a_user_has(
    database: Database, condition: str, order: str, plan: str
) -> None:
    ordered = f" ORDER BY x.{order} LIMIT 9" if order else ""
    with database.read() as connection:
        (step, *_) = connection.execute(
            "EXPLAIN QUERY PLAN SELECT x.title FROM contexts x"  # noqa: S608  # our own conditions
            f" WHERE x.user_id = 'ann' AND {condition}{ordered}"
        ).fetchall()
    assert plan in step["detail"]


def test_a_chunk_that_is_gone_does_not_fit(database: Database, seqs: Seqs) -> None:
    with database.read() as connection:
        selection = Selection(connection, compile_filter(ANN, FILTERS["few"]))
        gone = np.array([10**6, seqs[8], 10**7])
        assert selection.keep(gone).tolist() == [seqs[8]]
