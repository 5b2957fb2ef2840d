"""How hits look on a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from server.mcp.visible import visible
from storage.retrieval.routing import AS_ASKED, UNSAID
from storage.tokenize import is_spaceless, tokenize
from tools.answers.hits import Coverage

__all__ = ["print_hits", "source_of"]

EXCERPT = 220
"""Characters of a passage that are shown: about three lines of 80 columns."""

LEAD_IN = 40
"""Characters shown before the first matched word."""

INDENT = 4
MATCHED = "bold green"

Span = tuple[int, int]


def print_hits(retrieved: Mapping[str, Any], console: Console | None = None) -> None:
    """Prints a retrieval tool's structured result.

    Args:
        retrieved: The result, as `tools.answers.hits.Retrieved` in JSON.
        console: Where to; by default stdout.
    """
    console = console or Console()
    coverage = retrieved["coverage"]
    note = Coverage.model_validate(coverage).to_text()
    if note:
        console.print(Text(visible(note), "yellow"))
    if looked := _looked(retrieved):
        console.print(Text(visible(looked), "dim"))
    if not retrieved["hits"]:
        empty = "Nothing is stored yet." if not coverage["total"] else "Nothing is close enough."
        narrowed = retrieved.get("scope", "all") != "all"
        console.print(f"{empty} Try --scope all without anything else." if narrowed else empty)
    for number, hit in enumerate(retrieved["hits"], start=1):
        console.print(Text.assemble((f"{number:>2}  ", "dim"), (_place(hit), "bold")))
        source = Text(visible(_origin(hit)), "cyan", overflow="fold")
        for line in (source, _scores(hit), _excerpt(hit)):
            console.print(Padding(line, (0, 0, 0, INDENT)))
        console.print()


def source_of(raw_type: str, raw_id: str) -> str:
    """A source as it is shown and as `toolcrib delete` takes it: a file's name, or KIND: NAME."""
    return visible(raw_id if raw_type == "file" else f"{raw_type}: {raw_id}")


def _looked(answer: Mapping[str, Any]) -> str:
    """Where it was looked for, and how, where that is not plain."""
    parts = []
    if answer.get("scope", "all") != "all" or answer.get("why") not in {None, AS_ASKED, UNSAID}:
        parts.append(f"Looked in {answer['scope']}: {answer['why']}.")
    if answer.get("asked"):
        parts.append(f"Asked as {answer['asked']!r}.")
    if answer.get("cached"):
        parts.append(f"Unchanged since {answer['cached']!r} was asked.")
    return " ".join(parts)


def _origin(hit: Mapping[str, Any]) -> str:
    """Where a hit comes from: its memory or the source of the settings, and its own source."""
    layer = hit.get("layer")
    if layer == "l1":
        return f"memory l1, {hit['event_time'][:19].replace('T', ' ')} UTC"
    named = f"memory {layer}" if layer else hit["origin"]
    if not hit["raw_type"]:
        return named
    own = source_of(hit["raw_type"], hit["raw_id"])
    return own if named in {"documents", "events", "knowledge"} else f"{named}, {own}"


def _place(hit: Mapping[str, Any]) -> str:
    place = " > ".join(part for part in (hit["title"], hit["heading"]) if part)
    return visible(place or hit["context_type"].capitalize())


def _scores(hit: Mapping[str, Any]) -> Text:
    dense = f"{hit['dense']:.3f}" if "dense" in hit else "not yet"
    numbers = f"score {hit['score']:.3f}   dense {dense}   lexical {hit['lexical']:.2f}"
    if not hit["matched"]:
        return Text(f"{numbers}   no word matched")
    words = visible(", ".join(hit["matched"]))
    return Text.assemble(numbers, "   matched ", (words, MATCHED))


def _excerpt(hit: Mapping[str, Any]) -> Text:
    """The part of the passage where most of the query's words stand, with these marked."""
    content = visible(" ".join(hit["content"].split()))
    spans = _matches(content, hit["matched"])
    start = _start(content, spans)
    end = min(len(content), start + EXCERPT)
    if end < len(content):
        end = max(content.rfind(" ", start + EXCERPT // 2, end), start + EXCERPT // 2)
    text = Text(content[start:end])
    for first, last in spans:
        text.stylize(MATCHED, max(first - start, 0), max(last - start, 0))
    return Text.assemble("… " if start else "", text, " …" if end < len(content) else "")


def _matches(content: str, matched: Sequence[str]) -> list[Span]:
    """Where the words stand, in any form that the text analysis takes for the same."""
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


def _start(content: str, spans: Sequence[Span]) -> int:
    """Where to begin, so that the excerpt holds as many matches as it can."""
    if len(content) <= EXCERPT or not spans:
        return 0
    room = EXCERPT - LEAD_IN
    best = max(spans, key=lambda span: sum(span[0] <= first < span[0] + room for first, _ in spans))
    start = max(best[0] - LEAD_IN, 0)
    return 0 if start == 0 else content.rfind(" ", 0, start + 1) + 1
