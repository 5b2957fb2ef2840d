"""Words by which a sentence of a conversation states a decision, an open task or a fact."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache, lru_cache


class Kind(StrEnum):
    """What a sentence is about; the value is the heading under which it is shown."""

    PERSON = "About the user"
    DECISION = "Decisions and rules"
    OPEN = "Open"
    FOUND = "Found out"
    OTHER = "Also said"


_OPEN = """
todo, todos, to do, fixme, next step, next steps, unfinished, remaining, blocked by, blocked on
waiting for, not + yet, not done, not finished, not implemented, still + open, still + missing
still fails, still broken, left to do, remains to, put off, later, leave + for now
haven t, hasn t, t + yet, the rest, tomorrow, wip, as far as i got, half done, plus tard, demain
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
_DECISION_OF_USER = """
let s, i want, we want, i d rather, we d rather, go with, i ll take, we ll take, let us, don t
do not, no more, stop + ing, stick to, stick with, sounds good, keep, leave it, rather, should
should not, shouldn t, has to, have to, make sure, next time, every time, at least, no longer
without asking, only, ask me, ask first, doesn t belong, please no
machen wir, nehmen wir, lass uns, lasst uns, lieber, kein, keine, keinen, nicht mehr, soll, sollen
bitte nicht, bleiben wir, bleibt es, statt, müssen, muss, nur
on prend, on garde, on part sur, on utilise, on reste, plutôt, il faut, il ne faut pas, pas de
vamos con, mejor, usamos, hay que, en vez de, sin
"""
_FOUND = """
root cause, the cause, was caused by, is caused by, the reason, turned out, turns out, culprit
due to, the problem was, the problem is, the issue was, the issue is, was to blame, comes from
came from, don t help, doesn t help, didn t help, didn t work, doesn t work, the bug was, the bug is
ursache, lag daran, liegt daran, grund, stellte sich heraus, schuld, la cause, à cause, raison
vient de, venait de, provient, la causa, resultó, se debe, se debía
"""
_OFFER = """
you could, you can, you might, you may, we could, we might, we can, let me know, if you want
if you like, would you like, shall i, should i, do you want, consider, du kannst, du könntest
sie können, sie könnten, wir könnten, soll ich, vous pouvez, vous pourriez, tu peux, puedes, podrías
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

_TYPED = """
dont: don t, lets: let s, im: i m, ive: i ve, id: i d, isnt: isn t, havent: haven t, hasnt: hasn t
doesnt: doesn t, didnt: didn t, shouldnt: shouldn t, cant: can t, wont: won t, wanna: want to
pls: please, plz: please, tmrw: tomorrow, tmr: tomorrow, u: you
"""
_INFORMAL = {
    typed.strip(): meant.strip()
    for typed, _, meant in (
        pair.partition(":") for pair in _TYPED.strip().replace("\n", ",").split(",")
    )
}
"""Words as people type them."""

_TASK_VERBS = """
add check commit convert create debug delete describe document explain extract find fix format
generate give go implement inline investigate list look merge move open push read rebase
refactor remove rename rerun revert review run search show simplify sort split start summarize
test try update write zeig erkläre schreib prüfe suche montre explique ajoute lance
"""
_TASKS = frozenset(_TASK_VERBS.split())
"""Verbs with which a prompt asks for something to be done once."""

_ASKS = re.compile(
    r"(?:(?:ok|so|and|hm|hey|und|et) )*(?:(?:how|what|whats|why|when|where|who|which|wie|was|warum"
    r"|wieso|wo|wann|wer|welche[rs]?|pourquoi|comment|quel(?:le)?|où|cómo|qué|por qué|is|are|does"
    r"|did|can|could|would|shall|may|any|kann|kannst) |do (?:i|we|you) |should (?:i|we) )",
    re.IGNORECASE,
)
_UNCHECKED = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[ \]\s")
_REFUSAL = re.compile(r"(?:ok |hm |hey |oh )?(?:no|nope|nah|nein|non)\b[,.! ]+\w", re.IGNORECASE)
_MARKS = re.compile(r"^(?:\s*(?:#{1,6}|>|[-*+]|\d+[.)])(?=\s|$))+\s*(?:\[[ xX]\]\s*)?|\*\*|__")
_PLACE = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\bports?\b\W{0,3}\d{2,5}|\w:\d{4,5}\b|端口|https?://"
    r"|localhost|(?<![\w/])[~/](?:[\w.-]+/)+[\w.-]+|[=~<>]=\s?\d|\bv?\d+\.\d+\.\d+\b"
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|com|org|net|io|dev|corp)\b"
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
        self.first_words = frozenset(parts[0].split()[0] for parts in self.phrases)
        self.spaceless = tuple(spaceless.split())

    def are_in(self, sentence: str, words: str) -> bool:
        """Returns whether one is in a sentence, whose words are given too."""
        said = words.split()
        if not self.words.isdisjoint(said):
            return True
        if not self.first_words.isdisjoint(said):
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
        "待办 待辦 尚未 还没 還沒 明天 下一步 未完成 剩下 残り まだ 次は 未対応 아직 남은",
    ),
    Kind.DECISION: (
        _DECISION,
        "决定 決定 改用 采用 採用 以后都 总是 不要 必须 必ず 使うことに しないで 항상 결정",
    ),
    Kind.FOUND: (_FOUND, "原因 是因为 问题出在 問題在於 原因は"),
    Kind.PERSON: (_PERSON, "我是 我叫 我用 我住 我喜欢 我偏好 私は 저는"),
    None: (_DONE, "已完成 完成了 修好 修复了 完了 直した"),
}
"""The cues of each kind, the first match counts; then those of scripts without spaces."""


_USER_DECISIONS = _Cues(_DECISION_OF_USER, "就用 不用 别 請 请 改成 换成 换回 先不 只用 やめ")
_OFFERS = _Cues(_OFFER, "你可以 您可以 需要我")


@lru_cache(maxsize=4)  # several functions look at the same sentence
def _words_of(sentence: str) -> str:
    """Returns the words in lower case, each between blanks."""
    words = _WORD.findall(sentence.lower())
    return f" {' '.join(_INFORMAL.get(word, word) for word in words)} "


def is_question(sentence: str) -> bool:
    """Returns whether a sentence asks."""
    return sentence.endswith(("?", "\uff1f"))


def is_request(sentence: str) -> bool:
    """Returns whether a prompt's sentence asks for an answer, even without a question mark."""
    return is_question(sentence) or _ASKS.match(sentence) is not None


