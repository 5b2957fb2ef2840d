"""Prints search hits on a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from server.mcp.visible import visible
from storage.retrieval.routing import AS_ASKED, UNSAID
from storage.retrieval.snippets import Passage, snippets
from storage.tokenize import is_spaceless, tokenize
from tools.answers.hits import Coverage

EXCERPT = 240
"""Length of an excerpt: three or four lines of 80 columns."""

INDENT = 4
MATCHED = "bold green"

Span = tuple[int, int]


def print_hits(retrieved: Mapping[str, Any], question: str, console: Console | None = None) -> None:
    """Prints a result of a retrieval tool: `tools.answers.hits.Retrieved` in JSON."""
    console = console or Console()
    coverage = retrieved["coverage"]
    note = Coverage.model_validate(coverage).to_text()
    if note:
        console.print(Text(visible(note), "yellow"))
    if looked := _looked(retrieved):
        console.print(Text(visible(looked), "dim"))
    if not retrieved["hits"]:
        empty = "Nothing is stored yet." if not coverage["total"] else "Nothing fits."
        narrowed = retrieved.get("scope", "all") != "all"
        console.print(f"{empty} Try --scope all without anything else." if narrowed else empty)
    marked = [(f"{number:>2}", hit) for number, hit in enumerate(retrieved["hits"], start=1)]
    if nearest := retrieved.get("nearest"):
        unsure = "Nearest, unsure whether they answer:"
        console.print(unsure if len(nearest) > 1 else "Nearest, though hardly an answer:")
        marked = [(" -", hit) for hit in nearest]
    passages = [_passage(hit) for _, hit in marked]
    shown = snippets(retrieved.get("asked") or question, passages, EXCERPT)
    for (mark, hit), passage, text in zip(marked, passages, shown, strict=True):
        place = " > ".join(filter(None, passage.place)) or hit["context_type"].capitalize()
        console.print(Text.assemble((f"{mark}  ", "dim"), (visible(place), "bold")))
        source = Text(visible(_origin(hit)), "cyan", overflow="fold")
        for line in (source, _scores(hit), _excerpt(text, hit["matched"])):
            console.print(Padding(line, (0, 0, 0, INDENT)))
        console.print()


def source_of(raw_type: str, raw_id: str) -> str:
    """Returns a source as shown and as `toolcrib delete` takes it: a file's name, or KIND: NAME."""
    return visible(raw_id if raw_type == "file" else f"{raw_type}: {raw_id}")


def _looked(answer: Mapping[str, Any]) -> str:
    """Describes the scope and question of a search where they are not obvious."""
    parts = []
    if answer.get("scope", "all") != "all" or answer.get("why") not in {None, AS_ASKED, UNSAID}:
        parts.append(f"Looked in {answer['scope']}: {answer['why']}.")
    if answer.get("asked"):
        parts.append(f"Asked as {answer['asked']!r}.")
    if answer.get("cached"):
        parts.append(f"Unchanged since {answer['cached']!r} was asked.")
    return " ".join(parts)


def _origin(hit: Mapping[str, Any]) -> str:
    """Returns a hit's memory layer or settings source, and its own source."""
    layer = hit.get("layer")
    if layer == "l1":
        return f"memory l1, {hit['event_time'][:19].replace('T', ' ')} UTC"
    named = f"memory {layer}" if layer else hit["origin"]
    if not hit["raw_type"]:
        return named
    own = source_of(hit["raw_type"], hit["raw_id"])
    return own if named in {"documents", "events", "knowledge"} else f"{named}, {own}"


def _scores(hit: Mapping[str, Any]) -> Text:
    dense = f"{hit['dense']:.3f}" if "dense" in hit else "none"
    numbers = f"score {hit['score']:.3f}   dense {dense}   lexical {hit['lexical']:.2f}"
    if not hit["matched"]:
        return Text(f"{numbers}   no word matched")
    words = visible(", ".join(hit["matched"]))
    return Text.assemble(numbers, "   matched ", (words, MATCHED))


def _excerpt(shown: str, matched: Sequence[str]) -> Text:
    """Returns the excerpt of a hit, with the query's words highlighted."""
    content = "\n".join(visible(line) for line in shown.splitlines())
    text = Text(content)
    for start, end in _matches(content, matched):
        text.stylize(MATCHED, start, end)
    return text


def _passage(hit: Mapping[str, Any]) -> Passage:
    file = hit["raw_id"] if hit["raw_type"] == "file" else ""
    return Passage.of(hit["content"], hit["title"], hit["heading"], file)


def _matches(content: str, matched: Sequence[str]) -> list[Span]:
    """Finds the words, in any form that text analysis treats as equal."""
    terms = set(tokenize(" ".join(matched)))
    spans: list[Span] = []
    for word in re.finditer(r"\w+", content):
        if is_spaceless(word[0]):
            pairs = (re.finditer(re.escape(pair), word[0]) for pair in matched)
            spans += [
                (word.start() + pair.start(), word.start() + pair.end())
                for found in pairs
                for pair in found
            ]
        elif not terms.isdisjoint(tokenize(word[0])):
            spans.append(word.span())
    return sorted(spans)
