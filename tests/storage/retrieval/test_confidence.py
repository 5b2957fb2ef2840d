"""How sure a hit is: the same in every library, and nothing where nothing fits."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.index.embedders.e5 import E5Embedder
from storage.library import Library, Shelf
from storage.models import Identity, NewContext, NewEntry, SearchFilter, Turn
from storage.people.models import EntityType, NewEntity
from storage.retrieval import confidence as crossencoder
from storage.retrieval.confidence import (
    CLEAR,
    FLOOR,
    MODEL_FILE,
    MULTILINGUAL,
    READ,
    UNSURE,
    WEIGHTS,
    Confidence,
    CrossEncoder,
    Evidence,
    Known,
    Language,
    Weights,
    least_shown,
    undecided,
)
from storage.retrieval.routing import UnifiedQuery

ANN = Identity(user_id="ann")
ANY = SearchFilter()

NOTES = {
    "Dentist": "Moved to Thursday 14:30, Dr. Ohm, second floor. Bring the X-ray.",
    "Bike repair": "The derailleur of the blue Trek is bent. Wheelhouse quoted 85 euros.",
    "Sourdough": "Feed the starter the night before; six hours of bulk rise at 22 degrees.",
    "Passport": "Expires in November next year. Renewal takes up to ten weeks.",
}


@pytest.fixture
def library(library_of: Callable[..., Library], minilm: MiniLMEmbedder) -> Library:
    """One with the bundled embedder."""
    return library_of(minilm)


@pytest.fixture
def shelf(library: Library) -> Shelf:
    shelf = library.shelf(ANN)
    for title, text in NOTES.items():
        shelf.add(NewContext(raw_type="text", raw_id=title, title=title, text=text))
    while library.indexer.step():
        pass
    return shelf


MEETING = (
    "Meeting notes, 3 March: the launch is planned for 12 May.",
    "Correction to the notes of 3 March: the launch is planned for 19 May.",
)


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (MEETING, "When is the launch?"),
        (
            ("Wir haben uns für Angular entschieden.", "Wir haben uns für Svelte entschieden."),
            "Wofür haben wir uns entschieden?",
        ),
        (("我们决定用RabbitMQ做消息队列。", "我们决定用NATS做消息队列。"), "我们用什么做消息队列?"),
    ],
)
def test_of_two_that_say_nearly_the_same_the_newer_comes_first(
    library: Library, texts: tuple[str, str], question: str
) -> None:
    for order in (texts, texts[::-1]):
        assert _asked(library, order, question)[0] == order[1]


def test_where_the_past_is_asked_for_the_newer_does_not_come_first(library: Library) -> None:
    first, second = (
        _asked(library, order, "When was the launch before?") for order in (MEETING, MEETING[::-1])
    )
    assert first == second


def _asked(library: Library, texts: tuple[str, ...], question: str) -> list[str]:
    """Remembers texts in this order as somebody new, and returns the hits of a question."""
    shelf = library.shelf(Identity(user_id="".join(texts)[:60]))
    for text in texts:
        shelf.memories.remember(text)
    while library.indexer.step():
        pass
    hits = shelf.ask(UnifiedQuery(text=question, top_k=5)).hits
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    return [hit.passage.chunk.content for hit in hits if hit.passage is not None]


def test_a_newer_one_about_another_name_does_not_come_first(library: Library) -> None:
    texts = ("Anna Schmidt lives in Bonn.", "Anna Schmitt lives in Kiel now.")
    assert _asked(library, texts, "Where does Anna Schmidt live?")[0] == texts[0]


def titles(shelf: Shelf, question: str) -> list[str]:
    return [hit.context.title for hit in shelf.search(question, ANY, 5).hits]


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("When is my dentist appointment?", "Dentist"),
        ("How much is the repair of the bicycle?", "Bike repair"),
        ("sourdough", "Sourdough"),
        ("when do I have to renew my passport", "Passport"),
    ],
)
def test_what_answers_is_found_first(shelf: Shelf, question: str, title: str) -> None:
    best = shelf.search(question, ANY, 5).hits[0]
    assert best.context.title == title
    assert best.score > 0.2


@pytest.mark.parametrize(
    "question",
    [
        "Who won the world cup in 1974?",
        "How long is a flight to the moon?",  # "long" and "flight" are nowhere
        "What is the night sky made of?",  # one word in common is no answer
        "symptoms of malaria",
    ],
)
def test_a_question_about_nothing_stored_has_no_answer_but_the_nearest_is_named(
    shelf: Shelf, question: str
) -> None:
    found = shelf.search(question, ANY, 5)
    assert not found.hits
    assert all(hit.score < FLOOR for hit in found.nearest)
    assert len(found.nearest) <= 1
    asked = shelf.ask(UnifiedQuery(text=question, top_k=5))
    assert not asked.hits
    assert len(asked.nearest) == len(found.nearest)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Wann muss ich zum Zahnarzt?", "Termine"),  # it stands in a compound
        ("Welche Farbe hat die Tür?", "Türen"),  # "Welche", "hat" and "die" say nothing
        ("Wann wurde die Brücke gebaut?", None),
        ("门是什么颜色?", "门"),
        ("这座桥是什么时候建成的?", None),
    ],
)
def test_words_tell_in_other_languages(library: Library, question: str, title: str | None) -> None:
    shelf = library.shelf(ANN)
    for name, text in (
        ("Termine", "Der Zahnarzttermin ist auf Donnerstag verlegt, 14:30 Uhr."),
        ("Türen", "Die Farbe der Türen ist RAL 7016, zwei Dosen stehen im Keller."),
        ("门", "门的颜色是深灰色,两桶油漆在地下室。"),
    ):
        shelf.add(NewContext(raw_type="text", raw_id=name, title=name, text=text))
    while library.indexer.step():
        pass
    assert titles(shelf, question)[:1] == ([title] if title else [])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Womit heizen wir im Winter?", "Die Wärmepumpe im Keller läuft ab Oktober."),
        ("冬天怎么取暖?", "热泵冬天运行,十月开始。"),
    ],
)
def test_outside_english_the_three_nearest_are_shown_where_none_is_likely(
    library: Library, question: str, text: str
) -> None:
    shelf = library.shelf(ANN)
    for number in "1234":
        shelf.add(NewContext(title="", text=f"{text} {number}", raw_type="text", raw_id=number))
    while library.indexer.step():
        pass
    for found in (shelf.search(question, ANY, 5), shelf.ask(UnifiedQuery(text=question, top_k=5))):
        assert not found.hits
        assert len(found.nearest) == UNSURE
        scores = [hit.score for hit in found.nearest]
        assert sorted(scores, reverse=True) == scores


@pytest.mark.parametrize(
    ("likely", "shown"),
    [
        ([0.26, 0.25], True),
        ([0.16, 0.02], True),
        ([0.02, 0.16, 0.01], True),
        ([0.16, 0.15], False),  # neither is clearly the best
        ([0.14, 0.01], False),
        ([0.24], False),  # there is no other to compare it with
        ([], False),
    ],
)
def test_a_hit_below_the_floor_is_shown_if_it_is_clearly_the_best(
    likely: list[float], shown: bool
) -> None:
    assert any(each >= least_shown(likely, CLEAR[0]) for each in likely) == shown


def test_a_score_does_not_depend_on_what_else_is_stored(library: Library, shelf: Shelf) -> None:
    question = "How much is the repair of the bicycle?"
    before = shelf.search(question, ANY, 1).hits[0].score
    for number in range(5):
        text = f"Blue bicycle number {number}."
        shelf.add(NewContext(raw_type="text", raw_id=str(number), title="Trek", text=text))
    while library.indexer.step():
        pass
    after = next(hit for hit in shelf.search(question, ANY, 9).hits if "85" in hit.chunk.content)
    assert after.score == pytest.approx(before, abs=1e-6)


def test_all_of_a_questions_words_are_enough_to_be_shown(library: Library) -> None:
    shelf = library.shelf(ANN)
    shelf.add(NewContext(title="", text="Kettle 4471-B, cupboard, left.", keywords=("warranty",)))
    assert shelf.search("warranty 4471-B", ANY, 5).hits[0].score >= FLOOR


def test_whom_a_question_names_is_shown_whatever_is_known_of_them(library: Library) -> None:
    shelf = library.shelf(ANN)
    shelf.people.save_entity(NewEntity(name="Otto Brandt", entity_type=EntityType.PERSON))
    found = shelf.ask(UnifiedQuery(text="What did Otto Brandt study in Uppsala?", top_k=5))
    assert [hit.passage.context.title for hit in found.hits if hit.passage] == ["Otto Brandt"]


def test_a_turn_is_read_with_what_was_said_before_it(library: Library) -> None:
    shelf = library.shelf(ANN)
    asked, told = "Where did you put the spare key of the boat?", "Under the blue bucket."
    turns = (Turn("Ann", asked), Turn("Bo", told))
    shelf.add(NewContext(raw_type="chat", raw_id="a", title="Chat", text="", turns=turns))
    while library.indexer.step():
        pass
    hits = shelf.search("Where is the spare key of the boat?", ANY, 5).hits
    answer = next(hit for hit in hits if "bucket" in hit.chunk.content)
    assert "spare key" in answer.before
    assert answer.score > 0.5


def test_what_is_asked_of_somebody_not_named_is_hardly_answered(library: Library) -> None:
    shelf = library.shelf(ANN)
    turns = (Turn("Kathrin", "My sister plays the cello."), Turn("Ann", "Since when?"))
    shelf.add(NewContext(raw_type="chat", raw_id="a", title="Chat", text="", turns=turns))
    life = "Clara Holm was born in Turku. " + "The harbour was never far from her. " * 99
    text = f"{life}\n\n# Studies\n\nMathematics in Uppsala, until 2009."
    shelf.add(NewContext(raw_type="text", raw_id="b", title="A life", text=text))
    while library.indexer.step():
        pass

    def best(question: str) -> float:
        found = shelf.search(question, ANY, 1)
        (hit,) = found.hits or found.nearest
        assert "Clara" not in hit.chunk.content
        return hit.score

    for name in ("Kathrin", "Katrin"):
        assert best(f"Which instrument does the sister of {name} play?") > 0.9
    assert best("Which instrument does the sister of Dennis play?") < 0.3
    assert (
        best("Until when did Clara Holm study mathematics in Uppsala?") > 0.4
    )  # another chunk names her
    assert best("Until when did Ingrid Falk study mathematics in Uppsala?") < 0.1


def test_what_is_asked_of_another_number_is_hardly_answered(library: Library) -> None:
    shelf = library.shelf(ANN)
    text = "The gripper of ticket GRP-118 drops boxes when it is cold. Fixed by a new seal."
    shelf.add(NewContext(raw_type="text", raw_id="a", title="Tickets", text=text))
    while library.indexer.step():
        pass
    assert shelf.search("How was GRP-118 fixed?", ANY, 1).hits
    assert not shelf.search("How was GRP-205 fixed?", ANY, 1).hits


def test_an_entry_of_the_session_answers_only_where_it_is_likely_to(
    library: Library, shelf: Shelf
) -> None:
    said = "Wrote the phone number of the plumber, 555 0199, to plumber.md"
    library.entries.record(
        ANN, NewEntry(session_id="s", kind="call", time=time.time(), action="write_file", said=said)
    )
    for question, found in (
        ("What is the phone number of the plumber?", 1),
        ("What is the phone number of the president?", 0),
    ):
        answer = shelf.ask(UnifiedQuery(text=question, top_k=5, session_id="s"))
        assert len([hit for hit in answer.hits if hit.entry]) == found


def test_without_the_cross_encoder_words_and_meaning_still_tell(
    library: Library, shelf: Shelf, tmp_path: Path
) -> None:
    confidence = Confidence(library.models, CrossEncoder(tmp_path))  # no model lies there
    for question, answered in (("When is my dentist appointment?", True), ("malaria", False)):
        found = library.engine.search(ANN, question, ANY, 5)
        assert bool(confidence.judge(question, found).hits) == answered


def test_what_comes_too_late_to_be_read_is_no_likelier_than_what_was(
    library: Library, shelf: Shelf
) -> None:
    for number in range(READ + 5):
        text = f"The dentist of street {number} moved in May."
        shelf.add(NewContext(raw_type="text", raw_id=str(number), title="", text=text))
    while library.indexer.step():
        pass
    question = "Which dentist moved in May?"
    found = library.engine.search(ANN, question, ANY, READ + 5)
    likely = library.confidence.rate(question, found.hits)
    assert len(likely) > READ
    assert max(likely[READ:]) <= min(likely[:READ])


@pytest.mark.parametrize(
    ("weights", "known"),
    [(weights, known) for weights in (WEIGHTS, MULTILINGUAL) for known in weights],
)
def test_more_of_any_evidence_makes_an_answer_likelier(
    known: Known, weights: Mapping[Known, Weights]
) -> None:
    language, has_nearness = known
    low, high = (None, None) if language in {"skimmed", "unread"} else (-9.0, 8.0)
    spoken: Language = "English" if language == "skimmed" else language
    multilingual = weights is MULTILINGUAL
    little = Evidence(spoken, low, 0.1 if has_nearness else None, 0.1, 0.5, 1.0, multilingual)
    much = Evidence(
        spoken, high, 0.6 if has_nearness else None, 0.9, 5.0, multilingual=multilingual
    )
    assert little.weights_key == much.weights_key == known
    assert little.probability < FLOOR < much.probability < 1


@pytest.mark.parametrize(
    ("hits", "read"),
    [
        ([("English", 0.0)], []),  # too far away to answer
        ([("English", 0.1), ("English", 0.0), ("English", 0.15)], [0, 2]),
        ([("English", 0.1), ("English", 0.6)], []),  # one is near enough to answer
        ([("English", None), ("English", 0.6)], [0]),
        ([("foreign", 0.1), ("unread", 0.1)], []),  # meaning says more than the cross-encoder
    ],
)
def test_only_what_is_undecided_is_read(
    hits: list[tuple[Language, float | None]], read: list[int]
) -> None:
    evidence = [
        Evidence(language, None, nearness, 0.1, 1.0, multilingual=True)
        for language, nearness in hits
    ]
    assert undecided(evidence) == read
    unfitted = [each._replace(multilingual=False) for each in evidence]
    assert undecided(unfitted) == [
        row for row, (language, _) in enumerate(hits) if language != "unread"
    ]


def test_a_passage_is_read_where_meaning_and_words_do_not_decide_or_all_are(
    library_of: Callable[..., Library],
) -> None:
    library = library_of(E5Embedder())
    shelf = library.shelf(ANN)
    shelf.add(NewContext(title="Dentist", text=NOTES["Dentist"]))
    while library.indexer.step():
        pass
    for question, is_read in (
        ("When is my dentist appointment?", False),
        ("When is the appointment with the doctor?", True),
    ):
        hits = library.engine.search(ANN, question, ANY, 5).hits
        for reads_all in (False, True):
            [each] = library.confidence.evidence(question, hits, reads_all=reads_all)
            assert (each.reading is not None) == (is_read or reads_all)


TRAIN = "The train to Oslo leaves at 9:40 from platform 3; the seats are in coach 12."


def readings(question: str, *passages: str) -> list[float]:
    assert set(CrossEncoder().languages(question, passages)) == {"English"}
    return CrossEncoder().read(question, passages)


@pytest.mark.parametrize(
    ("question", "passage", "other"),
    [
        ("When does the train leave?", TRAIN, "The kettle leaks at the spout."),
        (
            "Which platform does the train leave from?",
            TRAIN,
            "Our platform strategy was postponed.",
        ),
        ("Who waters the plants?", "Ann waters the plants on Monday.", TRAIN),
    ],
)
def test_a_passage_that_answers_stands_out(question: str, passage: str, other: str) -> None:
    own, others = readings(question, passage, other)
    assert own > 0 > others


def test_a_passage_is_read_the_same_alone_and_in_any_company() -> None:
    passages = [TRAIN, "The kettle leaks.", "", "word " * 500]
    read, question = CrossEncoder().read, "When does the train leave?"
    assert [read(question, [each])[0] for each in passages] == read(question, passages)


def test_nothing_is_read_of_no_passages() -> None:
    assert CrossEncoder().read("When?", []) == []


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("火车几点出发", "火车九点四十分出发。"),
        ("火车几点出发", TRAIN),
        ("When does the train leave?", "火车九点四十分出发。"),
        ("GRP-205和Dymola是何时开始运营的", "火车九点四十分出发。"),
    ],
)
def test_what_it_does_not_understand_it_does_not_judge(question: str, passage: str) -> None:
    assert CrossEncoder().languages(question, [passage]) == ["unread"]


def test_what_is_not_english_is_read_as_such() -> None:
    passage = "Der Zug nach Oslo fährt um 9:40 Uhr von Gleis 3 ab."
    [language] = CrossEncoder().languages("Wann fährt der Zug nach Oslo ab?", [passage])
    assert language == "foreign"


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    shutil.copy(Path(crossencoder.__file__).with_name(MODEL_FILE), tmp_path)
    with (tmp_path / MODEL_FILE).open("r+b") as file:
        file.write(b"damaged")
    with pytest.raises(StorageUnavailableError, match="model is damaged: its SHA-256"):
        CrossEncoder(tmp_path).read("When?", [TRAIN])
