"""How well turns of conversations, and their sessions, are found, through ingest and search.

    python -m benchmarks.conversations --data FILE|DIR [--as turns|events|documents] [--together]
        [--part odd|even] [--without CUE …]

FILE is LoCoMo's own JSON (https://github.com/snap-research/locomo): a list of conversations with
`session_N`, `session_N_date_time` and `qa`. Questions that have no answer (category 5) or no
evidence are left out; `--adversarial` takes those of category 5 in. Or it is LongMemEval's
(https://github.com/xiaowu0162/LongMemEval): a list of questions, each with the sessions that it is
asked after, and asked at its own date. Left out are those that nothing answers, and those without a
turn that `has_answer`.

DIR is in BEIR form (see `benchmarks.retrieval`): the rows of its `corpus.jsonl` are turns and have,
besides `_id` and `text`, `session` (a name), `position` (a number in the session), `date` (ISO
8601, Unix seconds or as LoCoMo has it) and perhaps `speaker` and `conversation`.

Each conversation is a library of its own, for its questions are about nothing else; `--together`
puts them all into one. `--part` takes every other conversation: weights were found on the even
ones, the first among them. `--as` says how they are stored: a session as one context of turns, each
turn as an event whose source is the session, or a session as one document of plain text, of which
only sessions can be found. Beside the product's search its base is measured, without surroundings;
`--without` leaves some of those out that count in it, such as SPEAKER: they are the weights of
`storage.retrieval.context_boost`.
"""

import argparse
import json
import re
import statistics
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.retrieval import Qrels, ndcg, read_jsonl, read_qrels, recall
from storage.index.embedders.e5 import E5Embedder
from storage.library import Library
from storage.models import ContextType, Identity, NewContext, SearchFilter, Turn
from storage.retrieval import context_boost

DEEP = 200
"""Chunks ranked, so that enough distinct sessions are left."""

SHOWN = 10
"""Chunks asked for where time is measured: what a client asks for."""

ADVERSARIAL = 5
"""LoCoMo's category of questions that the conversation does not answer."""

_WEIGHTS = ["DATE", "NAMED_DATE", "NEIGHBOUR", "QUOTE", "SESSION", "SPEAKER", "TIME"]

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # some stand several in a text, some are misspelt


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn of the data."""

    id: str
    session: str
    date: float
    speaker: str
    text: str

    @property
    def heading(self) -> str:
        """Who, and when."""
        day = _day(self.date)
        return f"{self.speaker}, {day}" if self.speaker else day


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order, and the judged questions about them."""

    turns: tuple[Spoken, ...]
    questions: Mapping[str, str]
    qrels: Qrels
    asked: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over the questions; turns are 0 where only sessions can be found."""

    turn_ndcg_10: float
    turn_recall_10: float
    session_ndcg_10: float
    session_recall_10: float


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured; time in milliseconds."""

    data: str
    stored_as: str
    libraries: int
    turns: int
    questions: int
    base: Quality
    product: Quality
    p50_ms: float


@dataclass(frozen=True, slots=True)
class Answers:
    """What one library answered, question by question, and how long each took in seconds."""

    base: list[Quality]
    product: list[Quality]
    seconds: list[float]


