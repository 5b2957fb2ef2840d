"""The words of tools: weighted fields of their texts, BM25 over the terms, and tools by name.

The score of a tool is the sum over the query's different terms of
`idf(t) * f / (f + k1 * (1 - b + b * length / average length))`, where f is the weighted number of
occurrences of t in the tool's fields, length the sum of them over all terms, and
`idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))` as Lucene has it (N tools, n with the term). It is the
BM25F of Robertson, Zaragoza and Taylor (2004, https://doi.org/10.1145/1031171.1031181), without
its constant factor: a tool that held every term endlessly often would reach the sum of the idfs.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from storage.index.lexical import K1, B, idf
from storage.tokenize import STOP_WORDS, fold_accents, tokenize
from tools.core.unicode_safety import encodable
from tools.retrieval.intent import is_verb, synonyms
from tools.retrieval.models import FROM_FILE, ToolRecord, first_sentence, spaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]


ANALYSIS = "terms-1"  # the version of the analysis; cached analyses of other versions are not used

# The weight of a term's occurrence in each field; halves, so that sums are exact.
FIELD_WEIGHTS = {
    "names": 2.0,
    "description": 1.0,
    "tags": 1.0,
    "parameters": 1.0,
    "parameter_texts": 0.5,
}

VERB_WEIGHT = 0.6  # of a verb, relative to other terms
SYNONYM_WEIGHT = 0.6  # of a synonym, relative to the term of the query
MAX_CHARS = 4_000  # maximum characters of a field that are read; enough to say what a tool does
MAX_TEXT_CHARS = 1_500  # maximum characters that the static embedder gets
MAX_BRIEF_CHARS = 400  # maximum characters that MiniLM gets
MAX_DEPTH = 4  # maximum levels of nested parameters that are read
MAX_PARAMETERS = 200
_NESTED = ("items", "additionalProperties")
_CHOICES = ("anyOf", "oneOf", "allOf", "prefixItems")
MAX_WORDS = 6  # maximum words of a query that are tried as one name, written with spaces
MIN_PREFIX = 2  # minimum letters of a name's beginning, if the query consists of nothing else
MIN_PREFIX_INSIDE = 4  # minimum letters of it inside a longer query, written as an identifier
_WORD = re.compile(r"(?P<quote>[`\"'])\w[\w.:-]*(?P=quote)|\w(?:[\w.:-]*\w)?")
_JOINED = re.compile(r"(?<!\w)\d*[^\W\d]\w*(?:_|[.:]+)\w")  # from its start: linear
_IDENTIFIER = re.compile(rf"{_JOINED.pattern}|[a-z][A-Z]|[^\W\d_]-?\d|[^\W\d]-[^\W\d]|^[`\"']")
_SERVER = re.compile(r"^.*(?:__|[.:])")


def fields_of(record: ToolRecord) -> dict[str, str]:
    """Returns the text of each field of a tool; equal texts have equal terms."""
    found = list(_parameters(record.parameters))
    tags = (*record.tags, *record.capabilities, record.server)
    names = dict.fromkeys((record.bare_name, *record.aliases))
    texts = {
        "names": "\n".join(names),
        "description": record.description,
        "tags": "\n".join(tags),
        "parameters": "\n".join(name for name, _ in found),
        "parameter_texts": "\n".join(text for _, text in found),
    }
    return {name: text[:MAX_CHARS] for name, text in texts.items()}


def terms_of(fields: Mapping[str, str]) -> dict[str, float]:
    """Returns the terms of all fields with their weighted number of occurrences."""
    terms: defaultdict[str, float] = defaultdict(float)
    for name, weight in FIELD_WEIGHTS.items():
        for term in tokenize(fields[name]):
            terms[term] += weight
    return dict(terms)


def brief_text(record: ToolRecord) -> str:
    """Returns a tool's text for MiniLM: its name in words and its first sentence."""
    text = f"{spaced(record.bare_name)}: {first_sentence(record.description[:MAX_TEXT_CHARS])}"
    return encodable(text[:MAX_BRIEF_CHARS])


def full_text(record: ToolRecord) -> str:
    """Returns a tool's text for the static embedder: also its tags and parameter names."""
    parameters = ", ".join(spaced(name) for name, _ in _parameters(record.parameters))
    tags = ", ".join((*record.tags, *record.capabilities))
    named = f"{spaced(record.bare_name)}: {record.description}"[:MAX_TEXT_CHARS]
    text = " ".join(filter(None, (named, tags, parameters)))
    return encodable(text[:MAX_TEXT_CHARS])


