"""What the reranker of `query` does to what a search finds: documents, and memory and knowledge.

    python -m benchmarks.rerank --data DIR [DIR ...] [--conversations FILE] [--variants] [--json]

Each DIR is in BEIR form (see `benchmarks.retrieval`) and asked alone, as one origin, and as if its
documents came from five sources at random, of which none is better. FILE is LoCoMo's JSON (see
`benchmarks.conversations`): its observations, facts about a speaker, become memories, and its turns
events. Everything together is the mixed library, in which each folder is a source; a question to a
conversation is answered by the turns that are its evidence and by the observations made from them.

The same hits are scored in the order of the search and reranked as `query` does it, the best 20;
the others follow as they were. A result is what its best chunk is. `--variants` measures the
reranker with one of its definitions changed, too. Intervals are of the difference of NDCG@10.
"""

import argparse
import json
import re
import statistics
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.conversations import as_events, read_locomo
from benchmarks.retrieval import RememberedEmbedder, ndcg, read_jsonl, read_qrels, recall
from storage.index.embedders.e5 import E5Embedder
from storage.library import Library
from storage.models import Identity, MemoryLayer, NewContext, SearchFilter, SearchHit
from storage.retrieval.ranking import ENOUGH_CHARS, Candidate, candidates_of, rerank
from storage.tokenize import terms_of

CANDIDATES = 20
"""Hits that are reranked: what `query` takes for up to six results."""

DEEP = 100
"""Hits asked for, so that enough distinct results are left."""

SOURCES = 5
"""Sources among which documents are spread at random."""

RESAMPLES = 2000
SEED = 5
LEAST = 1e-9
"""A difference below this is one of rounding."""

MEMORY = "memory"
EVENTS = "events"

_TURN = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_\d+")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a change does.

    Attributes:
        questions: How many were asked.
        before: Mean without the change.
        after: Mean with it.
        low: Where the 95 % interval of the mean difference begins (paired bootstrap).
        high: Where it ends.
        won: Questions that are answered better with it.
        lost: Questions that are answered worse.
    """

    questions: int
    before: float
    after: float
    low: float
    high: float
    won: int
    lost: int


def compare(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """The scores of the same questions in the same order, without a change and with it."""
    changes = np.subtract(after, before)
    chance = np.random.default_rng(SEED)
    means = [
        changes[chance.integers(0, len(changes), len(changes))].mean() for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(means, (0.025, 0.975))
    return Comparison(
        questions=len(changes),
        before=float(np.mean(before)),
        after=float(np.mean(after)),
        low=float(low),
        high=float(high),
        won=int((changes > LEAST).sum()),
        lost=int((changes < -LEAST).sum()),
    )


def row(name: str, scores: Comparison) -> str:
    """A comparison as a line of a table."""
    return (
        f"{name:44} {scores.questions:5} {scores.before:.3f} {scores.after:.3f}"
        f" {scores.after - scores.before:+.3f} [{scores.low:+.3f}, {scores.high:+.3f}]"
        f" +{scores.won}/-{scores.lost}"
    )


@dataclass(frozen=True, slots=True)
class Key:
    """A result as judgements know it."""

    origin: str
    id: str

    def __str__(self) -> str:
        return f"{self.origin}:{self.id}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of one kind, and the grades of what answers it."""

    kind: str
    text: str
    judged: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Collection:
    """What is stored, and what is asked of it."""

    name: str
    stored: list[tuple[Key, NewContext]] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class View:
    """A way of asking a collection: which questions, in what, and what counts as an answer."""

    name: str
    kind: str = ""
    criteria: SearchFilter = field(default_factory=SearchFilter)
    answers: str = ""
    sources: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """One view without the reranker and with it."""

    name: str
    variant: str
    ndcg_10: Comparison
    recall_5_before: float
    recall_5_after: float


