"""Where a text says a name: whole words, spelled as names are, in the case that tells it apart.

Case and accents do not count, nor do apostrophes and the marks between the words of a name. Names
that are words of their own ("May", "Mark") count only as they are written, and not where the words
around them say that something else is meant: "in May", "Mark the day". A single letter is no name.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise

from storage.people.names import fold
from storage.tokenize import STOP_WORDS, fold_accents, is_spaceless

_WORDS_TOO = frozenset(
    """
    access act aids amazon amber angel apple april arch arm art ash atom august aurora autumn
    baker bash basil bay beacon bear bill bing bishop black blue bolt box brave bridge brook
    brown buck bud butcher can carol cash cat chance charity chase cherry chip christian chuck
    clay cliff coda cook coral craft crystal cursor daisy dale dash dawn dean december destiny
    dick drew dusty earl echo edge ember eve excel faith falcon february fern field fisher flash
    flora forest fox frank freeman friday gale gap gay gene ginger glen go good grace grant gray
    green guy happy harmony hazel heather helm herb holly honor hope hunter ice ink iris ivory
    ivy jack january jasmine jay jazz jersey jet jewel joy july june justice keep king kitty
    lake lance lane lark laurel lily linear list little loom love make march mark mars mason
    master may meet melody mercury mercy merit meta mike miles miller mint miracle misty monday
    notion november object ocean october olive opal oracle orange outlook page pages park parker
    pat patience peace pearl peg penny pilot pine piper poppy porter price prince queen rain ram
    raven ray red reed render rich river rob robin rock rocket rod rose rowan rust rusty sage
    sandy sap saturday scout sentry september shell signal skip sky slack smart smith snap snow
    spark spike spring sprint square stack star sterling stone storm stripe sue summer sun
    sunday sunny swift target taylor teams tempo thursday tiger trace trinity tucker tuesday
    unity us van vault victor victory viola violet wade walker ward wave weaver wednesday west
    white will willow winter wise wolf wood woody word young zoom
    blau braun ernst frei fromm gelb gerne groß gut hart heil jung kalt klein klug kurz lang lieb
    mai rot sanft schnell schwarz stark still treu wahr warm weiß wild
    """.split()  # noqa: SIM905  # words read best as text
)
"""Words of texts that are names as well, folded."""

_MONTHS = frozenset(
    """
    january february march april may june july august september october november december mai
    """.split()  # noqa: SIM905  # words read best as text
)
_BEFORE_A_MONTH = (
    r"(?:\d|\b(?:in|since|until|till|during|through|last|next|this|early|mid|late|every"
    r"|im|seit|bis|ab|ende|anfang|mitte|letzten|n\u00e4chsten))[\s.-]*$"
)
_AFTER_A_MONTH = r"[\s,.]*\d"
_BEGINS = r"(?:^|[.!?:;\n\u2022*#>\"\u201c(-])\s*$"
_AFTER_A_VERB = (
    r"\s+(?:the|an?|i|you|we|they|he|she|it|this|that|these|those|my|your|our|his|her|its|their|me"
    r"|us|him|them|there|all|any|some|der|die|das|ein|eine|ich|du|wir|sie|er|es|ihr)\b"
)
_APOSTROPHE = r"(?:['`\u2018\u2019\u02bc](?!(?:ll|re|ve|[sdmt])\b))?"  # "she'll" is no "Shell"
_BLANK = (
    r"(?:[^\S\n]{1,4}|[^\S\n]{0,4}\n[^\S\n]{0,8}"  # a line may end there, a paragraph not
    r"|[\u00b7\u30fb_/\u2010-\u2015-]|\.(?=\w)"
)
_SHORT = 2  # letters of what a full stop shortens: "Dr. Berg", "J. Doe"
_KATAKANA = "[\u30a1-\u30fa\u30fc]"  # a name ends where it does
_NEAR = 24  # characters that are looked at before a name


class NamePattern:
    """One spelling of a name, as texts say it.

    Args:
        spelling: As it is stored.
        of_person: Whether it is a person's, so that "Jean" is not found in "Jean-Luc".
    """

    def __init__(self, spelling: str, *, of_person: bool) -> None:
        self.folded = fold(spelling)
        self.is_word = self.folded in STOP_WORDS or self.folded in _WORDS_TOO
        self.written = fold_accents(spelling).strip()
        if self.is_word and self.written.islower() and self.folded not in STOP_WORDS:
            self.written = self.written.capitalize()
        letters = self.folded.replace(" ", "")
        self.is_sayable = len(letters) > 1 and not (
            self.folded in STOP_WORDS and self.written.islower()
        )
        self._of_person = of_person and " " not in self.folded

    def is_in(self, text: str) -> bool:
        """Whether a text says it."""
        if not self.is_sayable:
            return False
        text = fold_accents(text)
        searched = text if self.is_word else text.lower()
        return any(self._counts(text, *found.span()) for found in self._body.finditer(searched))

    def is_tag(self, tag: str) -> bool:
        """Whether it is a tag, or the last part of one such as "people/ann-lee"."""
        return self.folded in {fold(tag), fold(tag.rpartition("/")[2])}

    @cached_property
    def _body(self) -> re.Pattern[str]:
        return _compiled(self.written if self.is_word else self.folded)

    def _counts(self, text: str, start: int, end: int) -> bool:
        """Whether what stands there is the name, by what stands around it."""
        before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
        if _goes_on(text[start], before[-1:]) or _goes_on(text[end - 1], after[:1]):
            return False
        if self._of_person and (re.match(r"-[A-Z]", after) or re.search(r"[A-Z][a-z]+-$", before)):
            return False
        if not self.is_word:
            return True
        if self.folded in _MONTHS and (
            re.search(_BEFORE_A_MONTH, before, re.IGNORECASE) or re.match(_AFTER_A_MONTH, after)
        ):
            return False
        begins = start == 0 or re.search(_BEGINS, before)
        return not (begins and re.match(_AFTER_A_VERB, after, re.IGNORECASE))


def _compiled(name: str) -> re.Pattern[str]:
    words = name.split()
    body = _word(words[0])
    for earlier, word in pairwise(words):
        short = r"|\.\s?" if len(earlier) <= _SHORT else ""
        optional = "?" if is_spaceless(earlier) and is_spaceless(word) else ""
        body += f"{_BLANK}{short}){optional}{_word(word)}"
    return re.compile(body)


def _word(word: str) -> str:
    """A word of a name; an apostrophe may stand in it anywhere."""
    if is_spaceless(word):
        return re.escape(word)
    return _APOSTROPHE.join(map(re.escape, word))


def _goes_on(letter: str, beside: str) -> bool:
    """Whether a letter and what stands beside it belong to one word."""
    if re.match(_KATAKANA, letter):
        return re.match(_KATAKANA, beside) is not None
    apart = is_spaceless(letter) or is_spaceless(beside)
    return letter.isalnum() and beside.isalnum() and not apart