def _parameters(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yields names and descriptions of parameters, outer ones first, up to a limit."""
    level: list[Any] = [schema]
    left = MAX_PARAMETERS
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for each in level:
            if not isinstance(each, Mapping):
                continue
            properties = each.get("properties")
            for name, said in properties.items() if isinstance(properties, Mapping) else ():
                if not left:
                    return
                left -= 1
                described = said.get("description") if isinstance(said, Mapping) else None
                yield str(name), described if isinstance(described, str) else ""
                inner.append(said)
            inner += _subschemas(each)
        level = inner


def _subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in _NESTED:
        yield schema.get(word)
    for word in _CHOICES:
        choices = schema.get(word)
        yield from choices if isinstance(choices, list) else ()
    defined = schema.get("$defs")
    yield from defined.values() if isinstance(defined, Mapping) else ()


class Postings:
    """The terms of each tool; tools are known by their slot, a small number."""

    def __init__(self) -> None:
        self._weights: dict[str, dict[int, float]] = {}
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths = array("d")  # by slot; 0 if free
        self._total = 0.0
        self._arrays: dict[str, tuple[Ints, Floats]] = {}
        self._gains: dict[str, tuple[Ints, Floats]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, term: str) -> bool:
        return term in self._weights

    def add(self, slot: int, terms: Mapping[str, float]) -> None:
        """Adds a tool in a free slot, given the weights of its terms."""
        names = tuple(map(sys.intern, terms))  # shares one string per term
        for term, weight in zip(names, terms.values(), strict=True):
            self._weights.setdefault(term, {})[slot] = weight
            self._arrays.pop(term, None)
        self._terms[slot] = names
        if slot >= len(self._lengths):
            self._lengths.extend([0.0] * (slot + 1 - len(self._lengths)))
        self._lengths[slot] = sum(terms.values())
        self._total += self._lengths[slot]
        self._gains.clear()

    def remove(self, slot: int) -> None:
        """Removes a tool if it exists, and terms that no other tool has."""
        if slot not in self._terms:
            return
        for term in self._terms.pop(slot):
            holders = self._weights[term]
            del holders[slot]
            self._arrays.pop(term, None)
            if not holders:
                del self._weights[term]
        self._total -= self._lengths[slot]
        self._lengths[slot] = 0.0
        self._gains.clear()

    def idf(self, term: str) -> float:
        """Returns the most that a term can add to a score: its inverse document frequency.

        It is highest for an unknown term, and lower for a verb.
        """
        own = self._idf(term)
        if term not in self._weights:
            others = [SYNONYM_WEIGHT * self._idf(each) for each in self._synonyms(term)]
            own = max(others, default=own)
        return own * (VERB_WEIGHT if is_verb(term) else 1.0)

    def _idf(self, term: str) -> float:
        return idf(len(self), len(self._weights.get(term, ())))

    def _synonyms(self, term: str) -> list[str]:
        return [each for each in synonyms(term) if each in self._weights]

    def scores(self, terms: Iterable[str], size: int) -> Floats:
        """Returns the scores of all slots below `size` for distinct terms.

        A tool with synonyms of a term gets less for the best of them than for the term. Verbs count
        less than other terms, since the actions of tools are compared as well.
        """
        import numpy as np

        scores = np.zeros(size, dtype=np.float32)
        for term in terms:
            weight = np.float32(VERB_WEIGHT if is_verb(term) else 1.0)
            known = self._synonyms(term)
            best = np.zeros(size, dtype=np.float32) if known else scores
            for each in known:
                slots, gains = self._gain(each)
                share = SYNONYM_WEIGHT * min(self._idf(term) / self._idf(each), 1.0)
                best[slots] = np.maximum(best[slots], gains * np.float32(share))
            if term in self._weights:
                slots, gains = self._gain(term)
                if known:
                    best[slots] = np.maximum(best[slots], gains)
                else:
                    scores[slots] += gains * weight
            if known:
                scores += best * weight
        return scores

    def _gain(self, term: str) -> tuple[Ints, Floats]:
        """Returns the slots that have a term, and what it adds to their scores."""
        import numpy as np

        if term not in self._gains:
            slots, weights = self._array(term)
            lengths = np.array(self._lengths)[slots]  # a copy, since a view would prevent growing
            norms = K1 * (1 - B + B * lengths * (len(self) / self._total))
            gains = self._idf(term) * weights / (weights + norms)
            self._gains[term] = slots, gains.astype(np.float32)
        return self._gains[term]

    def _array(self, term: str) -> tuple[Ints, Floats]:
        import numpy as np

        if term not in self._arrays:
            holders = self._weights[term]
            self._arrays[term] = (
                np.fromiter(holders, np.int64, len(holders)),
                np.fromiter(holders.values(), np.float32, len(holders)),
            )
        return self._arrays[term]


@dataclass
class Mentions:
    """The slots of the tools that a query names, in its order."""

    # Those that are clearly meant, by their full name.
    named: dict[int, None] = field(default_factory=dict)
    begun: dict[int, None] = field(default_factory=dict)  # those whose name the query begins
    # For each word that is a tool's name but may mean something else, the slots.
    passing: list[list[int]] = field(default_factory=list)

    def within(self, allowed: Container[int]) -> Mentions:
        """Returns the mentions of the allowed slots."""
        return Mentions(
            named={slot: None for slot in self.named if slot in allowed},
            begun={slot: None for slot in self.begun if slot in allowed},
            passing=[[slot for slot in slots if slot in allowed] for slots in self.passing],
        )


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a query, as written and in the form in which names are compared."""

    text: str
    key: str

    @property
    def is_identifier(self) -> bool:
        """Returns whether it is hardly an ordinary word; `to-do` and `mp3` may be."""
        return _IDENTIFIER.search(self.text) is not None

    @property
    def is_joined(self) -> bool:
        """Returns whether it can only be a name: `create_issue`, `github.create`."""
        return _JOINED.search(self.text) is not None

    @property
    def is_telling(self) -> bool:
        return self.key not in STOP_WORDS


class Names:
    """All names of tools, without case, accents and separators."""

    def __init__(self) -> None:
        self._slots: dict[str, dict[int, None]] = {}
        self._sorted: list[str] = []

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds the names of a tool."""
        for key in _keys_of(record):
            if key not in self._slots:
                insort(self._sorted, key)
            self._slots.setdefault(key, {})[slot] = None

    def remove(self, slot: int, record: ToolRecord) -> None:
        """Removes the names of a tool."""
        for key in _keys_of(record):
            del self._slots[key][slot]
            if not self._slots[key]:
                del self._slots[key]
                del self._sorted[bisect_left(self._sorted, key)]

    def mentioned(self, query: str) -> Mentions:
        """Returns the tools that a query names.

        A name is clearly meant if it is written as an identifier, in quotes or in several words. An
        ordinary word that happens to be a name ("search", "now") only counts if nothing else is
        asked.
        """
        words = [_Word(found[0], _key(found[0])) for found in _WORD.finditer(query)]
        mentions = Mentions()
        rest = [word for word in words if word.is_telling]
        alone: list[str] = []
        for first, last, key in self._spans(words):
            span = words[first:last]
            rest = [word for word in rest if word not in span]
            if len(span) > 1 or span[0].is_identifier:
                mentions.named.update(self._slots[key])
            else:
                alone.append(key)
        for key in alone:
            if rest:
                mentions.passing.append(list(self._slots[key]))
            else:
                mentions.named.update(self._slots[key])
        mentions.begun.update(dict.fromkeys(self._slots_by_prefix(query, words)))
        return mentions

    def _spans(self, words: list[_Word]) -> Iterator[tuple[int, int, str]]:
        """Yields the names in a query, longest match first: word range (end exclusive) and key."""
        at = 0
        while at < len(words):
            last, key = self._longest(words, at)
            if key:
                yield at, last, key
            at = last

    def _longest(self, words: list[_Word], at: int) -> tuple[int, str]:
        for last in range(min(at + MAX_WORDS, len(words)), at, -1):
            span = words[at:last]
            if len(span) > 1 and sum(word.is_telling for word in span) < 2:  # noqa: PLR2004  # "help me" is not a name
                continue
            key = "".join(word.key for word in span)
            if key in self._slots and (len(span) > 1 or span[0].is_telling):
                return last, key
        own = _key(_SERVER.sub("", words[at].text))
        return at + 1, own if own in self._slots and own != words[at].key else ""

    def _slots_by_prefix(self, query: str, words: list[_Word]) -> Iterator[int]:
        whole = _key(query)
        begun = {whole} if len(whole) >= MIN_PREFIX else set()
        begun.update(
            word.key for word in words if word.is_joined and len(word.key) >= MIN_PREFIX_INSIDE
        )
        for prefix in _outermost(begun):
            yield from self._beginning(prefix)

    def _beginning(self, prefix: str) -> Iterator[int]:
        for at in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            if not self._sorted[at].startswith(prefix):
                return
            yield from self._slots[self._sorted[at]]


def _outermost(prefixes: Iterable[str]) -> Iterator[str]:
    """Yields the prefixes not covered by a shorter one, whose matches include theirs."""
    outer = ""
    for prefix in sorted(prefixes):
        if not outer or not prefix.startswith(outer):
            outer = prefix
            yield prefix


def _keys_of(record: ToolRecord) -> set[str]:
    """Returns the keys of a tool's names, with and without its server, and its aliases."""
    own = record.tool_id.removeprefix(FROM_FILE)  # the prefix is not part of its name
    names = {own, record.name, record.bare_name, *record.aliases}
    names.add(f"{record.server}{record.bare_name}")
    return {key for key in map(_key, names) if key}


def _key(name: str) -> str:
    return "".join(filter(str.isalnum, fold_accents(name).casefold()))
