"""Words by which a sentence of a conversation states a decision, an open task or a fact."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache


class Kind(StrEnum):
    """What a sentence is about; the value is the heading under which it is shown."""

    PERSON = "About the user"
    DECISION = "Decisions and rules"
    OPEN = "Open"
    OTHER = "Also said"


_WORDS: dict[Kind, str] = {
    Kind.OPEN: (
        r"\bto-?dos?\b|\bfixme\b|\bnext steps?\b|\bnot (?:yet|done|finished|moved|implemented)\b"
        r"|\b(?:still|remains?|left) (?:open|missing|to do|to be|broken|fails?)\b|\bremaining\b"
        r"|\bunfinished\b|\bblocked (?:by|on)\b|\bwaiting for\b"
        r"|\bnot .{1,40} yet\b"
        r"|\bnoch (?:nicht|offen|zu)\b|\bnächste[rn]? schritt|\bfehlt noch|\bausstehend"
        r"|\bpendiente|\bfalta\b|\bqueda por\b|\btodavía no\b|\bpas encore\b|\bà faire\b"
        r"|\breste à\b"
        r"|待办|待辦|尚未|还没|還沒|下一步|未完成|剩下|残り|まだ|次は|未対応|아직|남은"
    ),
    Kind.DECISION: (
        r"\bdeci(?:ded?|sion)\b|\bagreed\b|\bsettled on\b|\bwe(?:'ll| will| now)? (?:use|switch)"
        r"|\bswitch(?:ed)? to\b|\binstead of\b|\bfrom now on\b|\bchose\b|\bopted\b|\bconvention\b"
        r"|\bmust(?:n't)?\b|\balways\b|\bnever\b|\bremember\b|\bpinned?\b|\bgoing with\b"
        r"|\bprefer(?:s|red)?\b|\bpolicy\b|\bowned by\b|\bresponsible\b|\bstandardi[sz]e"
        r"|\bentschieden\b|\bentscheidung\b|\bbeschlossen\b|\bab jetzt\b|\bkünftig\b"
        r"|\bwir (?:nehmen|verwenden|nutzen|benutzen)\b|\bimmer\b|\bniemals?\b|\bbevorzug"
        r"|\bdecidi(?:mos|do|r)\b|\busaremos\b|\ba partir de ahora\b|\bsiempre\b|\bnunca\b"
        r"|\bprefier[oe]\b|\bdécid(?:é|ons)|\bdésormais\b|\btoujours\b|\bjamais\b|\bpréfère"
        r"|决定|決定|改用|采用|採用|以后都|总是|不要|必须|必ず|使うことに|しないで|항상|결정"
    ),
    Kind.PERSON: (
        r"\bI(?:'m| am| use| work| live| like| hate| have| prefer| need| speak)\b|\bmy name\b"
        r"|\bcall me\b|\bI never\b|\bI always\b|\bby the way, I\b"
        r"|\bich (?:bin|heiße|arbeite|nutze|benutze|wohne|mag|bevorzuge)\b|\bme llamo\b|\bsoy\b"
        r"|\bprefiero\b|\bje (?:suis|m'appelle|préfère|travaille)\b"
        r"|我(?:是|叫|用|住|喜欢|偏好)|私は|저는"
    ),
}

_DONE = (
    r"\b(?:fixed|done|finished|implemented|completed|merged|resolved|shipped|removed|closed)\b"
    r"|\berledigt\b|\bbehoben\b|\bfertig\b|\bhecho\b|\bterminado\b|\bterminé\b|\bfait\b"
    r"|已完成|完成了|修好|修复了|完了|直した"
)

_SPECIFIC = r"\d|`|[\w.]+/\w|(?-i:(?<=[a-z,;:] )[A-Z]\w)"

_STEMS = (
    *("decid", "decision", "agreed", "settled", "from now on", "always", "never", "must"),
    *("prefer", "remember", "todo", "next step", "not yet", "still open", "switch", "we use"),
    *("will use", "convention", "my name", "i am", "i use", "i'm", "instead of", "pin"),
    *("entschied", "beschloss", "ab jetzt", "immer", "noch nicht", "ich bin", "nehmen wir"),
    *("prefier", "siempre", "nunca", "decid", "décid", "toujours", "jamais"),
    *("决定", "改用", "待办", "我是", "決定", "必ず", "总是", "不要"),
)
"""Parts of words, some of which any statement that SQLite looks for in old turns contains."""


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)


def is_question(sentence: str) -> bool:
    """Returns whether a sentence asks."""
    return sentence.endswith(("?", "\uff1f"))


def kind_of(sentence: str, *, by_user: bool) -> Kind | None:
    """Returns what a sentence states; only what the user says can be about the user."""
    if is_question(sentence):
        return None
    for kind, words in _WORDS.items():
        if (by_user or kind is not Kind.PERSON) and _pattern(words).search(sentence):
            return kind
    return None


def is_specific(sentence: str) -> bool:
    """Returns whether a sentence has a number, a name or code in it."""
    return _pattern(_SPECIFIC).search(sentence) is not None


def is_done(sentence: str) -> bool:
    """Returns whether a sentence says that something was finished."""
    return _pattern(_DONE).search(sentence) is not None and kind_of(sentence, by_user=False) is None


def without_cues(sentence: str) -> str:
    """Returns a sentence without the words that make it a statement: what it is about."""
    for words in _WORDS.values():
        sentence = _pattern(words).sub(" ", sentence)
    return sentence


def stems() -> tuple[str, ...]:
    """Returns parts of words that statements contain, for a first look by SQLite."""
    return tuple(dict.fromkeys(_STEMS))
