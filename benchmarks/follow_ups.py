"""What it does to put a question that leans on an earlier one together with that.

    python -m benchmarks.follow_ups [--questions FILE ...] [--dialogues FILE]
                                    [--conversations FILE] [--pairs FILE ...] [--json]

`--questions` are in SQuAD's form and named as XQuAD names them (xquad.LANGUAGE.json, from
https://github.com/google-deepmind/xquad). Each two successive questions on a paragraph become

- `pronoun` and `left out`: the name that both share is a pronoun in the second, or is not there;
- `same`: the second as it is; it can stand alone and may not be found worse;
- `unrelated`: the second as it is after a question on another article, the same;
- `pronoun, unrelated`: the first of these after a question on another article. What it points to
  was never said, so that rewriting can only lose.

`--dialogues` is the `reference.jsonl` of MTRAG-UN's generation tasks (from
https://github.com/IBM/mt-rag-benchmark): the last questions of real conversations, and the passages
that answer them among those of all. `--conversations` is LoCoMo's JSON (see
`benchmarks.conversations`): each two successive questions about a speaker, as they are (`same`) and
with a pronoun for the name in the second, among the turns of that conversation.

`--pairs` are lines of JSON, each with a `language`, an `earlier` query, a `query` and whether it
`leans` on that (tests/storage/retrieval/data): how many are told apart, and which are not.

Where the form of a question leaves room for doubt, what either way finds decides, as in `query`.
Of each kind: all questions, then those that were rewritten. Intervals are of the difference of
NDCG@10.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.conversations import as_events, read_locomo
from benchmarks.paired import Comparison, compare, row
from benchmarks.retrieval import ndcg, read_jsonl, recall
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity, NewContext, SearchFilter, SearchHit
from storage.retrieval.follow_ups import Completion, completed, is_follow_up
from storage.tokenize import STOP_WORDS, is_spaceless

DEEP = 30
"""Chunks ranked."""

SHOWN = 5
"""Hits among which the surest is looked for."""

SEED = 3

PRONOUNS = {"en": ("it", "its"), "de": ("es", "sein"), "zh": ("它", "它的")}
"""By language; the second stands for a name in the genitive."""

_WORD = re.compile(r"\w+(?:[-\u2019']\w+)*")
_GENITIVE = re.compile(r"['\u2019]s\b")
_ARTICLE = re.compile(r"\b(?:the|an?|der|die|das|dem|den|des)\s+$", re.IGNORECASE)
_NAME_ENDS = re.compile(r"^[的是在了和年月有]|[的是在了和]$")
_ASKING = re.compile(r"[谁哪几什么怎多少]|如何|时候")


@dataclass(frozen=True, slots=True)
class Case:
    """A question after others, and what answers it."""

    kind: str
    user: str
    earlier: Sequence[str]
    query: str
    answers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Collection:
    """What is stored for each user, by name, and the questions."""

    stored: dict[str, list[tuple[str, NewContext]]] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)


class Scores(NamedTuple):
    """How well one question was answered."""

    ndcg_10: float
    recall_1: float
    recall_5: float


@dataclass(frozen=True, slots=True)
class Report:
    """One kind of question, as it was asked and as it was rewritten.

    Attributes:
        kind: Which, and of what data.
        rewritten: Whether only those that were rewritten count.
        ndcg_10: Both, compared.
        before: Means without rewriting.
        after: Means with it.
    """

    kind: str
    rewritten: bool
    ndcg_10: Comparison
    before: Scores
    after: Scores


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What the rewriting of follow-ups does.")
    parser.add_argument("--questions", type=Path, nargs="+", default=[], help="as XQuAD has them")
    parser.add_argument("--dialogues", type=Path, help="MTRAG-UN's reference.jsonl")
    parser.add_argument("--conversations", type=Path, help="LoCoMo's JSON")
    parser.add_argument("--pairs", type=Path, nargs="+", default=[], help="told apart, or not")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    for path in arguments.pairs:
        tell_apart(path)
    collections = [read_questions(path) for path in arguments.questions]
    if arguments.dialogues is not None:
        collections.append(read_dialogues(arguments.dialogues))
    if arguments.conversations is not None:
        collections.append(read_conversations(arguments.conversations))
    reports = [report for collection in collections for report in measure(collection)]
    if arguments.json:
        print(json.dumps([asdict(report) for report in reports]))
        return
    for report in reports:
        name = f"{report.kind}{' (rewritten)' if report.rewritten else ''}"
        before, after = report.before, report.after
        recalls = f"R@1 {before.recall_1:.3f} {after.recall_1:.3f}"
        recalls += f" R@5 {before.recall_5:.3f} {after.recall_5:.3f}"
        print(row(name, report.ndcg_10), recalls)


def tell_apart(path: Path) -> None:
    """Prints how many pairs are completed or left alone as they should be, and the others."""
    pairs = list(read_jsonl(path))
    right = [is_follow_up(pair["query"]) is pair["leans"] for pair in pairs]
    print(f"{path.stem}: {sum(right)} of {len(right)} right")
    for pair, is_right in zip(pairs, right, strict=True):
        if not is_right:
            print(f"  {pair['language']} {'leans' if pair['leans'] else 'stands'}: {pair['query']}")


def read_questions(path: Path) -> Collection:
    """Paragraphs and the questions on them, two by two."""
    language = path.stem.rsplit(".", maxsplit=1)[-1]
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    found = Collection()
    chance = random.Random(SEED)  # noqa: S311  # the same cases each time, no secret
    for number, article in enumerate(articles):
        for place, paragraph in enumerate(article["paragraphs"]):
            name = f"{number}-{place}"
            new = NewContext(title="", text=paragraph["context"], raw_type="x", raw_id=name)
            found.stored.setdefault(language, []).append((name, new))
            for first, second in pairwise(asked["question"] for asked in paragraph["qas"]):
                elsewhere = chance.choice([each for each in articles if each is not article])
                other = chance.choice(elsewhere["paragraphs"])["qas"][0]["question"]
                for kind, before, query in _pairs(first, second, other, language):
                    named = f"{language} {kind}"
                    found.cases.append(Case(named, language, [before], query, frozenset({name})))
    return found


def read_dialogues(path: Path) -> Collection:
    """The last questions of conversations, and all passages that answer any."""
    found = Collection()
    passages = {}
    for task in read_jsonl(path):
        for passage in task["contexts"]:
            name, text = passage["document_id"], passage["text"]
            passages[name] = NewContext(title="", text=text, raw_type="x", raw_id=name)
        said = [turn["text"] for turn in task["input"] if turn["speaker"] == "user"]
        answers = frozenset(passage["document_id"] for passage in task["contexts"])
        if answers and len(said) > 1:
            found.cases.append(Case("dialogues", "dialogues", said[:-1], said[-1], answers))
    found.stored["dialogues"] = list(passages.items())
    return found


def read_conversations(path: Path) -> Collection:
    """Turns of LoCoMo's conversations, each another user's, and successive questions about them."""
    found = Collection()
    for number, conversation in enumerate(read_locomo(path)):
        user = f"conversation-{number}"
        sessions: dict[str, list[Any]] = {}
        for turn in conversation.turns:
            sessions.setdefault(turn.session, []).append(turn)
        found.stored[user] = [
            (turn.id, new) for turns in sessions.values() for new, (turn,) in as_events(turns)
        ]
        names = {turn.speaker for turn in conversation.turns}
        for first, second in pairwise(conversation.questions):
            before, query = conversation.questions[first], conversation.questions[second]
            answers = frozenset(conversation.qrels[second])
            found.cases.append(Case("conversations same", user, [before], query, answers))
            shared = [name for name in names if name in _words(before) & _words(query)]
            if len(shared) == 1:
                name = re.escape(shared[0])
                owned = re.sub(rf"\b{name}['\u2019]s\b", "her", query)
                pointing = re.sub(rf"\b{name}\b", "she", owned)
                case = Case("conversations pronoun", user, [before], pointing, answers)
                found.cases.append(case)
    return found


def measure(collection: Collection) -> Iterator[Report]:
    """Stores everything in a fresh library and asks each question twice."""
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), MiniLMEmbedder())
        names = {}
        for user, stored in collection.stored.items():
            shelf = library.shelf(Identity(user_id=user))
            for name, new in stored:
                if new.text.strip():
                    names[shelf.add(new).context.id] = name
        while library.indexer.step():
            pass

        questioner = _Questioner(library, names)
        answered: dict[str, list[tuple[bool, Scores, Scores]]] = {}
        for case in collection.cases:
            answered.setdefault(case.kind, []).append(questioner.both_ways(case))
        library.close()
    for kind, rows in answered.items():
        yield _report(kind, rows, rewritten=False)
        fired = [each for each in rows if each[0]]
        if fired:
            yield _report(kind, fired, rewritten=True)


class _Questioner:
    """Asks what is stored in a library.

    Args:
        library: Where it is stored.
        names: What is stored, by id.
    """

    def __init__(self, library: Library, names: Mapping[str, str]) -> None:
        self._library = library
        self._names = names

    def both_ways(self, case: Case) -> tuple[bool, Scores, Scores]:
        """Whether a question is completed; how well it is answered as it is, and as it is asked."""
        whole = completed(case.query, case.earlier)
        alone = self._find(case, case.query)
        before = self._score(case, alone)
        if not self._leans(case, whole, alone):
            return False, before, before
        return True, before, self._score(case, self._find(case, whole))

    def _leans(self, case: Case, whole: str, alone: Sequence[SearchHit]) -> bool:
        if whole == case.query or is_follow_up(case.query):
            return whole != case.query
        confidence = self._library.confidence
        sure = max(confidence.rate(case.query, alone[:SHOWN]), default=0.0)
        completion = Completion(self._library.engine, confidence)
        return completion.is_surer(
            Identity(user_id=case.user), case.query, whole, SearchFilter(), sure
        )

    def _find(self, case: Case, query: str) -> Sequence[SearchHit]:
        identity = Identity(user_id=case.user)
        return self._library.engine.search(identity, query, SearchFilter(), DEEP).hits

    def _score(self, case: Case, hits: Sequence[SearchHit]) -> Scores:
        ranked = list(dict.fromkeys(self._names[hit.context.id] for hit in hits))
        judged = dict.fromkeys(case.answers, 1)
        return Scores(
            ndcg(ranked, judged, 10), recall(ranked, judged, 1), recall(ranked, judged, 5)
        )


def _report(kind: str, rows: Sequence[tuple[bool, Scores, Scores]], *, rewritten: bool) -> Report:
    before, after = [each[1] for each in rows], [each[2] for each in rows]
    return Report(
        kind=kind,
        rewritten=rewritten,
        ndcg_10=compare([each.ndcg_10 for each in before], [each.ndcg_10 for each in after]),
        before=_mean(before),
        after=_mean(after),
    )


def _mean(scores: Sequence[Scores]) -> Scores:
    return Scores(*map(statistics.fmean, zip(*scores, strict=True)))


def _pairs(first: str, second: str, other: str, language: str) -> Iterator[tuple[str, str, str]]:
    """The kinds of case that two questions give: kind, earlier question, question."""
    yield "unrelated", other, second
    yield "same", first, second
    span = _shared_run(first, second) if is_spaceless(second) else _shared_name(first, second)
    if span is None:
        return
    pronoun, genitive = PRONOUNS.get(language, PRONOUNS["en"])
    before, after = _ARTICLE.sub("", second[: span[0]]), second[span[1] :]
    owned = _GENITIVE.match(after)
    rest = after[owned.end() :] if owned else after
    pointing = f"{before}{genitive if owned else pronoun}{rest}"
    yield "pronoun", first, pointing
    yield "pronoun, unrelated", other, pointing
    yield "left out", first, " ".join(f"{before}{rest}".split()).removeprefix("的")


def _shared_name(first: str, second: str) -> tuple[int, int] | None:
    """Where the longest run of words of the second that the first has stands.

    It neither begins nor ends with a function word, and is a name, or has several words.
    """
    known = _folded(_WORD.findall(first))
    words = list(_WORD.finditer(second))
    best: tuple[int, int] | None = None
    for start, end in _runs(len(words)):
        run = [word.group() for word in words[start:end]]
        folded = _folded(run)
        if {folded[0], folded[-1]} & STOP_WORDS or not _stands_in(folded, known):
            continue
        named = any(word[0].isupper() for word in run[start == 0 :])
        if (named or len(run) > 1) and (best is None or end - start > best[1] - best[0]):
            best = start, end
    return (words[best[0]].start(), words[best[1] - 1].end()) if best else None


def _shared_run(first: str, second: str) -> tuple[int, int] | None:
    """The same where words are not set apart: at least two characters, nothing that asks."""
    best: tuple[int, int] | None = None
    for start, end in _runs(len(second)):
        run = second[start:end]
        if (
            len(run) > max(1, best[1] - best[0] if best else 1)
            and run in first
            and re.fullmatch(r"[\w·]+", run)
            and not _ASKING.search(run)
            and not _NAME_ENDS.search(run)
        ):
            best = start, end
    return best


def _runs(length: int) -> Iterator[tuple[int, int]]:
    """All runs in a sequence, by where they start, the longest first."""
    for start in range(length):
        for end in range(length, start, -1):
            yield start, end


def _stands_in(run: Sequence[str], words: Sequence[str]) -> bool:
    return any(words[at : at + len(run)] == run for at in range(len(words)))


def _folded(words: Iterable[str]) -> list[str]:
    return [word.casefold() for word in words]


def _words(text: str) -> set[str]:
    """The words of a text, without a genitive's ending."""
    return {_GENITIVE.sub("", word) for word in _WORD.findall(text)}


if __name__ == "__main__":
    main()
