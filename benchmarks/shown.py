"""How often what is shown of a hit has the answer.

    python -m benchmarks.shown --squad FILE [FILE ...] [--questions 400] [--characters 240 600]

The files are in SQuAD's form, such as XQuAD's (xquad.en.json, xquad.de.json, xquad.zh.json, from
https://github.com/google-deepmind/xquad). The passage of each question is shown among four others
of its article, and questions on tables, lists and paragraphs of our own pages are asked beside
them. Each line has the share of questions whose answer stands in as many characters of the
passage's beginning, and of the sentences that are chosen; and the processor time of a question with
its five passages.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storage.reading.chunk import chunk
from storage.retrieval.snippets import Passage, snippets

DOCS = Path(__file__).parents[1] / "docs"
OTHERS = 4
SEED = 3

OURS = (
    ("clients.md", "What do Claude Code and Codex get by default?", "text alone"),
    ("clients.md", "Where is the configuration of Cursor kept?", ".cursor/mcp.json"),
    ("query.md", "Where is looked for a filter by metadata?", "In knowledge"),
    ("query.md", "How long is an answer cached?", "five minutes"),
    ("query.md", "How old may the earlier question of a follow-up be?", "ten minutes"),
    ("query.md", "What does the weight of the variety of origins come to?", "0.15"),
    ("settings.md", "What decides whether calls answer with text or JSON?", "results"),
    ("shell.md", "What becomes of bytes that are not UTF-8?", "U+FFFD"),
    ("functions.md", "What reads the model of a result with a method to_text?", "to_text()"),
    ("function-context.md", "Which error has .tool and .error_type?", "CallFailedError"),
    ("tools.md", "How many calls does call_tools make at most?", "up to 20"),
    ("gateway.md", "How are images and links of other servers handed on?", "as the server sent"),
    ("run-code.md", "What do programs get whole?", "Programs get results whole"),
    ("architecture.md", "How many error types does a failure have?", "thirteen"),
    ("architecture.md", "What is the only place where settings are read?", "server/app.py"),
    ("own-server.md", "What does the test of the server expect for kale?", "5.0"),
)
"""A page, a question, and the words that answer it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, the passages that were found, the first with the answer, and its wordings."""

    question: str
    passages: tuple[Passage, ...]
    answers: tuple[str, ...]

    def is_in(self, shown: str) -> bool:
        """Whether an answer stands in what is shown, whatever the blanks."""
        return any(_bare(answer) in _bare(shown) for answer in self.answers)


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--squad", type=Path, nargs="+", default=[])
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--characters", type=int, nargs="+", default=[240, 600])
    given = parser.parse_args()
    sets = {path.stem: list(_squad(path)) for path in given.squad}
    print(f"{'questions':26}{'characters':>11}{'beginning':>11}{'sentences':>11}{'ms':>7}")
    for name, judged in {**sets, "our pages": list(_ours())}.items():
        random.Random(SEED).shuffle(judged)  # noqa: S311  # the same choice each time
        for characters in given.characters:
            _measure(name, judged[: given.questions], characters)


def _measure(name: str, judged: list[Judged], characters: int) -> None:
    begin = time.process_time()
    shown = [snippets(each.question, each.passages, characters)[0] for each in judged]
    spent = time.process_time() - begin
    count = len(judged)
    found = sum(each.is_in(text) for each, text in zip(judged, shown, strict=True))
    first = sum(
        each.is_in(each.passages[0].text[: max(len(text), characters // 2)])
        for each, text in zip(judged, shown, strict=True)
    )
    print(
        f"{f'{name} ({count})':26}{characters:11}{first / count:11.3f}{found / count:11.3f}"
        f"{1000 * spent / count:7.2f}"
    )


def _squad(path: Path) -> Iterator[Judged]:
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        texts = [each["context"] for each in article["paragraphs"]]
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            others = [Passage(each) for each in texts if each != text][:OTHERS]
            for asked in paragraph["qas"]:
                answers = tuple(each["text"] for each in asked["answers"])
                yield Judged(asked["question"], (Passage(text), *others), answers)


def _ours() -> Iterator[Judged]:
    for page, question, answer in OURS:
        pieces = chunk((DOCS / page).read_text(encoding="utf-8"), markdown=True)
        place = [Passage.of(each.content, "", each.heading, page) for each in pieces]
        found = [at for at, each in enumerate(pieces) if answer in each.content]
        if not found:
            raise ValueError(f"{page} does not say {answer!r}.")
        first = place.pop(found[0])
        yield Judged(question, (first, *place[:OTHERS]), (answer,))


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()


if __name__ == "__main__":
    main()