Stored: TypeAlias = tuple[NewContext, Sequence[Spoken]]
"""What is stored, and the turns that its text is made of; none where it is more than they said."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Retrieval quality on conversations.")
    parser.add_argument("--data", type=Path, required=True, help="LoCoMo's JSON, or a folder")
    parser.add_argument("--as", dest="stored_as", choices=sorted(_WAYS), default="turns")
    parser.add_argument("--together", action="store_true", help="one library for all")
    parser.add_argument("--part", choices=["even", "odd"], help="half of the conversations")
    parser.add_argument("--without", nargs="+", choices=_WEIGHTS, default=(), help="weights of 0")
    parser.add_argument("--adversarial", action="store_true", help="with LoCoMo's category 5")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    for weight in arguments.without:
        setattr(context_boost, weight, 0.0)
    report = run(
        arguments.data,
        arguments.stored_as,
        together=arguments.together,
        adversarial=arguments.adversarial,
        part=arguments.part,
    )
    print(json.dumps(asdict(report)) if arguments.json else _table(report))


def run(
    data: Path,
    stored_as: str = "turns",
    *,
    together: bool = False,
    adversarial: bool = False,
    part: str | None = None,
) -> Report:
    """Ingests each conversation into a fresh library, asks its questions, scores the answers."""
    read = list(read_folder(data) if data.is_dir() else read_file(data, adversarial=adversarial))
    if part is not None:
        read = read[part == "odd" :: 2]
    libraries = [merged(read)] if together else read
    answers = [_ask(conversation, stored_as) for conversation in libraries]
    return Report(
        data=data.name,
        stored_as=stored_as,
        libraries=len(libraries),
        turns=sum(len(conversation.turns) for conversation in libraries),
        questions=sum(len(each.base) for each in answers),
        base=_mean([score for each in answers for score in each.base]),
        product=_mean([score for each in answers for score in each.product]),
        p50_ms=1000 * statistics.median(second for each in answers for second in each.seconds),
    )


def read_file(path: Path, *, adversarial: bool = False) -> Iterator[Conversation]:
    """The conversations of a file, LoCoMo's or LongMemEval's."""
    samples = json.loads(path.read_text(encoding="utf-8"))
    if samples and "haystack_sessions" in samples[0]:
        return read_longmemeval(samples)
    return read_locomo(path, adversarial=adversarial)


def read_longmemeval(samples: Iterable[Mapping[str, Any]]) -> Iterator[Conversation]:
    """The questions of LongMemEval, each a conversation of its own with the sessions before it."""
    for sample in samples:
        key = sample["question_id"]
        turns, evidence = [], {}
        dated = zip(sample["haystack_dates"], sample["haystack_sessions"], strict=True)
        ordered = sorted(
            (_seconds(date), number, said) for number, (date, said) in enumerate(dated)
        )
        for when, number, session in ordered:
            name = f"{key}-{sample['haystack_session_ids'][number]}"
            for place, turn in enumerate(session):
                said = Spoken(f"{name}-{place}", name, when, turn["role"], turn["content"])
                turns.append(said)
                if turn.get("has_answer"):
                    evidence[said.id] = 1
        if evidence and not key.endswith("_abs"):
            asked = {key: _seconds(sample["question_date"])}
            yield Conversation(tuple(turns), {key: sample["question"]}, {key: evidence}, asked)


def read_locomo(path: Path, *, adversarial: bool = False) -> Iterator[Conversation]:
    """The conversations of LoCoMo's file; a picture's caption is part of what was said."""
    for number, sample in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        turns = tuple(_locomo_turns(number, sample["conversation"]))
        known = {turn.id for turn in turns}
        questions, qrels = {}, {}
        for index, asked in enumerate(sample["qa"]):
            named = _EVIDENCE.findall(" ".join(asked["evidence"]))
            evidence = {f"{number}-D{int(at)}:{int(turn)}" for at, turn in named} & known
            if evidence and (adversarial or asked["category"] != ADVERSARIAL):
                questions[f"{number}-{index}"] = asked["question"]
                qrels[f"{number}-{index}"] = dict.fromkeys(evidence, 1)
        yield Conversation(turns, questions, qrels)


def read_folder(folder: Path) -> Iterator[Conversation]:
    """The conversations of a folder in BEIR form."""
    qrels = read_qrels(folder / "qrels.tsv")
    texts = {row["_id"]: row["text"] for row in read_jsonl(folder / "queries.jsonl")}
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in read_jsonl(folder / "corpus.jsonl"):
        rows.setdefault(str(row.get("conversation", "")), []).append(row)
    for conversation in rows.values():
        turns = tuple(
            Spoken(
                str(row["_id"]),
                str(row["session"]),
                _seconds(row["date"]),
                row.get("speaker", ""),
                row["text"],
            )
            for row in sorted(
                conversation, key=lambda row: (_seconds(row["date"]), row["position"])
            )
        )
        known = {turn.id for turn in turns}
        own = {query: judged for query, judged in qrels.items() if judged.keys() & known}
        yield Conversation(turns, {query: texts[query] for query in own}, own)


def merged(conversations: Iterable[Conversation]) -> Conversation:
    """All conversations as one."""
    listed = list(conversations)
    return Conversation(
        tuple(turn for each in listed for turn in each.turns),
        {key: text for each in listed for key, text in each.questions.items()},
        {key: judged for each in listed for key, judged in each.qrels.items()},
        {key: moment for each in listed for key, moment in each.asked.items()},
    )


def as_turns(turns: Sequence[Spoken]) -> Iterator[Stored]:
    """A session as one context, as the import of chats stores them."""
    said = tuple(Turn(turn.heading, turn.text) for turn in turns)
    yield _context(turns[0], title="", turns=said), turns


def as_events(turns: Sequence[Spoken]) -> Iterator[Stored]:
    """Each turn as an event of the session, a second after the one before."""
    for second, turn in enumerate(turns):
        event = _context(turn, title=turn.speaker, text=turn.text)
        moment = turns[0].date + second
        yield replace(event, context_type=ContextType.EVENT, event_time=moment), [turn]


def as_documents(turns: Sequence[Spoken]) -> Iterator[Stored]:
    """A session as a document of plain text."""
    text = "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)
    yield _context(turns[0], title=_day(turns[0].date), text=text), []


_WAYS = {"turns": as_turns, "events": as_events, "documents": as_documents}


def _context(first: Spoken, title: str, text: str = "", turns: tuple[Turn, ...] = ()) -> NewContext:
    return NewContext(
        title=title,
        text=text,
        turns=turns,
        event_time=first.date,
        raw_type="session",
        raw_id=first.session,
    )


def _ask(conversation: Conversation, stored_as: str) -> Answers:
    """Asks one library's questions, without surroundings and with them."""
    answers = Answers([], [], [])
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), E5Embedder())
        turn_of = _ingest(library, conversation, stored_as)
        shelf = library.shelf(Identity())
        session_of = {turn.id: turn.session for turn in conversation.turns}
        for key, text in conversation.questions.items():
            judged = conversation.qrels[key]
            judged_sessions = {session_of[turn]: 1 for turn in judged if turn in session_of}
            for scores, around in ((answers.base, False), (answers.product, True)):
                hits = library.engine.search(
                    Identity(),
                    text,
                    SearchFilter(),
                    DEEP,
                    surroundings=around,
                    now=conversation.asked.get(key),
                ).hits
                turns = [turn_of.get((hit.context.id, hit.chunk.position), "") for hit in hits]
                scores.append(
                    Quality(
                        *_score(filter(None, turns), judged),
                        *_score((hit.context.raw_id for hit in hits), judged_sessions),
                    )
                )
            began = time.perf_counter()
            shelf.search(text, SearchFilter(), SHOWN)
            answers.seconds.append(time.perf_counter() - began)
        library.close()
    return answers


