"""A few texts in memory, against rank_bm25 over whole texts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from storage.index.lexical import idf
from storage.retrieval.bm25 import SmallCorpus

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
