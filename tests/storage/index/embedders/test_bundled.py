import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders import bundled
from storage.index.embedders.bundled import (
    NICENESS,
    InferenceThreads,
    LazyLoader,
    MiniLMEmbedder,
    failures_of,
    processors,
)
from storage.retrieval.confidence import CrossEncoder

PATIENCE = 60.0
"""Seconds after which a test that waits has failed."""


class Watched:
    """A session that counts how many of its kind run at once."""

    lock = threading.Lock()
    running = most = 0
    runners: ClassVar[set[str]] = set()

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, *arguments: Any) -> Any:
        with Watched.lock:
            Watched.running += 1
            Watched.most = max(Watched.most, Watched.running)
            Watched.runners.add(threading.current_thread().name)
        try:
            return self._session.run(*arguments)
        finally:
            with Watched.lock:
                Watched.running -= 1


def _watched(model: Any) -> Callable[[], tuple[Any, Watched]]:
    tokenizer, session = model()
    return lambda: (tokenizer, Watched(session))


def test_searches_imports_and_readings_share_as_many_threads_as_there_are_processors() -> None:
    embedder, reader = MiniLMEmbedder(), CrossEncoder()
    embedder._model = _watched(embedder._model)  # type: ignore[assignment]
    reader._model = _watched(reader._model)  # type: ignore[assignment]

    def use(number: int) -> None:
        embedder.embed_query(f"heron {number}")
        embedder.embed_spans(f"heron {number}", [(0, 5)])
        embedder.embed_passages([f"heron {number} {each}" for each in range(4)])
        reader.read("heron?", [f"heron {number} {each}" for each in range(4)])

    with ThreadPoolExecutor(20) as callers:
        list(callers.map(use, range(20)))
    assert 0 < Watched.most <= len(Watched.runners) <= processors()
    assert all(name.startswith("toolcrib-inference") for name in Watched.runners)


def test_all_threads_are_used_and_no_more() -> None:
    threads = InferenceThreads(3)
    together = threading.Barrier(3, timeout=PATIENCE)
    names: set[str] = set()

    def run() -> None:
        names.add(threading.current_thread().name)
        together.wait()  # three run at once, or none ever ends

    with ThreadPoolExecutor(10) as callers:
        list(callers.map(lambda _: threads.run([run] * 3), range(10)))
    assert len(names) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, only processes have priorities")
def test_models_leave_the_processor_to_the_thread_that_answers_calls() -> None:
    found: list[int] = []
    threads = InferenceThreads(1)
    threads.run([lambda: found.append(os.getpriority(os.PRIO_PROCESS, 0))] * 2)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert found == [min(ours + NICENESS, 19)] * 2


def test_a_search_goes_before_passages_that_wait_and_a_single_text_before_both() -> None:
    threads = InferenceThreads(1)
    begun, go, passages, search, single = (threading.Event() for _ in range(5))
    order: list[str] = []

    def block() -> None:
        begun.set()
        assert go.wait(PATIENCE)

    def queued(names: list[str], done: threading.Event) -> Iterator[Callable[[], None]]:
        yield from (lambda name=name: order.append(name) for name in names)
        done.set()

    with ThreadPoolExecutor(4) as callers:
        calls = [callers.submit(threads.run, [block], in_background=True)]
        assert begun.wait(PATIENCE)
        waiting = queued(["p1", "p2", "p3"], passages)
        calls.append(callers.submit(threads.run, waiting, in_background=True))
        assert passages.wait(PATIENCE)
        calls.append(callers.submit(threads.run, queued(["s1", "s2"], search)))
        assert search.wait(PATIENCE)
        calls.append(callers.submit(threads.run, queued(["one"], single), first=True))
        assert single.wait(PATIENCE)
        go.set()
        for call in calls:
            call.result(PATIENCE)
    assert order == ["one", "s1", "s2", "p1", "p2", "p3"]


def test_what_a_task_raises_reaches_its_caller_and_no_other() -> None:
    threads = InferenceThreads(2)
    ran: list[int] = []

    def fail() -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        threads.run([fail, lambda: ran.append(1)])
    threads.run([lambda: ran.append(2)])
    threads.run([])
    assert ran == [1, 2]


def test_a_model_that_nothing_uses_is_unloaded_and_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("storage.index.embedders.bundled.IDLE_SECONDS", 0.01)

    class Model:
        pass

    loader, gone = LazyLoader(Model, "it"), threading.Event()
    for _ in range(2):
        weakref.finalize(loader(), gone.set)
        assert gone.wait(PATIENCE)
        gone.clear()


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
        hasty.setattr(bundled, "LOAD_SECONDS", 0.01)
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
