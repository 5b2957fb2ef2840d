"""A few texts in memory, against rank_bm25 over whole texts."""

import math
import random
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from storage.index.lexical import idf
from storage.library import Library
from storage.models import Identity, NewContext, NewEntry
from storage.retrieval.bm25 import REMEMBERED, SESSIONS, SmallCorpus
from storage.tokenize import tokenize

WORDS = st.sampled_from(["heron", "kite", "crane", "rail"])
TEXTS = st.lists(st.lists(WORDS, min_size=1), min_size=1)


@given(TEXTS, st.lists(WORDS))
def test_the_querys_terms_alone_give_the_scores_of_whole_texts(
    texts: list[list[str]], query: list[str]
) -> None:
    oracle = BM25Okapi(texts)
    holders = Counter(word for text in texts for word in set(text))
    oracle.idf = {word: idf(len(texts), count) for word, count in holders.items()}
    held = [{word: text.count(word) for word in query if word in text} for text in texts]
    corpus = SmallCorpus(held, lengths=[len(text) for text in texts])
    assert corpus.scores(query) == pytest.approx(oracle.get_scores(query).tolist())


def test_a_word_counts_in_a_corpus_of_one_text() -> None:
    assert SmallCorpus([{"heron": 1}]).scores(["heron"])[0] > 0


def test_texts_that_were_not_given_make_a_word_rarer() -> None:
    few, many = SmallCorpus([{"heron": 1}], total=2), SmallCorpus([{"heron": 1}], total=200)
    assert few.weight("heron") < many.weight("heron") < many.weight("unknown")


def test_nothing_is_scored_where_nothing_is_there() -> None:
    assert SmallCorpus([]).scores(["heron"]) == []


ANN = Identity("ann")
BOB = Identity("bob")


def said(text: str, **more: object) -> NewEntry:
    new = {"session_id": "s1", "kind": "call", "time": 1.0, "action": "bash", "said": text}
    return NewEntry(**{**new, **more})  # type: ignore[arg-type]  # fields by name


def word(number: int) -> str:
    """A word of letters alone: what stands beside digits is found by its parts too."""
    return "zq" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}") + "x"


def found(library: Library, query: str, session: str = "s1") -> list[str]:
    return [entry.said for entry, _ in library.recent.search(ANN, session, query, 100)]


def test_entries_are_found_by_their_words_and_scored_by_their_share(library: Library) -> None:
    for text in ("the harbour of Genoa", "the harbour", "a kettle"):
        library.entries.record(ANN, said(text))
    hits = library.recent.search(ANN, "s1", "harbours in Genoa", 10)
    assert [entry.said for entry, _ in hits] == ["the harbour of Genoa", "the harbour"]
    assert hits[0][1] == pytest.approx(1.0)
    assert 0 < hits[1][1] < 0.5  # the word that more of them have weighs less
    assert library.recent.search(ANN, "s1", "harbour", 1)[0][0].said == "the harbour"
    assert found(library, "submarine") == found(library, "") == found(library, "the") == []
    assert found(library, "bash") == ["a kettle", "the harbour", "the harbour of Genoa"]


def test_a_word_that_no_entry_has_lowers_every_score(library: Library) -> None:
    library.entries.record(ANN, said("the harbour"))
    ((_, score),) = library.recent.search(ANN, "s1", "harbour submarine", 10)
    assert 0 < score < 0.5


def test_a_search_sees_its_own_session_and_user_alone(library: Library) -> None:
    library.entries.record(ANN, said("mine"))
    library.entries.record(ANN, said("other mine", session_id="s2"))
    library.entries.record(BOB, said("bobs mine"))
    assert found(library, "mine") == ["mine"]
    assert found(library, "mine", "s3") == []


def test_recalls_are_not_found(library: Library) -> None:
    library.entries.record(ANN, said("kite"))
    before = library.recent.state(ANN, "s1")
    library.entries.record(ANN, said("kite again", is_recall=True))
    assert library.recent.state(ANN, "s1") == before
    assert found(library, "kite") == ["kite"]


