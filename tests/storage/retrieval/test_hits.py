from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from storage.library import Library
from storage.models import Identity, SearchFilter, SearchHit

ANN = Identity(user_id="ann")


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
