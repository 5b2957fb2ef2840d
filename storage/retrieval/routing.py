"""Routing: which part of what is stored a question is about.

A question is narrowed by itself only where its words are sure: "what did you just run" is about
this session, "according to the docs" about what is stored. Where the narrowed search finds nothing,
everything is searched. What the caller says is obeyed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from storage.models import SearchFilter
from storage.retrieval.inquiry import AS_ASKED, UNSAID, Inquiry, Scope

__all__ = ["Route", "route"]

_MEMORY_INTENTS = frozenset({"recall", "remember", "memory"})
_KNOWLEDGE_INTENTS = frozenset({"documentation", "knowledge"})

# Words of a question that surely say where its answer is, in English, German and Chinese.
_TALK = r"(?:session|conversation|chat)"
_THIS = r"(?:this|our|my last|our last|the (?:current|last|previous))"
_DID = r"(?:done|did|ran|called|said|told|asked|changed|wrote|used)"
_DO = rf"(?:do|run|call|say|tell|ask|change|write|use|{_DID})"
_OTHERS = r"(?! (?:of|between|with|app)\b)"
"""After what is called a session or a talk: of a court, between others."""

_ENGLISH_MEMORY = (
    rf"(?:in|during|of|since) {_THIS} {_TALK}{_OTHERS}",
    rf"(?:last|previous|earlier) {_TALK}{_OTHERS}",
    rf"(?:you|we|i) (?:have )?just {_DID}",
    rf"(?:did|have) (?:you|we|i) (?:just|already) {_DO}",
    r"last time (?:you|we|i)",
    r"(?:you|we|i) (?:[\w\']+ ){1,6}(?:last time|just now|a moment ago|a minute ago)",
    r"(?:did|have) i (?:ever |already )?(?:tell|told|ask(?:ed)?) you",
    r"(?:did|have) i (?:ever |already )?(?:mention(?:ed)?|sa(?:y|id)) (?:\w+ ){0,4}to you",
    r"i (?:have )?(?:already )?told you(?! so\b)",
    r"(?:do|can) you (?:still )?(?:remember|recall)",
    r"remember when (?:you|we|i)",
    r"what do you (?:know|remember) about me",
    r"(?:your|my) (?:last|previous) (?:tool )?(?:call|command|message|question)s?",
    rf"which (?:tools?|commands?) (?:did|have) (?:you|we|i) (?:just |already )?{_DO}",
)
_GERMAN_OTHERS = r"(?! (?:der|des|von|vom|zwischen|mit)\b)"
_GERMAN_MEMORY = (
    rf"(?:in|w\u00e4hrend) (?:dieser|unserer|der letzten) (?:sitzung|unterhaltung){_GERMAN_OTHERS}",
    rf"(?:in|w\u00e4hrend) (?:diesem|unserem|dem letzten) (?:chat|gespr\u00e4ch){_GERMAN_OTHERS}",
    rf"(?:im|beim) letzten (?:chat|gespr\u00e4ch){_GERMAN_OTHERS}",
    r"(?:hast du|haben wir|habe ich) (?:\w+ ){0,5}(?:eben|gerade|vorhin)",
    r"(?:beim letzten mal|letztes mal)",
    r"habe? ich dir (?:\w+ ){0,4}(?:gesagt|erz\u00e4hlt)",
    r"(?:wei\u00dft du noch|erinnerst du dich)",
)
_CHINESE_MEMORY = (
    r"[刚剛][才刚剛]",
    r"上一?次(?:你|我(?!国)|咱)",
    r"(?:你|我|我们|咱们?)上一?次",
    r"(?:这次|本次|当前|上次|上一次|这个|上个|前一次)的?(?:会话|对话|聊天)(?!软件|机器人|室|工具|应用)",
    r"你还?记得",
    r"我(?:有没有|是不是|是否|之前)?(?:告诉过?你|跟你说|和你说)",
)
_DOCUMENTS = r"(?:docs?|documents?|documentation|manual|handbook|wiki|knowledge base)"
_ENGLISH_KNOWLEDGE = (
    rf"(?:according to|in|from) (?:the|our|my) (?:\w+ )?{_DOCUMENTS}(?! (?:folder|directory)\b)",
    rf"what (?:do|does) (?:the|our|my) (?:\w+ )?{_DOCUMENTS}",
)
_GERMAN_KNOWLEDGE = (
    r"(?:laut|gem\u00e4\u00df) (?:der |dem |des )?(?:dokumentation|handbuchs?|anleitung|wiki)",
    r"in (?:der|unserer) (?:dokumentation|anleitung)",
    r"im (?:handbuch|wiki)",
    r"was sag(?:t|en) (?:der|die|das|unsere?) (?:dokumentation|handbuch|anleitung|wiki)",
)
_CHINESE_KNOWLEDGE = (
    r"(?:根据|按照|依据)\w{0,8}(?:文档|手册|资料|知识库)",
    r"(?:文档|手册|资料|知识库)[里中上]",
)


def _compiled(spaced: tuple[str, ...], spaceless: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(spaced)
    return re.compile(rf"\b(?:{words})\b|{'|'.join(spaceless)}", re.IGNORECASE)


_MEMORY = _compiled((*_ENGLISH_MEMORY, *_GERMAN_MEMORY), _CHINESE_MEMORY)
_KNOWLEDGE = _compiled((*_ENGLISH_KNOWLEDGE, *_GERMAN_KNOWLEDGE), _CHINESE_KNOWLEDGE)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a question is looked for.

    Attributes:
        scope: Memory, knowledge or all.
        why: Why, in a few words.
        stored: What narrows the search of stored context; None where none is asked.
        recent: Whether layer 1 is asked.
        is_guess: Whether the words of the question decided: what finds nothing is widened.
    """

    scope: Scope
    why: str
    stored: SearchFilter | None
    recent: bool
    is_guess: bool = False

    def widened(self, wanted: SearchFilter) -> Route:
        """The same question to everything, after nothing was found."""
        why = f"{self.why}, which has nothing"
        return Route(Scope.ALL, why, wanted, recent=_fits_entries(wanted))


