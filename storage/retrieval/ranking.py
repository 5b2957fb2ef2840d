"""Ranking: combines scores of several kinds into one order, without texts that say the same.

It has all weights except those of the surroundings. A search fuses keyword and semantic scores.
Each kind is scaled to 0..1 over the candidates, BM25 with its minimum fixed at 0, and a chunk gets
`alpha * dense + (1 - alpha) * lexical`. A weighted sum of actual scores was measured better than
rank fusion, which ignores how much better a hit is.

Hits of several origins are reranked by four signals: .40 for similarity to the query, .35 for the
query's words, .15 for how few hits of the same origin come before, and .10 for length, which
penalizes texts too short to be useful. Similarity and words are cosine and BM25 as shares of the
best candidate's, and the surroundings of a passage count as in the search. `benchmarks.rerank`
measures the effect.

For an embedder "the limit of Acme is 30" and "the limit of Globex is 30" are nearly the same
sentence. Their names, numbers, dates, identifiers and negations distinguish them.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from storage.index.embedders.base import DEFAULT_FLOOR, Embedder
from storage.index.embedding_models import understands
from storage.models import Entry, SearchHit
from storage.retrieval.routing import MEMORY
from storage.tokenize import STOP_WORDS, is_spaceless, terms_of

ALPHA = 0.5  # the default weight of the dense score, 0 to 1
CJK_ALPHA = 0.1  # its weight if the embedder does not understand the query's language
CANDIDATES = 100  # candidates of each kind
ENOUGH = 20  # candidates of each kind that suffice under a filter for few hits
SIMILARITY = 0.40
WORDS = 0.35
DIVERSITY = 0.15
LENGTH = 0.10
ENOUGH_CHARS = 200  # characters from which a text is long enough
SAME_WORDS = 0.9  # the share of words that near-duplicates have in common
LONG_WORD = 15  # average characters per word from which a text is considered to have no spaces
REMEMBERED = 32  # cached texts: one is compared with several others in turn

_DECISIVE = (
    r"\d+(?:[.,:/-]\d+)*"
    r"|\b(?:no|not|nor|none|never|neither|nothing|nobody|without|except|cannot|\w+n['\u2019]t"
    r"|(?:ai|are|ca|could|did|do|does|had|has|have|is|must|should|was|were|wo|would)nt"
    r"|nicht|nie|niemals|kein\w{0,2}|ohne|au\u00dfer|weder|nichts|niemand)\b"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e\u672a\u522b\u5225\u5426\u83ab\u52ff\u9664]"
)
_EMPTY_WORDS = frozenset(["a", "an", "the", "is", "are", "am", "do", "does", "of", "there"])
_SILENT = r"[\s.,;:!?()\"\u3001\u3002]+"
_WORD = r"\w+(?:[._/@:+'\u2019-]\w+)*"
_SENTENCE_START = r"(?:^|[.!?:\n])\W*"
_GENITIVE = r"['\u2019]s\b"
_BEFORE_UNIT = r"^\d[\d.,]*(?=[^\W\d_]{2,}$)"
_PLURAL = r"(?<=\w{3})s$"  # an English plural, or a German genitive
# Matches words with an inner separator, or with letters followed by digits.
_IDENTIFIER = r".*[._/@:].*|(?=.*[^\W\d_])(?=\D+\d).+"

_COUNTS = frozenset(
    """
    two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand
    zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig hundert tausend
    """.split()  # noqa: SIM905  # words read best as text
)
_GERMAN_STOP_WORDS = frozenset(
    """
    aber als auch auf aus bei beim das dem den der des die ein eine einem einen einer eines er es
    für hat hatte ich ihr ihre im ist man mein meine mit nach nicht nur oder sein seine sich sie
    sind über um und uns unser unsere von vom vor wenn wie wir wird zu zum zur
    """.split()  # noqa: SIM905  # words read best as text
)
# Words before a subject, a name, or a word that distinguishes it.
_LEADING = frozenset(
    """
    a an the of in on at to for from with by about against between into under this that these
    those my our your his her their its der die das dem den des ein eine einem einen einer eines
    im am auf aus bei für mit nach von vom vor zu zum zur über unter is are am was were me
    called named use uses run runs ist sind bin war nutzt nutzen heisst heisse
    """.split()  # noqa: SIM905  # words read best as text
)

_IDLE_CHARACTERS = "的了是在为有着于其也都就被把给到和与呢吗吧会要"


@dataclass(frozen=True, slots=True)
class Around:
    """How well the surroundings of a chunk match a query."""

    score: float  # 0 to 1
    weight: float  # their weight; the chunk's own score has the weight 1

    def blend(self, own: float) -> float:
        """Combines a chunk's own score with that of its surroundings, 0 to 1."""
        return (own + self.weight * self.score) / (1 + self.weight)


