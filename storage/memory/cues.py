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


_OPEN = """
todo, todos, to do, fixme, next step, next steps, unfinished, remaining, blocked by, blocked on
waiting for, not + yet, not done, not finished, not implemented, still + open, still + missing
still fails, still broken, left to do, remains to, put off, later, leave + for now
noch nicht, noch offen, noch zu, fehlt noch, nächster schritt, nächste schritte, ausstehend
nächste woche, pendiente, pendientes, falta, queda por, todavía no, pas encore, à faire, reste à
"""
_DECISION = """
decided, decide, decision, decisions, agreed, settled on, we use, we now use, we will use, we ll use
we switch, switch to, switched to, instead of, from now on, chose, opted, convention, must, always
never, remember, pin, pinned, going with, prefer, prefers, preferred, policy, responsible, owned by
owns, standard, let s + call, at most, drop, not allowed, forbidden, deadline
entschieden, entscheidung, beschlossen, ab jetzt, künftig, wir nehmen, wir verwenden, wir nutzen
wir benutzen, immer, nie, niemals, bevorzuge, bevorzugen
decidimos, decidido, usaremos, a partir de ahora, siempre, nunca, prefiero
décidé, décidons, désormais, toujours, jamais, préfère
"""
_PERSON = """
i am, i m, i use, i work, i live, i like, i hate, i have, i prefer, i need, i speak, i never
i always, my name, call me, ich bin, ich heiße, ich arbeite, ich nutze, ich benutze, ich wohne
ich mag, ich bevorzuge, me llamo, soy, je suis, je m appelle, je préfère, je travaille
"""
_DONE = """
fixed, done, finished, implemented, completed, merged, resolved, shipped, closed, erledigt
behoben, fertig, hecho, terminado, terminé, fait
"""
_OFTEN_IN_STATEMENTS = (
    *("decid", "decision", "agreed", "always", "never", "must", "prefer", "todo", "from now on"),
    *("my name", "entschieden", "immer", "siempre", "toujours", "决定", "待办", "決定"),
)

_WORD = re.compile(r"\w+")
_SPECIFIC = re.compile(r"\d|`|[\w.]+/\w|(?<=[a-z,;:] )[A-Z]\w")


class _Cues:
    """Cues of one kind: words, and phrases between blanks, whose parts must all be there."""

    def __init__(self, listed: str, spaceless: str) -> None:
        cues = [cue.strip() for cue in listed.replace("\n", ",").split(",") if cue.strip()]
        self.words = frozenset(cue for cue in cues if " " not in cue)
        self.phrases = tuple(
            tuple(f" {part.strip()} " for part in cue.split("+")) for cue in cues if " " in cue
        )
        self.spaceless = tuple(spaceless.split())

    def are_in(self, sentence: str, words: str) -> bool:
        """Returns whether one is in a sentence, whose words are given too."""
        if not self.words.isdisjoint(words.split()):
            return True
        for first, *others in self.phrases:
            if first in words and all(part in words for part in others):
                return True
        return not sentence.isascii() and any(cue in sentence for cue in self.spaceless)

    def without(self, words: str) -> str:
        """Returns the words without those of cues."""
        for parts in self.phrases:
            if parts[0] in words and all(part in words for part in parts):
                for part in parts:
                    words = words.replace(part, " ")
        return " ".join(word for word in words.split() if word not in self.words)


@cache
def _cues(kind: Kind | None) -> _Cues:
    """Returns the cues of a kind, or of what is done."""
    return _Cues(*_LISTS[kind])


_LISTS: dict[Kind | None, tuple[str, str]] = {
    Kind.OPEN: (
        _OPEN,
        "待办 待辦 尚未 还没 還沒 下一步 未完成 剩下 残り まだ 次は 未対応 아직 남은",
    ),
    Kind.DECISION: (
        _DECISION,
        "决定 決定 改用 采用 採用 以后都 总是 不要 必须 必ず 使うことに しないで 항상 결정",
    ),
    Kind.PERSON: (_PERSON, "我是 我叫 我用 我住 我喜欢 我偏好 私は 저는"),
    None: (_DONE, "已完成 完成了 修好 修复了 完了 直した"),
}
"""The cues of each kind, the first match counts; then those of scripts without spaces."""


def _words_of(sentence: str) -> str:
    """Returns the words in lower case, each between blanks."""
    return f" {' '.join(_WORD.findall(sentence.lower()))} "


def is_question(sentence: str) -> bool:
    """Returns whether a sentence asks."""
    return sentence.endswith(("?", "\uff1f"))


def kind_of(sentence: str, *, by_user: bool) -> Kind | None:
    """Returns what a sentence states; only what the user says can be about the user."""
    if is_question(sentence):
        return None
    words = _words_of(sentence)
    for kind in _LISTS:
        is_possible = kind is not None and (by_user or kind is not Kind.PERSON)
        if is_possible and _cues(kind).are_in(sentence, words):
            return kind
    return None


def is_specific(sentence: str) -> bool:
    """Returns whether a sentence has a number, a name or code in it."""
    return _SPECIFIC.search(sentence) is not None


def is_done(sentence: str) -> bool:
    """Returns whether a sentence says that something was finished."""
    return not is_question(sentence) and _cues(None).are_in(sentence, _words_of(sentence))


def without_cues(sentence: str) -> str:
    """Returns the words of a sentence but those that make it a statement: what it is about."""
    words = _words_of(sentence)
    for kind in _LISTS:
        if kind is not None:
            words = f" {_cues(kind).without(words)} "
    return words.strip()


def stems() -> tuple[str, ...]:
    """Returns parts of words that many statements contain, for a first look by SQLite."""
    return _OFTEN_IN_STATEMENTS