def test_only_the_last_entries_are_found(library: Library) -> None:
    library.entries.record_all([(ANN, said(f"{word(n)} kite")) for n in range(REMEMBERED + 5)])
    assert len(library.recent.search(ANN, "s1", "kite", 1_000)) == REMEMBERED
    assert found(library, word(4)) == []
    library.entries.record(ANN, said("kite last"))
    assert found(library, word(5)) == []
    assert found(library, "last") == ["kite last"]


def test_what_is_new_is_found_at_once_and_the_state_grows(library: Library) -> None:
    states = [library.recent.state(ANN, "s1")]
    for number in range(5):
        library.entries.record(ANN, said(word(number)))
        assert found(library, word(number)) == [word(number)]
        states.append(library.recent.state(ANN, "s1"))
    assert states == sorted(set(states))


def test_what_is_forgotten_is_gone_at_once_and_the_state_grows(library: Library) -> None:
    context = library.shelf(ANN).add(NewContext(title="one", text="a text")).context
    library.entries.record(ANN, said("blank kite", context_ids=(context.id,)))
    seq = library.entries.record(ANN, said("deleted kite"))
    library.entries.record(ANN, said("kite"))
    assert len(found(library, "kite")) == 3
    states = [library.recent.state(ANN, "s1")]
    library.shelf(ANN).forget([context.id])
    assert found(library, "kite") == ["kite", "deleted kite"]
    states.append(library.recent.state(ANN, "s1"))
    library.entries.forget(ANN, [seq])
    assert found(library, "kite") == ["kite"]
    states.append(library.recent.state(ANN, "s1"))
    assert states == sorted(set(states))


def test_another_process_finds_and_loses_the_same(
    library: Library, library_of: Callable[..., Library], world: ModuleType
) -> None:
    other = library_of(world.HashEmbedder(), library.directory)
    library.entries.record(ANN, said("kite"))
    assert found(other, "kite") == ["kite"]
    seq = other.entries.record(ANN, said("second kite"))
    assert found(library, "kite") == found(other, "kite") == ["kite", "second kite"]
    other.entries.forget(ANN, [seq])
    assert found(library, "kite") == ["kite"]


def test_more_sessions_than_are_kept_in_memory_are_found(library: Library) -> None:
    names = [f"s{number}" for number in range(SESSIONS + 3)]
    library.entries.record_all([(ANN, said(name, session_id=name)) for name in names])
    for _ in range(2):
        assert [found(library, name, name) for name in names] == [[name] for name in names]


def test_the_ranking_is_that_of_rank_bm25_over_all_terms(library: Library) -> None:
    chance = random.Random(5)  # noqa: S311  # any mixture
    words = [word(number) for number in range(40)]
    texts = [" ".join(chance.choices(words, k=chance.randrange(1, 30))) for _ in range(60)]
    library.entries.record_all([(ANN, said(text, action="x")) for text in texts])
    entries = library.entries.recent(ANN, "s1", 100)
    oracle = BM25Okapi([tokenize(entry.text) for entry in entries])
    counts = {term: sum(term in doc for doc in oracle.doc_freqs) for term in oracle.idf}
    oracle.idf = {
        term: math.log1p((len(entries) - count + 0.5) / (count + 0.5))
        for term, count in counts.items()
    }
    for _ in range(20):
        query = " ".join(chance.sample(words, 3))
        scores = oracle.get_scores(tokenize(query))
        expected = sorted((float(score) for score in scores if score > 0), reverse=True)
        by_seq = {entry.seq: float(score) for entry, score in zip(entries, scores, strict=True)}
        hits = library.recent.search(ANN, "s1", query, 100)
        assert [by_seq[entry.seq] for entry, _ in hits] == pytest.approx(expected)
