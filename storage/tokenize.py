r"""The text analysis that defines terms, shared by the index and queries.

A term has letters, digits and the combining marks of its script; never whitespace, a quote or an
operator. A change here changes the lexical index, and needs the migration described in
`storage.index.maintenance`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

MAX_TERM_CHARS = 64  # maximum characters of a term; a longer run is cut into several terms

STOP_WORDS = frozenset(
    # Without "us" and "may", which are also a country and a month.
    """
    a about after again all also am an and any are arent as at be because been before being between
    both but by can cannot cant could couldnt did didnt do does doesnt doing dont during each for
    from further had hadnt has hasnt have havent having he her here hers herself him himself his how
    i if in into is isnt it its itself just me more most my myself no nor not of off on once only or
    other our ours ourselves out over own same she should shouldnt so some such than that the their
    theirs them themselves then there these they this those through to too under until up very was
    wasnt we were werent what when where which while who whom why will with wont would wouldnt you
    your yours yourself yourselves
    """.split()  # noqa: SIM905  # a hundred words read best as text
)
"""English words without a topic; contractions have no apostrophe."""

SPACELESS_LETTERS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ecd\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17dc\u17dd"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa1-\uffdc"  # Hangul
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"  # Han, supplementary planes
    "\u3041-\u309a\u309d-\u309f"  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Katakana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
)
# Scripts of which the multilingual model has no words. From Armenian to Ethiopic, without Hangul.
RARE_LETTERS = (
    "\u0530-\u058f\u0700-\u074f\u0780-\u089f\u0980-\u10ff\u1200-\u1cff\u2d00-\u2ddf"
    "\ua000-\ua4ff\ua800-\uabff\U00010000-\U0001cfff"
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u0a01-\u0a03\u0a3c-\u0a4d"
    "\u0a70-\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7"
    "\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d57"
    "\u0d81-\u0d83\u0dca-\u0ddf\u0f18-\u0f19\u0f35\u0f37\u0f39\u0f71-\u0f84\u0f90-\u0fbc"
)
_IGNORED = "\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f"  # soft hyphen, joiners, variation selectors

_LETTER = rf"[^\W_{SPACELESS_LETTERS}]"
_RUN = rf"{_LETTER}{{1,{MAX_TERM_CHARS}}}(?:[{_MARKS}{_IGNORED}]{{1,8}}{_LETTER}{{0,8}}){{0,8}}"
_SURFACE = (
    rf"[{SPACELESS_LETTERS}]+"
    r"|\d{1,3}(?:,\d{3}){1,8}(?!\d)"  # 1,000,000 is one number
    r"|(?<![^\W_])[A-Za-z](?:\+\+|\#)(?![^\W_])"  # C++, C#, F#
    rf"|{_RUN}(?:(?:[-.&'\u2019\u2010\u2011]|_{{1,4}}){_RUN}){{0,15}}"
)
_SPACELESS_LETTER = rf"[{SPACELESS_LETTERS}]"
_FOLDED_RUN = rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*"
_DROPPED = rf"[\u0300-\u036f{_IGNORED}]"
_CONTRACTION = re.compile(r"(?<=[^\W\d_])['\u2019](?:s|d|m|ll|re|ve)$", re.IGNORECASE)
_CASE_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UNDECOMPOSED = str.maketrans("øØłŁđĐðÐħĦ\u0131", "oOlLdDdDhHi") | str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "TH"}
)
_APOSTROPHES = re.compile("['`\u2018\u2019\u02bc]")
_SEPARATORS = re.compile(r"[\s\0.,;:_/\\()\"\u00b7\u30fb\u2010-\u2015-]+")
_NAMED_SIGNS = {"++": "pp", "#": "sharp"}
_ENDING = r"(?<=\w{3})(?:ing|ie[sd]|ed|es|er|en|e|s|y)$"
_ROUGH_CHARS = 6
_SLICE = 512  # normalizing is quadratic in a run of marks, so long runs are sliced


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern on first use: these ranges take too long to compile at startup."""
    return re.compile(pattern)


def tokenize(text: str) -> list[str]:
    """Returns the terms of a text, in order and with repetitions.

    Words are folded (NFKC, case, accents), English stop words are dropped, and English endings are
    removed by the Snowball stemmer (https://snowballstem.org). An identifier yields itself without
    separators, then its parts; scripts without spaces yield overlapping pairs of characters. The
    time is linear in the text's length.
    """
    terms: list[str] = []
    for surface in _compiled(_SURFACE).findall(text):
        if surface.isascii() or not _begins_spaceless(surface):
            terms.extend(_terms(surface))
        else:
            terms.extend(_bigrams(surface))
    return terms


def rough_words(text: str) -> list[str]:
    """Returns the words of a text in lower case."""
    found: list[str] = _compiled(r"[^\W_]+").findall(text.lower())
    return found