Change = Callable[[Candidate, SearchHit, str], Candidate]
"""Changes a candidate of a hit for a query."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What the reranker does.")
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="folders in BEIR form")
    parser.add_argument("--conversations", type=Path, help="LoCoMo's JSON")
    parser.add_argument("--variants", action="store_true", help="with other definitions, too")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    reports = []
    for report in run(arguments.data, arguments.conversations, variants=arguments.variants):
        reports.append(report)
        if not arguments.json:
            recalls = f"R@5 {report.recall_5_before:.3f} {report.recall_5_after:.3f}"
            print(row(f"{report.name} {report.variant}", report.ndcg_10), recalls, flush=True)
    if arguments.json:
        print(json.dumps([asdict(report) for report in reports]))


def run(
    data: Sequence[Path], conversations: Path | None, *, variants: bool = False
) -> Iterator[Report]:
    """Measures each folder alone, then everything together."""
    embedder = RememberedEmbedder(E5Embedder())
    changes = VARIANTS if variants else {"": VARIANTS[""]}
    folders = [read_documents(folder) for folder in data]
    for folder in folders:
        views = [View(folder.name), View(f"{folder.name}, five sources", sources=SOURCES)]
        yield from measure(folder, views, changes, embedder)
    if conversations is not None:
        chats = read_conversations(conversations)
        mixed = together([*folders, chats])
        views = [View("mixed")]
        views += [View(f"mixed: {each.name}", kind=each.name) for each in (*folders, chats)]
        for scope, memory, answers in (("knowledge", False, EVENTS), ("memory", True, MEMORY)):
            name, criteria = f"{scope} alone: {chats.name}", SearchFilter(memory=memory)
            views.append(View(name, kind=chats.name, criteria=criteria, answers=answers))
        yield from measure(mixed, views, changes, embedder)


def read_documents(folder: Path) -> Collection:
    """A folder in BEIR form; its name is the origin of its documents."""
    found = Collection(folder.name)
    for line in read_jsonl(folder / "corpus.jsonl"):
        title, text = line.get("title", ""), line["text"]
        if (title + text).strip():
            new = NewContext(
                title=title, text=text or title, raw_type=folder.name, raw_id=line["_id"]
            )
            found.stored.append((Key(folder.name, line["_id"]), new))
    texts = {line["_id"]: line["text"] for line in read_jsonl(folder / "queries.jsonl")}
    for query, grades in read_qrels(folder / "qrels.tsv").items():
        judged = {str(Key(folder.name, document)): grade for document, grade in grades.items()}
        found.questions.append(Asked(folder.name, texts[query], judged))
    return found


def read_conversations(path: Path) -> Collection:
    """LoCoMo: turns as events, observations as memories, and its questions about both."""
    found = Collection("conversations")
    samples = json.loads(path.read_text(encoding="utf-8"))
    for number, conversation in enumerate(read_locomo(path)):
        sessions: dict[str, list[int]] = {}
        for index, turn in enumerate(conversation.turns):
            sessions.setdefault(turn.session, []).append(index)
        for places in sessions.values():
            for new, (turn,) in as_events([conversation.turns[place] for place in places]):
                found.stored.append((Key(EVENTS, turn.id), new))
        made_of: dict[str, list[str]] = {}
        for key, new, turns in _observations(number, samples[number]["observation"]):
            found.stored.append((key, new))
            for turn_id in turns:
                made_of.setdefault(turn_id, []).append(str(key))
        for question, text in conversation.questions.items():
            evidence = conversation.qrels[question]
            answers = [str(Key(EVENTS, turn_id)) for turn_id in evidence]
            answers += [key for turn_id in evidence for key in made_of.get(turn_id, ())]
            found.questions.append(Asked(found.name, text, dict.fromkeys(answers, 1)))
    return found


def _observations(
    number: int, sessions: Mapping[str, Mapping[str, Sequence[tuple[str, str | list[str]]]]]
) -> Iterator[tuple[Key, NewContext, list[str]]]:
    """Each fact of a conversation, and the turns that it was made from."""
    for session, speakers in sessions.items():
        if _SESSION.match(session) is None:
            continue
        for speaker, facts in speakers.items():
            for place, (fact, turns) in enumerate(facts):
                name = f"{number}-{session}-{speaker}-{place}"
                # A document, so that each stays apart and has its own judgement.
                new = NewContext(
                    title="",
                    text=fact,
                    raw_type="observation",
                    raw_id=name,
                    memory_layer=MemoryLayer.SEMANTIC,
                )
                made_from = _TURN.findall(str(turns))
                yield Key(MEMORY, name), new, [f"{number}-{turn}" for turn in made_from]


def together(collections: Iterable[Collection]) -> Collection:
    """All of them as one."""
    merged = Collection("mixed")
    for collection in collections:
        merged.stored.extend(collection.stored)
        merged.questions.extend(collection.questions)
    return merged


def measure(
    collection: Collection,
    views: Sequence[View],
    changes: Mapping[str, Change],
    embedder: RememberedEmbedder,
) -> Iterator[Report]:
    """Stores a collection in a fresh library, asks it in each way, and scores both orders."""
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), embedder)
        shelf = library.shelf(Identity())
        keys = {shelf.add(new).context.id: key for key, new in collection.stored}
        while library.indexer.step():
            pass
        for view in views:
            yield from _compare(library, keys, collection.questions, view, changes)
        library.close()


def _compare(
    library: Library,
    keys: Mapping[str, Key],
    questions: Sequence[Asked],
    view: View,
    changes: Mapping[str, Change],
) -> Iterator[Report]:
    before: list[tuple[float, float]] = []
    after: dict[str, list[tuple[float, float]]] = {name: [] for name in changes}
    for asked in questions:
        judged = {key: grade for key, grade in asked.judged.items() if key.startswith(view.answers)}
        if not judged or view.kind not in {"", asked.kind}:
            continue
        hits = library.engine.search(Identity(), asked.text, view.criteria, DEEP).hits
        before.append(_score(hits, keys, judged))
        best, rest = hits[:CANDIDATES], hits[CANDIDATES:]
        by_meaning = library.engine.reads(asked.text)
        origins = [_origin(keys[hit.context.id], view.sources) for hit in best]
        candidates = candidates_of(best, origins, by_meaning=by_meaning)
        for name, change in changes.items():
            changed = [
                change(candidate, hit, asked.text)
                for candidate, hit in zip(candidates, best, strict=True)
            ]
            ranked = [best[index] for index, _ in rerank(changed)]
            after[name].append(_score([*ranked, *rest], keys, judged))
    for name, scores in after.items():
        yield Report(
            name=view.name,
            variant=name,
            ndcg_10=compare([score for score, _ in before], [score for score, _ in scores]),
            recall_5_before=statistics.fmean(found for _, found in before),
            recall_5_after=statistics.fmean(found for _, found in scores),
        )


def _origin(key: Key, sources: int) -> str:
    """Where a result comes from; where sources are given, one of them at random."""
    return str(zlib.crc32(str(key).encode()) % sources) if sources else key.origin


def _score(
    hits: Sequence[SearchHit], keys: Mapping[str, Key], judged: Mapping[str, int]
) -> tuple[float, float]:
    ranked = list(dict.fromkeys(str(keys[hit.context.id]) for hit in hits))
    return ndcg(ranked, judged, 10), recall(ranked, judged, 5)


def _as_built(candidate: Candidate, _hit: SearchHit, _query: str) -> Candidate:
    return candidate


def _raw_cosine(candidate: Candidate, hit: SearchHit, _query: str) -> Candidate:
    if candidate.similarity is None or hit.dense is None:
        return candidate
    return replace(candidate, similarity=max(hit.dense, 0.0))


def _counted_words(candidate: Candidate, hit: SearchHit, query: str) -> Candidate:
    words = set(terms_of(query).values())
    return replace(candidate, words=len(hit.matched_terms) / len(words) if words else 0.0)


def _alone(candidate: Candidate, _hit: SearchHit, _query: str) -> Candidate:
    return replace(candidate, around=None)


def _of_one_origin(candidate: Candidate, _hit: SearchHit, _query: str) -> Candidate:
    return replace(candidate, origin="")


def _long_enough(candidate: Candidate, _hit: SearchHit, _query: str) -> Candidate:
    return replace(candidate, length=ENOUGH_CHARS)


VARIANTS: Mapping[str, Change] = {
    "": _as_built,
    "(raw cosine)": _raw_cosine,
    "(words counted)": _counted_words,
    "(no surroundings)": _alone,
    "(no diversity)": _of_one_origin,
    "(no length)": _long_enough,
}

if __name__ == "__main__":
    main()