def balance(
    query: str, embedder: Embedder, default: float, alpha: float | None
) -> tuple[float, float]:
    """Returns the weight of the dense score for a query, and the similarity floor.

    A weight set by the caller (`alpha`) counts regardless of the language.
    """
    if alpha is not None:
        return alpha, embedder.floor
    if not understands(embedder, query):
        return min(default, CJK_ALPHA), math.inf  # it cannot find texts it does not understand
    return default, embedder.floor


def fuse(
    dense: Mapping[int, float],
    lexical: Mapping[int, float],
    alpha: float,
    floor: float = DEFAULT_FLOOR,
) -> dict[int, float]:
    """Fuses two scores: alpha * dense + (1 - alpha) * lexical, each scaled over the candidates.

    Cosines are scaled from their minimum and maximum to 0..1, BM25 from 0 and its maximum. A
    candidate without a cosine is not embedded yet, and its lexical score counts for both. One
    without any of the query's words must reach the floor.
    """
    low, high = min(dense.values(), default=0.0), max(dense.values(), default=0.0)
    top = max(lexical.values(), default=0.0)
    fused = {}
    for seq in dense.keys() | lexical.keys():
        similarity, words = dense.get(seq), lexical.get(seq, 0.0)
        if words <= 0 and (similarity is None or similarity < floor):
            continue
        share = words / top if top > 0 else 0.0
        if similarity is None:
            fused[seq] = share
        else:
            near = (similarity - low) / (high - low) if high > low else 1.0
            fused[seq] = alpha * near + (1 - alpha) * share
    return fused


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedHit:
    """A stored passage, or an entry of the session."""

    origin: str  # its origin: "memory", a source's name, or "documents", "knowledge" or "events"
    layer: int  # its layer of memory, 1 to 4; 0 if it is not a memory
    score: float  # the probability that it answers, 0 to 1; during ranking, how well it matches
    lexical: float  # BM25 of a passage; for an entry the share of the query's words it contains
    passage: SearchHit | None = None  # the passage, with its scores
    entry: Entry | None = None  # the entry of layer 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The signals of a hit for reranking."""

    # Cosine as a share of the best one's, 0 to 1; None if there is none, and then the words count
    # for both.
    similarity: float | None
    words: float  # BM25 as a share of the best one's, 0 to 1
    origin: str
    length: int
    around: Around | None = None  # its surroundings; None if it has none


def candidates_of(
    hits: Sequence[SearchHit], origins: Sequence[str], *, by_meaning: bool
) -> list[Candidate]:
    """Returns the hits of one search, best first, as candidates.

    Their vectors count only if the embedder understands the query's language (`by_meaning`).
    """
    nearest = max((hit.dense or 0.0 for hit in hits), default=0.0)
    most = max((hit.lexical for hit in hits), default=0.0)
    return [
        Candidate(
            similarity=_share(hit.dense, nearest) if by_meaning and hit.dense is not None else None,
            words=_share(hit.lexical, most),
            origin=origin,
            length=len(hit.chunk.content),
            around=None
            if hit.surroundings is None
            else Around(hit.surroundings, hit.surroundings_weight),
        )
        for hit, origin in zip(hits, origins, strict=True)
    ]


