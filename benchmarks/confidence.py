"""How sure a search is: what gets an answer that has none, and what is found that has one.

    python -m benchmarks.confidence [--xquad FILE ...] [--conversations FILE] [--data DIR ...]
        [--embedder minilm]

Of what has no answer: how much gets one. Of what has one among the first five hits: how much loses
it, because nothing seemed sure enough. Every other question is asked, of those that
`benchmarks.calibration` did not use, of these libraries, each kind reported apart, by meaning and
by words alone:

- `personal`: notes, mails and chats in three languages, with questions that they answer and others
  that come near (`benchmarks/sets/personal.json`); `small`: five of them at a time.
- `german`, `chinese`: twelve of them, translated, with twenty questions that they answer and twenty
  others (`benchmarks/sets/translated.json`); all are asked, for nothing was fitted on them.
- The libraries of an engineer, a researcher, a bookshop, a robotics team and an architect, in
  English, German and Chinese, each with as many questions that it answers as others, written apart
  from all else here (`benchmarks/sets/libraries`). Nothing was fitted on the last three.
- `documentation`: this project's own pages (`benchmarks/sets/documentation.json`).
- XQuAD (https://github.com/google-deepmind/xquad, xquad.LANGUAGE.json): every other article is
  stored; the questions on the others have no answer.
- LoCoMo (see `benchmarks.conversations`): questions on another conversation have no answer, nor
  have its own adversarial ones, which name the wrong speaker.
- Folders in BEIR form (see `benchmarks.retrieval`), asked the far questions of `personal`, too.
"""

import argparse
import json
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from benchmarks.conversations import as_turns, read_locomo
from benchmarks.retrieval import RememberedEmbedder, read_jsonl, read_qrels
from storage.index.embedders.base import Embedder, EmbedderKind, EmbedderOptions
from storage.index.embedders.making import make_embedder
from storage.library import Library
from storage.models import Identity, NewContext, SearchFilter, SearchResult

SHOWN = 5
"""Hits of a question that count: as many as `query` shows."""

MOST = 200
"""Questions of one kind that a set is asked at most."""

SMALL = 5
"""Documents of a small library."""

SETS = Path(__file__).parent / "sets"

FITTED = ("engineer", "researcher")
UNSEEN = ("bookshop", "robotics", "architect")
"""Libraries of `benchmarks/sets/libraries`, by whether the weights were fitted on them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the sources that answer it; none where nothing does."""

    text: str
    kind: str
    answers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Shelf:
    """What is stored, under the name of its source, and what is asked of it.

    A turn of a conversation is named by its text.
    """

    name: str
    stored: Sequence[NewContext]
    questions: Sequence[Asked]


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one question."""

    asked: Asked
    by_meaning: bool
    ranked: tuple[bool, ...]
    hits: tuple[bool, ...]


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    found: dict[str, list[Found]] = defaultdict(list)
    embedder, shelves = asked_for("How sure a search is.")
    for shelf in _unseen():
        found[shelf.name] += ask(shelf, shelf.questions, embedder)
    for shelf in shelves:  # `benchmarks.calibration` used the other questions
        found[shelf.name] += ask(shelf, shelf.questions[1::2], embedder)
    for by_meaning in (True, False):
        print("meaning and words" if by_meaning else "words alone")
        for name, each in found.items():
            report(name, [one for one in each if one.by_meaning == by_meaning])


def asked_for(description: str) -> tuple[Embedder, Iterator[Shelf]]:
    """The embedder that the command line names, and the libraries of its files."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--xquad", type=Path, nargs="+", default=[], help="xquad.LANGUAGE.json")
    parser.add_argument("--conversations", type=Path, help="LoCoMo's JSON")
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="folders in BEIR form")
    parser.add_argument("--embedder", choices=get_args(EmbedderKind), default="e5")
    arguments = parser.parse_args()
    embedder = RememberedEmbedder(make_embedder(EmbedderOptions(kind=arguments.embedder)))
    return embedder, read_shelves(arguments.xquad, arguments.conversations, arguments.data)


