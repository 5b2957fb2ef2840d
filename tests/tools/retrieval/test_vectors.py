import logging
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from storage.catalog.catalog import Analyses
from storage.database import Database
from storage.errors import StorageUnavailableError
from tools.retrieval import SearchQuery, ToolIndex, ToolRecord
from tools.retrieval.vectors import DensePart

Vectors = NDArray[np.float32]


class Memory:
    """A cache that counts what it did not have."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.missed = 0

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found = {key: self.values[key] for key in keys if key in self.values}
        self.missed += len(keys) - len(found)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        self.values.update(values)


class Broken(Memory):
    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:  # noqa: ARG002  # it fails
        raise StorageUnavailableError("no disk")

    def put(self, values: Mapping[bytes, bytes]) -> None:  # noqa: ARG002  # it fails
        raise StorageUnavailableError("no disk")


class Failing:
    """A model that cannot be had."""

    model_id = "failing"
    unread = ""
    floor = 0.25

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise RuntimeError(f"out of memory: {texts[0]}")

    def embed_query(self, text: str) -> Vectors:
        raise RuntimeError(f"out of memory: {text}")

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        raise RuntimeError(f"out of memory: {text} {spans}")


def _empty(parts: Sequence[DensePart]) -> list[DensePart]:
    return [DensePart(part.embedder, part.weight, part.text) for part in parts]


def test_a_restart_makes_nothing_again(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    cache = Memory()
    found = []
    for missed in (3 * len(tools), 0):
        cache.missed = 0
        index = ToolIndex(cache=cache, embedders=_empty(parts))
        index.add_tools(tools)
        index.build_index()
        assert cache.missed == missed
        assert set(index.coverage.values()) == {1.0}
        found.append(index.search(SearchQuery(query_text="how hot will it be outdoors")))
    assert found[0][0].tool == found[1][0].tool
    assert found[0][0].score == pytest.approx(found[1][0].score, abs=0.005)


def test_the_record_keeps_what_was_made(
    tmp_path: Path, tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    database = Database(tmp_path / "record.db")
    cache = Analyses(database)
    for _ in range(2):
        index = ToolIndex(cache=cache, embedders=_empty(parts))
        index.add_tools(tools)
        index.build_index()
        assert index.search(SearchQuery(query_text="rain"))[0].tool.name == "getCurrentWeather"
    database.close()


def test_what_is_kept_is_there_for_whoever_waits_for_it(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    cache = Memory()
    before = ToolIndex(cache=cache, embedders=_empty(parts))
    before.add_tools(tools)
    before.build_index()
    index = ToolIndex(cache=cache, embedders=_empty(parts))
    index.start()
    index.add_tools(tools)
    index.wait(0, 60)
    assert set(index.coverage.values()) == {1.0}
    assert index.share_filled == 1.0
    index.close()


def test_whoever_waits_has_the_quickest_part_and_waits_for_no_other(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    found, in_time = threading.Event(), []

    class Blocked(Failing):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            in_time.append(found.wait(30))
            return super().embed_passages(texts)

    index = ToolIndex(embedders=[parts[0], DensePart(Blocked(), 0.7, parts[1].text)])
    index.start()
    index.add_tools(tools)
    index.wait(60, 0)
    assert index.coverage == {parts[0].embedder.model_id: 1.0, "failing": 0.0}
    assert index.share_filled == 0.0
    assert index.search(SearchQuery(query_text="rain"))[0].tool.name == "getCurrentWeather"
    found.set()
    index.close()
    assert in_time == [True]


def test_a_broken_cache_costs_time_only(
    tools: list[ToolRecord], parts: tuple[DensePart, ...], caplog: pytest.LogCaptureFixture
) -> None:
    index = ToolIndex(cache=Broken(), embedders=parts)
    index.add_tools(tools)
    index.build_index()
    assert set(index.coverage.values()) == {1.0}
    assert "no disk" in caplog.text


def test_a_model_that_fails_leaves_the_rest(
    tools: list[ToolRecord], parts: tuple[DensePart, ...], caplog: pytest.LogCaptureFixture
) -> None:
    failing = DensePart(Failing(), 0.7, parts[1].text)
    index = ToolIndex(embedders=(failing, parts[0]))
    index.add_tools(tools)
    with caplog.at_level(logging.WARNING):
        index.build_index()
    assert index.coverage == {"failing": 0.0, parts[0].embedder.model_id: 1.0}
    assert "failing: out of memory" in caplog.text
    assert index.search(SearchQuery(query_text="rain"))[0].tool.name == "getCurrentWeather"


def test_a_model_that_fails_a_search_leaves_the_words(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    failing = DensePart(Failing(), 0.7, parts[1].text)
    index = ToolIndex(embedders=(failing,))
    index.add_tools(tools)
    failing.put(range(len(tools)), np.eye(len(tools), 8, dtype=np.float32))
    assert index.search(SearchQuery(query_text="rain"))[0].tool.name == "getCurrentWeather"


def test_a_tool_that_changes_while_it_is_read_gets_its_own_vector(
    tools: list[ToolRecord], parts: tuple[DensePart, ...]
) -> None:
    static = parts[0]
    index = ToolIndex(embedders=(static,))
    changed = tools[4].model_copy(update={"description": "Paints pictures"})

    class Slow(Failing):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            vectors = static.embedder.embed_passages(texts)
            if index.get_tool("calculator") != changed:
                index.add_tool(changed)
            return vectors

    index = ToolIndex(embedders=(DensePart(Slow(), 1.0, static.text),))
    index.add_tools(tools)
    index.build_index()
    part = index._parts[0]
    expected = static.embedder.embed_query(static.text(changed))
    assert part.cosines(expected, len(tools))[0].max() == pytest.approx(1.0)


def test_an_index_that_is_started_can_be_closed_at_any_moment() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns at every step
    closing = threading.Thread(target=_start_and_close, daemon=True)
    closing.start()
    closing.join(60)
    sys.setswitchinterval(before)
    assert not closing.is_alive()


def _start_and_close() -> None:
    for _ in range(2_000):
        index = ToolIndex(embedders=())
        index.start()
        index.close()
