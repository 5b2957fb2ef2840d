"""Measures what the questions before cost or bring a question.

    python -m benchmarks.sessions [--orders 3]

`benchmarks/sets/sessions.json` has statements in three languages, each with questions that stand
alone and with follow-ups, after the question that they need. Each language is a library, whose
questions are asked in random orders, in sessions of twenty. A question is answered if its statement
is among the hits; `lost` compares with the same question in a session of its own.
"""

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.making import make_embedder
from storage.library import Library
from storage.models import ContextType, Identity, NewContext, NewEntry
from storage.retrieval.routing import UnifiedQuery

SESSION = 20  # questions and pairs of a session
SET = Path(__file__).parent / "sets" / "sessions.json"


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Questions in sessions, and alone.")
    parser.add_argument("--orders", type=int, default=3, help="random orders")
    orders = parser.parse_args().orders
    for language, statements in json.loads(SET.read_text(encoding="utf-8")).items():
        counts = Counter[str]()
        with tempfile.TemporaryDirectory() as directory:
            library = Library(Path(directory), make_embedder(EmbedderOptions()))
            for text, *_ in statements:
                kept = NewContext(title="", text=text, context_type=ContextType.KNOWLEDGE)
                library.shelf(Identity()).add(kept)
            while library.indexer.step():
                pass
            for order in range(orders):
                units = [([one], text) for text, alone, _ in statements for one in alone]
                units += [(pair, text) for text, _, pairs in statements for pair in pairs]
                random.Random(order).shuffle(units)  # noqa: S311  # not for security
                for at, (questions, text) in enumerate(units):
                    session = f"{order} {at // SESSION}"
                    rank = [ask(library, one, text, session) for one in questions][-1]
                    alone = ask(library, questions[-1], text, f"{order} {at} alone")
                    kind = "follow-ups" if len(questions) > 1 else "alone"
                    outcome = {
                        "asked": True,
                        "answered": rank > 0,
                        "first": rank == 1,
                        "lost": alone > 0 and not rank,
                        "no longer first": alone == 1 and rank != 1,
                    }
                    counts.update(f"{kind} {name}" for name, holds in outcome.items() if holds)
            library.close()
        print(language, *(f"{name} {count}" for name, count in sorted(counts.items())), sep="; ")


def ask(library: Library, query: str, text: str, session: str) -> int:
    """Returns the rank of a statement among the hits of a query, 0 if it is not one."""
    unified = UnifiedQuery(text=query, top_k=5, session_id=session)
    hits = library.shelf(Identity()).ask(unified).hits
    found = [hit.passage.chunk.content for hit in hits if hit.passage is not None]
    arguments = {"query": query}
    asked = NewEntry(session_id=session, kind="call", time=time.time(), said="", action="query")
    library.entries.record(Identity(), replace(asked, arguments=arguments, is_recall=True))
    return found.index(text) + 1 if text in found else 0


if __name__ == "__main__":
    main()