def read_shelves(
    xquad: Iterable[Path], conversations: Path | None, data: Iterable[Path]
) -> Iterator[Shelf]:
    """The libraries, one after the other."""
    personal = json.loads((SETS / "personal.json").read_text(encoding="utf-8"))
    notes = _documents(personal["documents"])
    answerable = _questions(personal["answerable"])
    unanswerable = _questions(personal["unanswerable"])
    yield Shelf("personal", notes, answerable + unanswerable)
    for name in FITTED:
        yield from _read_library(name)
    for start in range(0, len(notes), SMALL):
        part = notes[start : start + SMALL]
        known = {note.raw_id for note in part}
        own = [each for each in answerable if each.answers <= known]
        others = [Asked(each.text, "other") for each in answerable if not each.answers <= known]
        yield Shelf("small", part, own + _some(others, 12) + _some(unanswerable, 4))
    pages = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))
    stored = [_document(f"docs/{page.name}", page.stem, page.read_text("utf-8")) for page in pages]
    asked = json.loads((SETS / "documentation.json").read_text(encoding="utf-8"))
    of_pages = _questions(asked["answerable"]) + _questions(asked["unanswerable"])
    yield Shelf("documentation", stored, of_pages)
    for path in xquad:
        yield _read_xquad(path)
    if conversations is not None:
        yield from _read_conversations(conversations)
    far = [each for each in unanswerable if each.kind in {"far", "word"}]
    for folder in data:
        yield _read_folder(folder, far)


def _unseen() -> Iterator[Shelf]:
    translated = json.loads((SETS / "translated.json").read_text(encoding="utf-8"))
    for language, each in translated.items():
        questions = _questions(each["answerable"]) + _questions(each["unanswerable"])
        yield Shelf(language, _documents(each["documents"]), questions)
    for name in UNSEEN:
        yield from _read_library(name)


def _read_library(name: str) -> Iterator[Shelf]:
    """A library, once for each language that it is asked in."""
    library = json.loads((SETS / "libraries" / f"{name}.json").read_text(encoding="utf-8"))
    asked = defaultdict(list)
    for row in [*library["answerable"], *library["unanswerable"]]:
        asked[row.get("lang", "en")].append(row)
    for language, rows in asked.items():
        stored = _documents(library["documents"])
        yield Shelf(f"{name}_{language}", stored, _questions(rows))


def _read_xquad(path: Path) -> Shelf:
    stored, own, others = [], [], []
    for number, article in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]):
        for place, paragraph in enumerate(article["paragraphs"]):
            name = f"{number}-{place}"
            if number % 2 == 0:
                stored.append(_document(name, "", paragraph["context"]))
            for asked in paragraph["qas"]:
                if number % 2 == 0:
                    own.append(Asked(asked["question"], "own article", frozenset([name])))
                else:
                    others.append(Asked(asked["question"], "other article"))
    return Shelf(f"xquad_{path.stem[-2:]}", stored, _some(own, MOST) + _some(others, MOST))


def _read_conversations(path: Path) -> Iterator[Shelf]:
    plain, hostile = list(read_locomo(path)), list(read_locomo(path, adversarial=True))
    for number, conversation in enumerate(plain):
        sessions = defaultdict(list)
        for turn in conversation.turns:
            sessions[turn.session].append(turn)
        texts = {turn.id: turn.text for turn in conversation.turns}
        own = [
            Asked(text, "own", frozenset(texts[turn] for turn in conversation.qrels[key]))
            for key, text in conversation.questions.items()
        ]
        others = [Asked(text, "other") for text in plain[number - 3].questions.values()]
        adversarial = [
            Asked(text, "adversarial")
            for key, text in hostile[number].questions.items()
            if key not in conversation.questions
        ]
        stored = [new for turns in sessions.values() for new, _ in as_turns(turns)]
        questions = _some(own, 40) + _some(others, 40) + _some(adversarial, 20)
        yield Shelf("conversations", stored, questions)


