"""Which knowledge merges: statements on different subjects must not, paraphrases should.

    python -m benchmarks.merging [--json]

Each statement is stored about every name, in a library of its own for each language and statement:
how many stay. Then each paraphrase is stored beside its statement: how many merge, or take its
place. What denies a statement, or says it of another number, must stand beside it or, as a new
value of the same subject, take its place.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.index.embedders.minilm import MiniLMEmbedder
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter

SETS = Path(__file__).parent / "sets" / "merging.json"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the statements of one language.

    Attributes:
        language: Which.
        stay: Statements on different subjects that stay.
        subjects: Of how many.
        merged: Paraphrases that merge.
        paraphrases: Of how many.
        merged_wrongly: Denials and other numbers that merge.
        unlike: Of how many.
    """

    language: str
    stay: int
    subjects: int
    merged: int
    paraphrases: int
    merged_wrongly: int
    unlike: int


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Which knowledge merges.")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    as_json = parser.parse_args().json
    embedder = MiniLMEmbedder()
    sets = json.loads(SETS.read_text(encoding="utf-8"))
    reports = [measure(language, given, embedder) for language, given in sets.items()]
    if as_json:
        print(json.dumps([asdict(report) for report in reports]))
        return
    for report in reports:
        print(
            f"{report.language}: {report.stay} of {report.subjects} on different subjects stay, "
            f"{report.merged} of {report.paraphrases} paraphrases merge, "
            f"{report.merged_wrongly} of {report.unlike} that say something else do"
        )


def measure(language: str, given: dict[str, list[list[str]]], embedder: MiniLMEmbedder) -> Report:
    """Stores what a language has."""
    stay = 0
    names = [name for line in given["names"] for name in line]
    statements = [statement for statement, *_ in given["statements"]]
    for statement in statements:
        with _shelf(embedder) as shelf:
            for name in names:
                _outcome(shelf, statement.format(name))
            stay += shelf.count(SearchFilter())
    same, unlike = (
        Counter(_pairs(given[kind], names, embedder)) for kind in ("paraphrases", "unlike")
    )
    return Report(
        language=language,
        stay=stay,
        subjects=len(statements) * len(names),
        merged=same["merged"],
        paraphrases=same.total(),
        merged_wrongly=unlike["merged"],
        unlike=unlike.total(),
    )


def _pairs(
    pairs: Sequence[Sequence[str]], names: Sequence[str], embedder: MiniLMEmbedder
) -> Iterator[str]:
    """What becomes of the second of each pair, beside the first."""
    for number, (first, second) in enumerate(pairs):
        with _shelf(embedder) as shelf:
            name = names[number % len(names)]
            _outcome(shelf, first.format(name))
            yield _outcome(shelf, second.format(name))


def _outcome(shelf: Shelf, text: str) -> str:
    new = NewContext(title="", context_type=ContextType.KNOWLEDGE, text=text)
    return shelf.add(new).outcome


@contextmanager
def _shelf(embedder: MiniLMEmbedder) -> Iterator[Shelf]:
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), embedder)
        yield library.shelf(Identity())
        library.close()


if __name__ == "__main__":
    main()
