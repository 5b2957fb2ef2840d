"""Where a question is looked for, by what is given with it and by its own words."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter, TimeRange
from storage.retrieval.routing import Scope, Source, UnifiedQuery, route

MANUALS = Source(name="manuals", raw_types=("file",), under="manuals/")

QUESTIONS = {
    Scope.MEMORY: [
        *("What did you just run?", "What did we do earlier in this session?"),
        *("Which files did you change during this conversation?", "What did I ask you just now?"),
        *("Did I tell you where I live?", "Have I told you about my allergy?"),
        "I already told you my address, what is it?",
        "Last time we talked about the kettle, what was the outcome?",
        "What was the result of the search you ran a moment ago?",
        *("What was my previous question?", "Do you remember my sister's name?"),
        *("Can you recall the colour I wanted?", "What do you know about me?"),
        *("Which tools have you used?", "What did your last command print?"),
        *("Summarise our last conversation", "Did you already call the weather service?"),
        "what have I said in the previous session about rent",
        *("Remember when we fixed the boiler?", "Did I mention the invoice to you?"),
        *("Which file did you just edit?", "What have you done so far?", "What went wrong?"),
        *("Which of your calls failed?", "Was hast du zuletzt gemacht?"),
        *("Welcher Befehl ist fehlgeschlagen?", "\u54ea\u4e2a\u8c03\u7528\u5931\u8d25\u4e86\uff1f"),
        *(
            "\u4f60\u505a\u4e86\u4ec0\u4e48",
            "刚才你运行了什么命令",
            "上次我们聊了什么",
            "你还记得我的生日吗",
            "我告诉过你我住在哪里吗",
        ),
        *("这次对话里我们决定了什么", "我们上次讨论的方案是什么", "Was hast du gerade ausgeführt?"),
        *("Was haben wir in dieser Sitzung gemacht?", "Habe ich dir meine Adresse gesagt?"),
        *("Weißt du noch, wie mein Hund heißt?", "Worüber haben wir beim letzten Mal gesprochen?"),
    ],
    Scope.KNOWLEDGE: [
        "What is the retry limit according to the docs?",
        *("What does the manual say about descaling?", "Was sagt die Dokumentation zum Port?"),
        "Is there a section on refunds in our handbook?",
        "What do the documents say about liability?",
        *(
            "Find the setup steps in the API documentation",
            "根据文档 超时时间是多少",
            "手册里怎么说除垢的",
        ),
        *("Was steht im Handbuch über Entkalken?", "Wie hoch ist das Limit laut Dokumentation?"),
    ],
    Scope.ALL: [
        *("How do I repair a flat wheel?", "What is Anna's phone number?"),
        *("rate limit of the search API", "When did the Romans leave Britain?"),
        *("What did Ada decide about the engine?", "Who said that the kettle leaks?"),
        *("How do I run the tests?", "What does just-in-time mean?", "Which tool removes rust?"),
        *("What was the last meeting about?", "session timeout settings"),
        *("How does conversation analysis work?", "memory management in Rust"),
        *("Explain recall and precision", "the previous chapter's main argument"),
        *("What did we decide about the price?", "Call the plumber about the sink"),
        "When was the last session of the court?",
        "the last conversation between Napoleon and Josephine",
        *("Which tools did we buy for the garden?", "We just call it the barn"),
        *("I told you so is a song by whom", "in the documents folder, where is the tax return"),
        *(
            "was in dieser Sitzung des Stadtrats beschlossen wurde",
            "我告诉老板的价格",
            "这个聊天软件多少钱",
        ),
        *(
            "上一次我国举办奥运会是哪年",
            "向量索引的限制是什么",
            "安娜的电话号码是多少",
            "如何修理漏水的水壶",
            "会话超时设置",
        ),
        *("Wie repariere ich einen platten Reifen?", "Wann ist die nächste Sitzung des Rates?"),
        "Wer hat das Gespräch geführt?",
        "What did I tell you in the manual, or in this session?",
        *("What went wrong with the Mars probe?", "How do I fix a failed edit?"),
        *("What fails when the disk is full?", "Which errors did the Romans make?"),
        *("Welche Fehler gab es im Projekt Apollo?", "\u5b89\u88c5\u5931\u8d25\u600e\u4e48\u529e"),
        "42",
    ],
}


@pytest.mark.parametrize(
    ("scope", "question"),
    [(scope, question) for scope, questions in QUESTIONS.items() for question in questions],
)
def test_only_sure_words_of_a_question_narrow_it(scope: Scope, question: str) -> None:
    way = route(UnifiedQuery(text=question, top_k=5))
    assert way.scope is scope
    assert way.is_guess is (scope is not Scope.ALL)
    assert way.why


LABELLED = SearchFilter(labels=(("year", ("2026",)),))


@pytest.mark.parametrize(
    ("given", "scope", "why"),
    [
        ({"scope": Scope.MEMORY}, Scope.MEMORY, "as asked"),
        ({"scope": Scope.KNOWLEDGE}, Scope.KNOWLEDGE, "as asked"),
        ({"scope": Scope.ALL}, Scope.ALL, "as asked"),
        ({"layers": (2, 3)}, Scope.MEMORY, "l2, l3 is a layer of memory"),
        ({"source": MANUALS}, Scope.KNOWLEDGE, "manuals is a source"),
        ({"criteria": LABELLED}, Scope.KNOWLEDGE, "filtered by metadata"),
        ({"criteria": LABELLED, "scope": Scope.ALL}, Scope.ALL, "as asked"),
        ({"intent": " Recall "}, Scope.MEMORY, "intent 'recall' asks for memory"),
        ({"intent": "documentation"}, Scope.KNOWLEDGE, "intent 'documentation' asks for knowledge"),
        ({"intent": "troubleshooting"}, Scope.ALL, "nothing in the question says where"),
    ],
)
def test_what_is_given_decides_before_the_words(
    given: dict[str, Any], scope: Scope, why: str
) -> None:
    way = route(UnifiedQuery(text="heron", top_k=5, **given))
    assert (way.scope, way.why) == (scope, why)
    if "intent" not in given:
        worded = route(UnifiedQuery(text="What did you just run in the docs?", top_k=5, **given))
        assert (worded.scope, worded.why) == (scope, why)
        assert not worded.is_guess


def test_each_scope_asks_only_what_belongs_to_it() -> None:
    memory, knowledge, everything = (
        route(UnifiedQuery(text="heron", top_k=5, scope=scope))
        for scope in (Scope.MEMORY, Scope.KNOWLEDGE, Scope.ALL)
    )
    assert (memory.stored, memory.recent) == (SearchFilter(memory=True, cards=True), True)
    assert (knowledge.stored, knowledge.recent) == (SearchFilter(memory=False, cards=True), False)
    assert (everything.stored, everything.recent) == (SearchFilter(cards=True), True)


def test_layers_are_asked_alone() -> None:
    first, second, both = (
        route(UnifiedQuery(text="heron", top_k=5, layers=layers)) for layers in ((1,), (2,), (1, 4))
    )
    assert (first.stored, first.recent) == (None, True)
    assert (second.stored, second.recent) == (SearchFilter(memory=True, memory_layers=(2,)), False)
    assert (both.stored, both.recent) == (SearchFilter(memory=True, memory_layers=(4,)), True)


def test_entries_fit_no_filter_but_that_of_a_time() -> None:
    for criteria, fit in ((SearchFilter(time_range=TimeRange(0, 1)), True), (LABELLED, False)):
        assert (
            route(UnifiedQuery(text="x", top_k=5, scope=Scope.ALL, criteria=criteria)).recent is fit
        )


def test_a_source_is_asked_for_what_is_wanted_of_it() -> None:
    criteria = SearchFilter(under="manuals/kettle/", raw_types=("file", "web"))
    way = route(UnifiedQuery(text="heron", top_k=5, source=MANUALS, criteria=criteria))
    assert way.stored == MANUALS.narrowed(criteria)
    other = SearchFilter(under="notes/")
    assert route(UnifiedQuery(text="heron", top_k=5, source=MANUALS, criteria=other)).stored is None


ANN = Identity("ann")
METADATA: tuple[dict[str, object], ...] = (
    {},
    {"team": "Support"},
    {"team": ["field", "SALES"], "year": 2024.0},
    {"team": {"name": "support"}, "year": True},
)

kinds = st.lists(st.sampled_from(ContextType), max_size=2, unique=True).map(tuple)
raw_types = st.lists(st.sampled_from(["file", "text", "mail"]), max_size=2, unique=True).map(tuple)
prefixes = st.sampled_from(["", "docs/", "docs/a/", "Docs/", "docs2/", "/mnt/", "%"])
label_values = st.lists(
    st.sampled_from(["support", "FIELD", "sales", "2024", "true", "1", "x"]), max_size=2
).map(tuple)
labels = st.dictionaries(st.sampled_from(["team", "year", "none"]), label_values, max_size=2)
sources = st.builds(
    Source,
    name=st.just("s"),
    context_types=kinds,
    raw_types=raw_types,
    under=prefixes,
    labels=labels,
)
all_criteria = st.builds(
    SearchFilter,
    context_types=kinds,
    raw_types=raw_types,
    raw_id=st.none() | st.just("docs/a/b.md"),
    under=prefixes,
    labels=labels.map(lambda given: tuple(given.items())),
    memory=st.sampled_from([None, True, False]),
    memory_layers=st.sampled_from([(), (2,), (4,)]),
)


@pytest.fixture(scope="module")
def filled(world: ModuleType) -> Iterator[Library]:
    """Contexts of every kind, kind of source, folder and metadata; some are memories."""
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory) / "data", world.HashEmbedder())
        shelf = library.shelf(ANN)
        names = ("docs/a.md", "docs/a/b.md", "docs2/a.md", "/mnt/docs/a.md", "%")
        several = enumerate(product(names, ("file", "text"), METADATA))
        for number, (raw_id, raw_type, metadata) in several:
            new = world.new_document(
                raw_id, f"heron {number}", raw_type=raw_type, metadata=metadata
            )
            kind = tuple(ContextType)[number % 3]
            shelf.add(replace(new, context_type=kind, raw_id=f"{raw_id}{number}"[:-1] or raw_id))
        for layer in (2, 3, 4):
            text = f"A kestrel of layer {layer}"
            shelf.add(
                NewContext(
                    context_type=ContextType.KNOWLEDGE,
                    title=text,
                    text=text,
                    memory_layer=layer,
                    metadata={"team": "support"},
                )
            )
        yield library
        library.close()


@given(source=sources)
def test_a_source_holds_what_its_filter_lets_through(filled: Library, source: Source) -> None:
    shelf = filled.shelf(ANN)
    every = shelf.contexts(SearchFilter(), 1_000)
    let_through = {context.id for context in shelf.contexts(source.criteria, 1_000)}
    assert {context.id for context in every if source.holds(context)} == let_through


@given(source=sources, criteria=all_criteria)
def test_a_narrowed_source_lets_through_what_both_do(
    filled: Library, source: Source, criteria: SearchFilter
) -> None:
    shelf = filled.shelf(ANN)
    fitting = {context.id for context in shelf.contexts(criteria, 1_000) if source.holds(context)}
    narrowed = source.narrowed(criteria)
    found = [] if narrowed is None else shelf.contexts(narrowed, 1_000)
    assert {context.id for context in found} == fitting


def test_a_source_that_narrows_nothing_holds_all_but_memories(filled: Library) -> None:
    shelf = filled.shelf(ANN)
    every = shelf.contexts(SearchFilter(), 1_000)
    held = [context for context in every if Source(name="all").holds(context)]
    assert len(every) - len(held) == 3
    assert not any(context.memory_layer for context in held)