def _ingest(
    library: Library, conversation: Conversation, stored_as: str
) -> dict[tuple[str, int], str]:
    """Stores a conversation; answers with the turn that each chunk is of, where it is of one."""
    shelf = library.shelf(Identity())
    sessions: dict[str, list[Spoken]] = {}
    for turn in conversation.turns:
        sessions.setdefault(turn.session, []).append(turn)
    turn_of = {}
    for session in sessions.values():
        for new, turns in _WAYS[stored_as](session):
            starts = [0, *accumulate(len(turn.text) + 2 for turn in turns)]
            context_id = shelf.add(new).context.id
            for chunk in shelf.get(context_id)[1] if turns else ():
                said = turns[bisect_right(starts, chunk.start) - 1]
                turn_of[context_id, chunk.position] = said.id
    while library.indexer.step():
        pass
    return turn_of


def _score(ranked: Iterable[str], judged: Mapping[str, int]) -> tuple[float, float]:
    distinct = list(dict.fromkeys(ranked))
    return ndcg(distinct, judged, 10), recall(distinct, judged, 10)


def _mean(scores: Sequence[Quality]) -> Quality:
    return Quality(*map(statistics.fmean, zip(*map(astuple, scores), strict=True)))


def _day(moment: float) -> str:
    when = datetime.fromtimestamp(moment, UTC)
    return f"{when.day} {when:%B %Y}"


def _seconds(value: str | float) -> float:
    if not isinstance(value, str):
        return float(value)
    if " on " in value:  # as LoCoMo writes it: 1:56 pm on 8 May, 2023
        return datetime.strptime(f"{value} +0000", "%I:%M %p on %d %B, %Y %z").timestamp()
    if weekday := re.fullmatch(r"(\d{4})/(\d\d)/(\d\d)(?: \(\w+\))? ?([\d:]*)", value):
        year, month, day, clock = weekday.groups()  # as LongMemEval does: 2023/05/20 (Sat) 02:21
        value = f"{year}-{month}-{day}T{clock or '00:00'}"
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _locomo_turns(number: int, conversation: Mapping[str, Any]) -> Iterator[Spoken]:
    sessions = [key for key in conversation if re.fullmatch(r"session_\d+", key)]
    for session in sorted(sessions, key=lambda key: int(key.split("_")[1])):
        when = _seconds(conversation[f"{session}_date_time"])
        for turn in conversation[session]:
            caption = turn.get("blip_caption")
            yield Spoken(
                id=f"{number}-{turn['dia_id']}",
                session=f"{number}-{session}",
                date=when,
                speaker=turn["speaker"],
                text=f"{turn['text']} [image: {caption}]" if caption else turn["text"],
            )


def _table(report: Report) -> str:
    lines = [f"{key:18} {value}" for key, value in asdict(report).items() if key not in _COMPARED]
    lines.append(f"{'':18} {'base':>8} {'product':>8}")
    base, product = asdict(report.base), asdict(report.product)
    lines += [f"{key:18} {base[key]:8.3f} {product[key]:8.3f}" for key in base]
    return "\n".join(lines)


_COMPARED = ("base", "product")

if __name__ == "__main__":
    main()