def rough_terms(text: str) -> Iterator[str]:
    """Yields the words of a text, shortened in a way that fits most languages.

    It costs a tenth of `tokenize`, whose stemmer takes long to load.
    """
    for word in rough_words(text):
        if not word.isascii() and _begins_spaceless(word):
            yield from _bigrams(word)
        elif word not in STOP_WORDS:
            yield _shortened(word) if word.isalpha() else word


@lru_cache(maxsize=1 << 13)
def _shortened(word: str) -> str:
    return _compiled(_ENDING).sub("", word)[:_ROUGH_CHARS]


def terms_of(text: str) -> dict[str, str]:
    """Returns each term of a text with the first word, or part of one, that it came from."""
    found: dict[str, str] = {}
    for surface in _compiled(_SURFACE).findall(text):
        if surface.isascii() or not _begins_spaceless(surface):
            for term, written in _analyse(surface):
                found.setdefault(term, written)
        else:
            for pair in _bigrams(surface):
                found.setdefault(pair, pair)
    return found


def is_spaceless(text: str) -> bool:
    """Returns whether most of a text's letters are in scripts without spaces, such as Chinese."""
    return is_mostly(SPACELESS_LETTERS, text)


def is_mostly(letters: str, text: str) -> bool:
    """Returns whether most of a text's letters are in a character class, such as "a-z"."""
    if not letters or text.isascii():
        return False
    found = len(_compiled(f"[{letters}]").findall(text))
    return found * 2 > sum(map(str.isalpha, text))


def _begins_spaceless(surface: str) -> bool:
    return _compiled(_SPACELESS_LETTER).match(surface) is not None


def _bigrams(run: str) -> list[str]:
    slices = (run[start : start + _SLICE] for start in range(0, len(run), _SLICE))
    folded = "".join(unicodedata.normalize("NFKC", part) for part in slices)
    if len(folded) == 1:
        return [folded]
    return [folded[at : at + 2] for at in range(len(folded) - 1)]


@lru_cache(maxsize=1 << 15)
def _terms(surface: str) -> tuple[str, ...]:
    return tuple(term for term, _ in _analyse(surface))


def _analyse(surface: str) -> Iterator[tuple[str, str]]:
    sign = surface[1:]
    if sign in _NAMED_SIGNS:
        yield surface[0].lower() + _NAMED_SIGNS[sign], surface
        return
    if "," in surface:
        yield surface.replace(",", ""), surface
        return
    runs = _compiled(_FOLDED_RUN).findall(fold_accents(_CONTRACTION.sub("", surface)))
    whole = "".join(runs)
    is_stop_word = False
    if len(whole) <= MAX_TERM_CHARS:
        term = _term(whole)
        is_stop_word = not term
        if term:
            yield term, surface
    parts = [part for run in runs for part in _case_parts(run) if part != whole]
    if "'" in surface or "\u2019" in surface:
        # "don't" must not give "don"; "O'Brien" is found as "Brien" too, but not as "O".
        parts = [] if is_stop_word else [part for part in parts if len(part) > 1]
    yield from _part_terms(parts)


def _part_terms(parts: list[str]) -> Iterator[tuple[str, str]]:
    for part in parts:
        for start in range(0, len(part), MAX_TERM_CHARS):
            piece = part[start : start + MAX_TERM_CHARS]
            term = _term(piece)
            if term:
                yield term, piece


def fold_accents(text: str) -> str:
    """Returns the text without accents and compatibility forms; case is kept."""
    if text.isascii():
        return text
    bare = _compiled(_DROPPED).sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).translate(_UNDECOMPOSED)


def fold(name: str) -> str:
    """Folds case, accents and punctuation of a name; "Last, First" is "First Last"."""
    last, comma, first = name.partition(",")
    if comma and first.strip() and "," not in first:
        name = f"{first} {last}"
    bare = _APOSTROPHES.sub("", fold_accents(name).casefold())
    return _SEPARATORS.sub(" ", bare).strip() or name.casefold().strip()


def _case_parts(run: str) -> list[str]:
    """Returns the parts of a camelCase run; the run itself if they were single letters (`i18n`)."""
    if not run.isascii() or run.isdigit() or (run.isalpha() and run.islower()):
        return [run]
    parts = _CASE_PART.findall(run)
    if len(parts) * 2 > len(run):
        return [run]
    return [part[:-1] if part[-1] == "s" and part[:-1].isupper() else part for part in parts]


def _term(word: str) -> str:
    """Returns the term of one folded word; empty for a stop word."""
    word = word.casefold()
    if word in STOP_WORDS:
        return ""
    return _stem(word) if word.isascii() and word.isalpha() else word


@lru_cache(maxsize=1 << 15)
def _stem(word: str) -> str:
    from snowballstemmer.english_stemmer import EnglishStemmer

    # A stemmer holds the word it works on, so each call has its own: threads share this module.
    return str(EnglishStemmer().stemWord(word))
