"""What `benchmarks.tool_retrieval` compares: the tool index, and what others have for the same."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from storage.catalog.catalog import Analyses
from tools.answers.tool_cards import FoundTools
from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.retrieval import SearchQuery, ToolIndex, ToolRecord
from tools.retrieval.catalogue import Found
from tools.retrieval.vectors import bundled_parts

if TYPE_CHECKING:
    from fastmcp.tools.base import Tool

EVERYTHING = "everything"
WITHOUT_MINILM = "without MiniLM"
WORDS = "words only"
FASTMCP = "FastMCP BM25"
RANK_BM25 = "rank-bm25"

RANKERS = (EVERYTHING, WITHOUT_MINILM, WORDS, FASTMCP, RANK_BM25)
"""All of them, the first three being the tool index with all of its parts or with some."""

DEPTH = 10
SHOWN = 5


class Ranker(Protocol):
    """Ranks the tools of one set."""

    def rank(self, query: str) -> list[str]:
        """The ids of the best ten tools, best first."""

    def answer(self, query: str) -> str:
        """What a model is told of the best five; empty where there is no such thing."""


def make_ranker(name: str, records: Sequence[ToolRecord], cache: Analyses) -> Ranker:
    """The ranker of that name over these tools, with all that it prepares done."""
    if name == FASTMCP:
        return FastMCPSearch(records)
    if name == RANK_BM25:
        return RankBM25(records)
    return Indexed(name, records, cache)


class Indexed:
    """The tool index."""

    def __init__(self, name: str, records: Sequence[ToolRecord], cache: Analyses) -> None:
        static, minilm = bundled_parts()
        parts = {EVERYTHING: [static, minilm], WITHOUT_MINILM: [static], WORDS: []}[name]
        self.index = ToolIndex(cache=cache, embedders=parts)
        self.index.add_tools(records)
        self.index.build_index()

    def rank(self, query: str) -> list[str]:
        """The best ten; exact duplicates, which share a place, stand side by side."""
        results = self.index.search(SearchQuery(query_text=query, top_k=DEPTH))
        ids = (each for result in results for each in (result.tool.tool_id, *result.also))
        return list(ids)[:DEPTH]

    def answer(self, query: str) -> str:
        """The cards that `search_tools` answers with."""
        results = self.index.search(SearchQuery(query_text=query, top_k=SHOWN))
        found = [Found(each.tool, _spec(each.tool), each.score) for each in results]
        return FoundTools.of(found).to_text()


class FastMCPSearch:
    """The search of FastMCP's `BM25SearchTransform`, without the protocol around it."""

    def __init__(self, records: Sequence[ToolRecord]) -> None:
        from fastmcp.server.transforms.search import BM25SearchTransform

        names = logging.getLogger("mcp.shared.tool_name_validation")
        names.setLevel(logging.ERROR)  # the sets have names of all kinds
        self._transform = BM25SearchTransform(max_results=DEPTH)
        self._ids: dict[str, str] = {}
        self._tools = [self._tool(record) for record in records]

    def rank(self, query: str) -> list[str]:
        """The best ten."""
        return [self._ids[tool.name] for tool in self._found(query)]

    def answer(self, query: str) -> str:
        """The definitions that its search answers with, as compact JSON."""
        from fastmcp.server.transforms.search import serialize_tools_for_output_json

        told = serialize_tools_for_output_json(self._found(query)[:SHOWN])
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False)

    def _found(self, query: str) -> Sequence[Tool]:
        return asyncio.run(self._transform._search(self._tools, query))  # noqa: SLF001  # its one entry

    def _tool(self, record: ToolRecord) -> Tool:
        from fastmcp.tools.base import Tool

        name = record.name
        while name in self._ids:  # it takes names to be unique
            name += " "
        self._ids[name] = record.tool_id
        return Tool(name=name, description=record.description, parameters=_schema(record))


class RankBM25:
    """BM25Okapi of rank-bm25 over lower-case runs of letters and digits."""

    def __init__(self, records: Sequence[ToolRecord]) -> None:
        from rank_bm25 import BM25Okapi  # as the product imports it

        self._ids = [record.tool_id for record in records]
        self._index = BM25Okapi([_words(_text(record)) or [""] for record in records])

    def rank(self, query: str) -> list[str]:
        """The best ten above zero."""
        scores = self._index.get_scores(_words(query))
        best = scores.argsort(kind="stable")[::-1][:DEPTH]
        return [self._ids[at] for at in best if scores[at] > 0]

    def answer(self, _query: str) -> str:
        """Nothing: it only ranks."""
        return ""


def _spec(record: ToolRecord) -> ToolSpec:
    """A tool as another server lists it; it cannot be called."""
    return ToolSpec(
        name=record.name,
        title=record.name,
        description=record.description,
        input_schema=_schema(record),
        output_schema=None,
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}),
        validate=dict,
        invoke=_refuse,
        source="upstream:benchmark",
    )


def _schema(record: ToolRecord) -> dict[str, Any]:
    return record.parameters or {"type": "object", "properties": {}}


async def _refuse(_arguments: dict[str, Any], _context: RequestContext) -> ToolResult:
    raise NotImplementedError


def _text(record: ToolRecord) -> str:
    properties = (record.parameters or {}).get("properties", {})
    said = (f"{name} {each.get('description', '')}" for name, each in properties.items())
    return " ".join([record.name, record.description, *said])


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())
