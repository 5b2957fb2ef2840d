"""Decides whether a command is forbidden by a rule, even if parts of it cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from tools.policy.shell.words import CommandPattern, Word, WordPattern, base_name

LETTERS = re.compile(r"-[A-Za-z]+")


class Match(IntEnum):
    """How surely a command matches a rule."""

    NO = 0
    MAYBE = 1
    YES = 2


def match_command(pattern: CommandPattern, words: Sequence[Word]) -> Match:
    """Matches a command against a deny or ask rule, so that respelling it does not evade the rule.

    The name is compared without its directory and case. If the rule ends in a lone `*`, options may
    appear anywhere: `rm -rf *` matches `rm x -r -f`, and `git push *` matches `git -C . push`.
    """
    name, *rest = words
    if name.text is None or name.is_glob:
        return Match.MAYBE
    if not _is_named(pattern.words[0], name.text):
        return Match.NO
    if pattern.words[0] is None:
        wanted, rest = list(pattern.words), list(words)
    else:
        wanted = list(pattern.words[1:])
    if _fits(wanted, rest, unseen=False):
        return Match.YES
    is_unseen = any(map(_is_vague, rest)) and _fits(wanted, rest, unseen=True)
    return Match.MAYBE if is_unseen else Match.NO


def _is_named(wanted: WordPattern | None, name: str) -> bool:
    if wanted is None:
        return True
    if wanted.is_literal:
        return base_name(wanted.text) == base_name(name)
    return any(wanted.wildcard.matches(each) for each in (name, base_name(name)))


def _fits(wanted: Sequence[WordPattern | None], words: Sequence[Word], *, unseen: bool) -> bool:
    """Returns whether the words match those of the rule."""
    if not wanted or wanted[-1] is not None:
        return _walk(wanted, words, unseen=unseen, skipping=False)
    options = [each for each in wanted if each is not None and _is_option(each.text)]
    others = [each for each in wanted if each is None or not _is_option(each.text)]
    vague = unseen and any(map(_is_vague, words))
    if not vague and not all(_has_option(option, words) for option in options):
        return False
    return _walk(others, words, unseen=unseen, skipping=True)


def _walk(
    wanted: Sequence[WordPattern | None], words: Sequence[Word], *, unseen: bool, skipping: bool
) -> bool:
    """Follows all possible matches of the words at once."""
    places = _past_stars({0}, wanted)
    after_option = False
    for word in words:
        if _is_vague(word):
            kept = {place for place in places if place < len(wanted) and wanted[place] is None}
            places = _past_stars(
                {place for start in places for place in range(start, len(wanted) + 1)}
                if unseen
                else kept | {place + 1 for place in places if _is_same(wanted, place, word)},
                wanted,
            )
            continue
        step = {place + 1 for place in places if _is_same(wanted, place, word)}
        step |= {place for place in places if place < len(wanted) and wanted[place] is None}
        is_option = _is_option(str(word.text))
        if skipping and (is_option or after_option):
            step |= places
        after_option = is_option
        places = _past_stars(step, wanted)
    return len(wanted) in places


def _is_same(wanted: Sequence[WordPattern | None], place: int, word: Word) -> bool:
    pattern = wanted[place] if place < len(wanted) else None
    return pattern is not None and pattern.matches(word)


def _past_stars(places: set[int], wanted: Sequence[WordPattern | None]) -> set[int]:
    """Skips lone `*` patterns, which may match no word."""
    found: set[int] = set()
    for place in places:
        end = place
        while end < len(wanted) and wanted[end] is None:
            end += 1
        found.update(range(place, end + 1))
    return found


def _is_vague(word: Word) -> bool:
    return word.text is None or word.is_glob


def _is_option(text: str) -> bool:
    return len(text) > 1 and text.startswith("-")


def _has_option(wanted: WordPattern, words: Sequence[Word]) -> bool:
    given = [word.text for word in words if word.text is not None]
    if any(wanted.wildcard.matches(each) or each.startswith(f"{wanted.text}=") for each in given):
        return True
    clusters = "".join(each[1:] for each in given if LETTERS.fullmatch(each))
    return LETTERS.fullmatch(wanted.text) is not None and set(wanted.text[1:]) <= set(clusters)