def rerank(candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
    """Returns the candidates in their new order, each as its index and its score of 0 to 1.

    The best remaining candidate comes next; ties keep their order.
    """
    own = [_own(candidate) for candidate in candidates]
    waiting: dict[str, list[int]] = {}
    for index in sorted(range(len(own)), key=lambda index: (own[index], -index)):
        waiting.setdefault(candidates[index].origin, []).append(index)  # best last
    taken = dict.fromkeys(waiting, 0)
    ranked = []
    for _ in candidates:
        scores = {
            left[-1]: own[left[-1]] + DIVERSITY * (1 - taken[origin] / len(candidates))
            for origin, left in waiting.items()
            if left
        }
        best = max(scores, key=lambda index: (scores[index], -index))
        ranked.append((best, scores[best]))
        waiting[candidates[best].origin].pop()
        taken[candidates[best].origin] += 1
    return ranked


def _own(candidate: Candidate) -> float:
    similarity = candidate.words if candidate.similarity is None else candidate.similarity
    fits = (SIMILARITY * similarity + WORDS * candidate.words) / (SIMILARITY + WORDS)
    if candidate.around is not None:
        fits = candidate.around.blend(fits)
    length = min(candidate.length / ENOUGH_CHARS, 1.0)
    return (SIMILARITY + WORDS) * fits + LENGTH * length


def _share(value: float, most: float) -> float:
    return max(value, 0.0) / most if most > 0 else 0.0


def with_entries(
    query: str,
    hits: Sequence[SearchHit],
    passages: Sequence[Candidate],
    entries: Sequence[tuple[Entry, float]],
) -> list[Candidate]:
    """Returns passages and entries as candidates of one order.

    An entry has only a word score. It counts like the passage with the most of the query's words,
    in proportion to its own share of them; if no passage has any, by its share.
    """
    words = len(set(terms_of(query).values()))
    most = max(
        range(len(hits)), key=lambda at: (len(hits[at].matched_terms), hits[at].score), default=None
    )
    twin, scale = None, 1.0
    if most is not None and hits[most].matched_terms:
        twin, scale = passages[most], words / len(hits[most].matched_terms)
    return [*passages, *(_as_candidate(entry, share * scale, twin) for entry, share in entries)]


def _as_candidate(entry: Entry, share: float, twin: Candidate | None) -> Candidate:
    """Scores an entry like a passage with all words, in proportion to its share of them."""
    similarity = None if twin is None else twin.similarity
    words = 1.0 if twin is None else twin.words
    return Candidate(
        similarity=None if similarity is None else min(share * similarity, 1.0),
        words=min(share * words, 1.0),
        origin=MEMORY,
        length=len(entry.text),
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    origin: str
    raw: str
    text: str
    words: frozenset[str]


def distinct(
    hits: Sequence[UnifiedHit], limit: int, mentioned: Sequence[frozenset[str]] = ()
) -> list[UnifiedHit]:
    """Returns the best hits without near-duplicates.

    Duplicates are identical texts of any origin, or nearly the same words in different origins;
    within one origin, small differences mean another version. Names, numbers and negations must be
    the same. An entry is left out if every context it mentions was found.
    """
    found = {hit.passage.context.id for hit in hits if hit.passage is not None}
    distinct_hits: list[UnifiedHit] = []
    chosen: list[_Chosen] = []
    for number, hit in enumerate(hits):
        if len(distinct_hits) == limit:
            break
        if mentioned and mentioned[number] and mentioned[number] <= found:
            continue
        fresh = _Chosen(hit.origin, *_normalize(hit))
        if not any(_say_the_same(each, fresh) for each in chosen):
            distinct_hits.append(hit)
            chosen.append(fresh)
    return distinct_hits


def _normalize(hit: UnifiedHit) -> tuple[str, str, frozenset[str]]:
    """Returns the text of a hit, its normalized form, and its words."""
    text = ""
    if hit.passage is not None:
        text = hit.passage.chunk.content
    elif hit.entry is not None:
        text = hit.entry.text
    words = text.casefold().split()
    folded = " ".join(words)
    if len(folded) > LONG_WORD * len(words):
        return text, folded, frozenset(folded[at : at + 2] for at in range(len(folded) - 1))
    return text, folded, frozenset(words)


def _say_the_same(one: _Chosen, other: _Chosen) -> bool:
    if one.text == other.text:
        return True
    fewer, more = sorted((len(one.words), len(other.words)))
    if one.origin == other.origin or fewer < SAME_WORDS * more:
        return False
    common = len(one.words & other.words)
    similar = common >= SAME_WORDS * (fewer + more - common)
    return similar and can_say_the_same(one.raw, other.raw)


def numbers_and_negations(text: str) -> tuple[str, ...]:
    """Returns a text's numbers and negations, in order; differing ones mean another statement."""
    return tuple(re.findall(_DECISIVE, unicodedata.normalize("NFKC", text).casefold()))


def wording(query: str) -> Hashable:
    """Returns a key that is equal for two wordings of the same question.

    It ignores case, spaces, punctuation and stop words.
    """
    text = unicodedata.normalize("NFKC", query).casefold()
    words = (word for word in re.split(_SILENT, text) if word and word not in _EMPTY_WORDS)
    return tuple(words), numbers_and_negations(query)


@dataclass(frozen=True, slots=True)
class _Features:
    """The distinguishing features of a text."""

    numbers: frozenset[str]  # in digits or in words
    denies: bool  # whether it has a negation
    names: frozenset[str]
    opening: frozenset[str]  # first words of sentences, whose capital means nothing
    # Other words after an article or a preposition; characters with a meaning.
    topics: frozenset[str]
    words: frozenset[str]


def can_say_the_same(one: str, other: str) -> bool:
    """Returns whether neither text names something that the other does not.

    That is a name, a number, a date or an identifier. Without capitals to distinguish names, the
    texts differ only if each has a topic word that the other lacks, so that one replaced the other.
    """
    first, second = _features_of(one), _features_of(other)
    if (first.numbers, first.denies) != (second.numbers, second.denies):
        return False
    if first.names - second.words or second.names - first.words:
        return False
    unlike = [
        {*mine.opening, *mine.topics} - theirs.words
        for mine, theirs in ((first, second), (second, first))
    ]
    return not all(unlike)


@lru_cache(maxsize=REMEMBERED)
def _features_of(text: str) -> _Features:
    text = unicodedata.normalize("NFKC", text)
    spaceless = {each for each in text if each.isalpha() and is_spaceless(each)}
    decisive = numbers_and_negations(text)
    spaced = "".join(" " if each in spaceless else each for each in text)
    tokens = list(_tokens(re.sub(_GENITIVE, " of", spaced)))
    words = [word for word, _, _ in tokens]
    topics = {
        word
        for before, (word, _, _) in zip(["", *words], tokens, strict=False)
        if before in _LEADING and word not in _LEADING
    }
    characters = spaceless - set(_IDLE_CHARACTERS)
    return _Features(
        numbers=frozenset(each for each in decisive if each[0].isdigit()) | _COUNTS & set(words),
        denies=any(not each[0].isdigit() for each in decisive),
        names=frozenset(word for word, is_name, _ in tokens if is_name),
        opening=frozenset(word for word, _, opens in tokens if opens),
        topics=frozenset(topics | characters),
        words=frozenset(words) | characters,
    )


def _tokens(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yields each normalized word, whether it is a name, and whether it opens a sentence."""
    starts = {found.end() for found in re.finditer(_SENTENCE_START, text)}
    for found in re.finditer(_WORD, text):
        written = re.sub(_BEFORE_UNIT, "", found.group())
        folded = written.casefold()
        if folded in STOP_WORDS or folded in _GERMAN_STOP_WORDS:
            yield folded, False, False
            continue
        opens = found.start() in starts
        is_name = re.fullmatch(_IDENTIFIER, written) is not None
        is_name = is_name or (written[0].isupper() and not opens)
        yield re.sub(_PLURAL, "", folded), is_name, opens and not is_name
