"""Merge guards: whether two texts can mean the same, regardless of their similarity.

For an embedder "the limit of Acme is 30" and "the limit of Globex is 30" are nearly the same
sentence. Their names, numbers, dates, identifiers and negations distinguish them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from storage.tokenize import STOP_WORDS, is_spaceless

_DECISIVE = (
    r"\d+(?:[.,:/-]\d+)*"
    r"|\b(?:no|not|nor|none|never|neither|nothing|nobody|without|except|cannot|\w+n['\u2019]t"
    r"|(?:ai|are|ca|could|did|do|does|had|has|have|is|must|should|was|were|wo|would)nt"
    r"|nicht|nie|niemals|kein\w{0,2}|ohne|au\u00dfer|weder|nichts|niemand)\b"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e\u672a\u522b\u5225\u5426\u83ab\u52ff\u9664]"
)
_EMPTY_WORDS = frozenset(["a", "an", "the", "is", "are", "am", "do", "does", "of", "there"])
_SILENT = r"[\s.,;:!?()\"\u3001\u3002]+"


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


REMEMBERED = 32  # cached texts: one is compared with several others in turn
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
# Words before a subject, or before a word that distinguishes it.
_LEADING = frozenset(
    """
    a an the of in on at to for from with by about against between into under this that these those
    my our your his her their its der die das dem den des ein eine einem einen einer eines im am auf
    aus bei für mit nach von vom vor zu zum zur über unter
    """.split()  # noqa: SIM905  # words read best as text
)

_IDLE_CHARACTERS = "的了是在为有着于其也都就被把给到和与呢吗吧会要"


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