def route(inquiry: Inquiry) -> Route:
    """Where to look for the answer of a question."""
    scope, why, is_guess = _scope(inquiry)
    wanted, recent = inquiry.wanted, _fits_entries(inquiry.wanted)
    match scope:
        case Scope.MEMORY:
            layers = tuple(layer for layer in inquiry.layers if layer > 1)
            only_recent = bool(inquiry.layers) and not layers
            memories = replace(wanted, memory=True, memory_layers=layers)
            recent = recent and (not inquiry.layers or 1 in inquiry.layers)
            return Route(scope, why, None if only_recent else memories, recent, is_guess)
        case Scope.KNOWLEDGE:
            source = inquiry.source
            stored = source.narrowed(wanted) if source else replace(wanted, memory=False)
            return Route(scope, why, stored, recent=False, is_guess=is_guess)
        case _:
            return Route(scope, why, wanted, recent)


def _scope(inquiry: Inquiry) -> tuple[Scope, str, bool]:
    """Where, why, and whether that is a guess."""
    if inquiry.scope in {Scope.MEMORY, Scope.KNOWLEDGE}:
        return inquiry.scope, AS_ASKED, False
    if inquiry.layers:
        named = ", ".join(f"l{layer}" for layer in inquiry.layers)
        return Scope.MEMORY, f"{named} is a layer of memory", False
    if inquiry.source is not None:
        return Scope.KNOWLEDGE, f"{inquiry.source.name} is a source", False
    if inquiry.scope is Scope.ALL:
        return Scope.ALL, AS_ASKED, False
    if inquiry.wanted.labels:
        return Scope.KNOWLEDGE, "filtered by metadata", False
    return _guessed(inquiry.query, inquiry.intent.strip().casefold())


def _guessed(query: str, intent: str) -> tuple[Scope, str, bool]:
    memory, knowledge = _found(_MEMORY, query), _found(_KNOWLEDGE, query)
    if memory and not knowledge:
        return Scope.MEMORY, f"{memory!r} asks for memory", True
    if knowledge and not memory:
        return Scope.KNOWLEDGE, f"{knowledge!r} asks for knowledge", True
    if not memory and intent in _MEMORY_INTENTS:
        return Scope.MEMORY, f"intent {intent!r} asks for memory", True
    if not knowledge and intent in _KNOWLEDGE_INTENTS:
        return Scope.KNOWLEDGE, f"intent {intent!r} asks for knowledge", True
    return Scope.ALL, UNSAID, False


def _fits_entries(wanted: SearchFilter) -> bool:
    """Whether entries, which have nothing but a time, can fit a filter."""
    return replace(wanted, time_range=None) == SearchFilter()


def _found(cues: re.Pattern[str], question: str) -> str:
    """The words by which a question is of that kind; empty without such."""
    cue = cues.search(" ".join(question.split()))
    return cue[0] if cue else ""
