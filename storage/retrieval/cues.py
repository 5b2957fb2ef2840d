"""Cues: words of a question that surely say where its answer is, in English, German and Chinese."""

from __future__ import annotations

import re

__all__ = ["of_knowledge", "of_memory"]

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


def of_memory(question: str) -> str:
    """The words by which a question is about what was said and done; empty without such."""
    return _found(_MEMORY, question)


def of_knowledge(question: str) -> str:
    """The words by which a question is about documents and the like; empty without such."""
    return _found(_KNOWLEDGE, question)


def _compiled(spaced: tuple[str, ...], spaceless: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(spaced)
    return re.compile(rf"\b(?:{words})\b|{'|'.join(spaceless)}", re.IGNORECASE)


_MEMORY = _compiled((*_ENGLISH_MEMORY, *_GERMAN_MEMORY), _CHINESE_MEMORY)
_KNOWLEDGE = _compiled((*_ENGLISH_KNOWLEDGE, *_GERMAN_KNOWLEDGE), _CHINESE_KNOWLEDGE)


def _found(cues: re.Pattern[str], question: str) -> str:
    cue = cues.search(" ".join(question.split()))
    return cue[0] if cue else ""