def kind_of(sentence: str, *, by_user: bool) -> Kind | None:
    """Returns what a sentence states; only what the user says can be about the user."""
    if is_request(sentence) if by_user else is_question(sentence):
        return None
    words = _words_of(sentence)
    if _UNCHECKED.match(sentence):
        return Kind.OPEN
    if not by_user and _OFFERS.are_in(sentence, words):
        return None
    for kind in _LISTS:
        is_possible = kind is not None and (by_user or kind is not Kind.PERSON)
        if is_possible and _cues(kind).are_in(sentence, words):
            return kind
    if by_user and (_REFUSAL.match(sentence) or _USER_DECISIONS.are_in(sentence, words)):
        return Kind.DECISION
    return None


def is_offer(sentence: str) -> bool:
    """Returns whether an assistant's sentence only offers or suggests something."""
    return _OFFERS.are_in(sentence, _words_of(sentence))


def is_task(sentence: str) -> bool:
    """Returns whether a prompt's sentence asks for something to be done once."""
    words = _words_of(sentence).split()
    polite = {"please", "can", "could", "you", "ok", "and", "now", "hey", "kannst", "du"}
    first = next((word for word in words if word not in polite), "")
    return first in _TASKS


def is_place(sentence: str) -> bool:
    """Returns whether a sentence has a host, a port, a path or an exact version in it."""
    return _PLACE.search(sentence) is not None


def is_layout(sentence: str) -> bool:
    """Returns whether a line is a heading or a table's row."""
    return sentence.startswith(("#", "|")) or sentence.rstrip().endswith((":", "|"))


def without_marks(sentence: str) -> str:
    """Returns a sentence without the marks of Markdown around it."""
    return _MARKS.sub("", sentence).strip()


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