def _read_folder(folder: Path, far: Sequence[Asked]) -> Shelf:
    texts = {row["_id"]: row["text"] for row in read_jsonl(folder / "queries.jsonl")}
    stored = [
        _document(row["_id"], row.get("title", ""), row["text"] or row["title"])
        for row in read_jsonl(folder / "corpus.jsonl")
        if (row.get("title", "") + row["text"]).strip()
    ]
    own = [
        Asked(texts[key], "own", frozenset(each for each, grade in grades.items() if grade > 0))
        for key, grades in read_qrels(folder / "qrels.tsv").items()
    ]
    return Shelf(folder.name, stored, [*_some(own, MOST), *far])


def _document(name: str, title: str, text: str) -> NewContext:
    return NewContext(title=title, text=text, raw_type="set", raw_id=name)


def _documents(rows: Iterable[Mapping[str, str]]) -> list[NewContext]:
    return [_document(row["id"], row["title"], row["text"]) for row in rows]


def _questions(rows: Iterable[Mapping[str, Any]]) -> list[Asked]:
    return [
        Asked(row["question"], row["kind"], frozenset(filter(None, [row.get("answer")])))
        for row in rows
    ]


def _some(questions: Sequence[Asked], count: int) -> list[Asked]:
    """As many of them, always the same, from everywhere."""
    return sorted(questions, key=lambda asked: zlib.crc32(asked.text[::-1].encode()))[:count]


@contextmanager
def stocked(shelf: Shelf, embedder: Embedder) -> Iterator[Library]:
    """A fresh library that holds a set, all of it embedded."""
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(Library(Path(directory), embedder)) as library,
    ):
        own = library.shelf(Identity())
        for new in shelf.stored:
            own.add(new)
        while library.indexer.step():
            pass
        yield library


def ask(shelf: Shelf, questions: Iterable[Asked], embedder: Embedder) -> Iterator[Found]:
    """Stores a set in a fresh library and asks some of its questions."""
    with stocked(shelf, embedder) as library:
        for asked in questions:
            for alpha in (None, 0.0):
                found = library.engine.search(
                    Identity(), asked.text, SearchFilter(), SHOWN, alpha=alpha
                )
                sure = library.confidence.judge(asked.text, found)
                ranked, hits = (answering(asked, result) for result in (found, sure))
                yield Found(asked, alpha is None, ranked, hits)


def answering(asked: Asked, result: SearchResult) -> tuple[bool, ...]:
    """Whether each hit answers."""
    named = ({hit.context.raw_id, hit.chunk.content} for hit in result.hits)
    return tuple(not asked.answers.isdisjoint(names) for names in named)


def report(name: str, found: Sequence[Found]) -> None:
    """Prints how many get an answer that have none, and how many lose theirs, by kind."""
    kinds: dict[bool, dict[str, list[bool]]] = {True: defaultdict(list), False: defaultdict(list)}
    for each in found:
        if not each.asked.answers:
            kinds[False][each.asked.kind].append(bool(each.hits))
        elif any(each.ranked):
            kinds[True][each.asked.kind].append(not any(each.hits))
    for has_answer, by_kind in kinds.items():
        if by_kind:
            judged = [one for some in by_kind.values() for one in some]
            parts = ", ".join(f"{kind} {_share(some)}" for kind, some in sorted(by_kind.items()))
            what = "lost" if has_answer else "answered"
            print(f"{name:16} {what:9} {_share(judged):14} {parts}")


def _share(some: Sequence[bool]) -> str:
    return f"{sum(some)}/{len(some)} ({100 * sum(some) / len(some):.0f} %)"


if __name__ == "__main__":
    main()
