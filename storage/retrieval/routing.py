"""Routing: decides which part of the stored data to search, and defines named sources.

A query is narrowed automatically only if its words are certain: "what did you just run" is about
this session, "according to the docs" about stored documents. If the narrowed search finds nothing,
everything is searched. An explicit scope is always obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from storage.models import Context, ContextType, SearchFilter, is_labelled
from storage.tokenize import is_spaceless, tokenize

_TALK = r"(?:session|conversation|chat)"
_THIS = r"(?:this|our|my last|our last|the (?:current|last|previous))"
_DID = (
    r"(?:done|did|ran|called|said|told|asked|changed|wrote|used|edited|read|opened|searched|saved"
    r"|created|deleted|fetched|tried)"
)
_DO = (
    r"(?:do|run|call|say|tell|ask|change|write|use|edit|open|search|save|create|delete|fetch|try"
    rf"|{_DID})"
)
_STEP = r"(?:call|command|edit|run|step|action|request|query|attempt|answer|reply|output)"
_OTHERS = r"(?! (?:of|between|with|app)\b)"  # excludes sessions of courts or talks between others

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
    rf"(?:what|which (?:\w+ )?\w+) (?:did|have) you (?:just |already |last |recently )?{_DO}",
    r"(?:did|have) (?:you|i) (?:[\w\']+ ){0,5}(?:earlier|so far|just now|before that)",
    rf"your (?:last|latest|previous|most recent) (?:\w+ )?{_STEP}s?",
)
_GERMAN_OTHERS = r"(?! (?:der|des|von|vom|zwischen|mit)\b)"
_GERMAN_DID = (
    r"(?:getan|gemacht|ausgef\u00fchrt|aufgerufen|gesagt|ge\u00e4ndert|geschrieben|gelesen|benutzt"
    r"|verwendet|gesucht)"
)
_GERMAN_MEMORY = (
    rf"(?:in|w\u00e4hrend) (?:dieser|unserer|der letzten) (?:sitzung|unterhaltung){_GERMAN_OTHERS}",
    rf"(?:in|w\u00e4hrend) (?:diesem|unserem|dem letzten) (?:chat|gespr\u00e4ch){_GERMAN_OTHERS}",
    rf"(?:im|beim) letzten (?:chat|gespr\u00e4ch){_GERMAN_OTHERS}",
    r"(?:hast du|haben wir|habe ich) (?:\w+ ){0,5}(?:eben|gerade|vorhin)",
    r"(?:beim letzten mal|letztes mal)",
    r"habe? ich dir (?:\w+ ){0,4}(?:gesagt|erz\u00e4hlt)",
    r"(?:wei\u00dft du noch|erinnerst du dich)",
    r"(?:hast du|habe ich) (?:\w+ ){0,5}(?:zuletzt|bisher|zuvor|vorher)",
    rf"(?:was|welche\w* \w+) hast du (?:\w+ ){{0,3}}{_GERMAN_DID}",
    (
        r"(?:dein|deine|deinen|deiner|deinem) (?:letzte\w*|vorige\w*)"
        r" (?:aufruf|befehl|schritt|antwort|suche|\u00e4nderung)"
    ),
)
_CHINESE_MEMORY = (
    r"[刚剛][才刚剛]",
    r"[你我][刚剛]",
    r"你(?:都|已经|之前|先前|到目前为止|目前)?(?:做|运行|执行|调用|修改|读|说|写|搜索|用)[了过](?:什么|哪)",
    r"你(?:的|最近的?)?(?:上一?[个次条步]|最后一?[个次条步]|最近一?[个次条步])",
    r"上一?次(?:你|我(?!国)|咱)",
    r"(?:你|我|我们|咱们?)上一?次",
    r"(?:这次|本次|当前|上次|上一次|这个|上个|前一次)的?(?:会话|对话|聊天)(?!软件|机器人|室|工具|应用)",
    r"你还?记得",
    r"我(?:有没有|是不是|是否|之前)?(?:告诉过?你|跟你说|和你说)",
)

# Words of a question about failures in this session.
_FAILING = r"(?:fail(?:ed|s|ing)?|go(?:es)? wrong|went wrong|errored|crash(?:ed)?|broke)"
_ENGLISH_FAILURES = (
    (
        rf"(?:what|anything|something) (?:just |else )?(?:has |have )?{_FAILING}"
        rf"(?= (?:just now|so far|earlier|here|in {_THIS} {_TALK})|\W*$)"
    ),
    (
        rf"(?:which|what|how many|did any|any|did (?:the|that|your) (?:last )?)(?: of)?"
        rf"(?: my| your| our)? ?(?:last |tool |recent )?(?:tool|{_STEP})s?"
        rf" (?:just |have |has )?{_FAILING}"
    ),
    rf"why (?:did|has) (?:your|my|that|the last|the previous) (?:\w+ )?{_STEP} {_FAILING}",
    r"(?:the|your|my|which) (?:last|latest|previous|recent) (?:errors?|failures?|failed \w+)",
    (
        r"(?:which|what|any) (?:errors?|failures?) (?:did (?:you|we|i)|have (?:you|we|i)|came up"
        r"|occurred)(?: \w+)?(?= (?:just now|so far|here|in this)|\W*$)"
    ),
)
_GERMAN_FAILURES = (
    (
        r"was (?:ist |lief )?(?:eben |gerade |denn |alles |bisher )?(?:schief ?"
        r"(?:gegangen|gelaufen)?|fehlgeschlagen|gescheitert)(?=\W*$)"
    ),
    (
        r"welche\w* (?:aufrufe?|befehle?|werkzeuge?|schritte?|\u00e4nderung(?:en)?|tools?)"
        r" (?:ist |sind |hat |haben )?(?:eben |gerade )?(?:fehlgeschlagen|schlug(?:en)? fehl"
        r"|gescheitert|schief ?gegangen|nicht (?:geklappt|funktioniert))"
    ),
    (
        r"welche\w* fehler (?:gab es|hattest du|hatten wir|sind aufgetreten|ist aufgetreten)"
        r"(?= (?:eben|gerade|bisher|hier|in dieser)|\W*$)"
    ),
    r"(?:der|den|dein|deine) letzten? fehler",
)
_CHINESE_FAILURES = (
    (
        r"[哪什几](?:个|些|次|步|么|一个|一次|一步)?(?:工具)?(?:调用|命令|操作|步骤|工具|编辑)?"
        r"(?:刚才|刚刚)?(?:失败|出错|报错)了?(?:吗|呢)?(?=\W*$)"
    ),
    r"(?:哪里|什么地方)(?:出错|出了?问题|失败|不对)了?(?=\W*$)",
    r"(?:上一?次|最近|刚才|刚刚)的?(?:错误|失败|报错)",
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


def _any(spaced: tuple[str, ...], spaceless: tuple[str, ...]) -> str:
    return rf"(?i)\b(?:{'|'.join(spaced)})\b|{'|'.join(spaceless)}"


_PREVIOUS = _any(
    (
        r"last time|(?:last|previous|earlier) (?:session|conversation|chat)",
        r"letzte[mns]? (?:mal|sitzung|gespr\u00e4ch|chat|unterhaltung)",
    ),
    (r"\u4e0a\u4e00?\u6b21[^调命操步]", "\u524d\u4e00\u6b21"),
)
_REMEMBERED = _any((r"know|remember|recall|wei\u00dft|erinner\w*",), ("\u8bb0\u5f97",))
_EMPTY_TERMS = frozenset(
    # As `tokenize` stems them.
    """
    run ran execut call use do done tool command step file result output answer repli say said tell
    told ask chang edit write wrote read open search look just now earlier far happen show list
    summar summaris so everyth anyth someth fail wrong error go went last latest previous recent
    session convers chat messag question request action exact discuss talk
    was welch hast du hab ich mir dir wir bitte denn eben gerad gerade vorhin zuletzt bisher befehl
    befehle aufruf aufrufe datei dateien werkzeug werkzeuge schritt schritte gemacht getan gesagt
    ausgefuhrt aufgerufen geandert geschrieben gelesen benutzt verwendet gesucht besprochen
    die der das den alles noch mal nun und in dieser sitzung es haben ist war passiert worum ging
    """.split()  # noqa: SIM905  # words read best as text
)
_CHINESE_EMPTY = (
    r"[你我们了什么哪些个次条步的吗呢过都做说写读是在有这里中\W]|运行|执行|调用|修改|使用|搜索|命令|工具"
    r"|操作|文件|会话|对话|发生"
)

# Strings, which `re` compiles and caches on first use, so that startup stays fast.
_MEMORY = _any((*_ENGLISH_MEMORY, *_GERMAN_MEMORY), _CHINESE_MEMORY)
_FAILURES = _any((*_ENGLISH_FAILURES, *_GERMAN_FAILURES), _CHINESE_FAILURES)
_FAILED = _any(
    (_FAILING, r"errors?|failures?|fehler|fehlgeschlagen\w*|gescheitert|schief\w*"),
    (r"失败|出错|报错|错误",),
)
_KNOWLEDGE = _any((*_ENGLISH_KNOWLEDGE, *_GERMAN_KNOWLEDGE), _CHINESE_KNOWLEDGE)


def _asks_what_was_last(text: str) -> bool:
    """Returns whether a question about a session has no topic."""
    if _find_cue(_REMEMBERED, text):
        return False
    plain = " ".join(text.split())
    rest = re.sub(_MEMORY, " ", re.sub(_FAILURES, " ", plain))
    if is_spaceless(plain):
        return len(re.sub(_CHINESE_EMPTY, "", rest)) <= 1
    return _EMPTY_TERMS.issuperset(tokenize(rest))


def _find_cue(pattern: str, text: str) -> str:
    found = re.search(pattern, " ".join(text.split()))
    return found[0] if found else ""


# Reasons for a route that are not worth showing.
AS_ASKED = "as asked"
UNSAID = "nothing in the question says where"
MEMORY = "memory"  # the origin of memories and of entries

# The origins of contexts outside named sources.
ORIGINS = {
    ContextType.DOCUMENT: "documents",
    ContextType.KNOWLEDGE: "knowledge",
    ContextType.EVENT: "events",
    ContextType.PROFILE: "people",
    ContextType.ENTITY: "people",
}

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A named part of the stored data that a query can be limited to; by default all of it."""

    name: str  # its name in a query, `[a-z0-9_-]{1,64}`
    description: str = ""  # what it contains
    search_hints: tuple[str, ...] = ()  # topics to search it for
    supported_filters: tuple[str, ...] = ()  # metadata keys that queries may filter by
    context_types: tuple[ContextType, ...] = ()  # only contexts of these types
    raw_types: tuple[str, ...] = ()  # only contexts of these types of source
    under: str = ""  # only contexts whose raw_id has this prefix, such as "guides/" for a folder
    # Only contexts with one of the values under each metadata key, in the form of
    # `storage.models.label_of`.
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def criteria(self) -> SearchFilter:
        """The filter of its contexts; memories are in no source."""
        return SearchFilter(
            context_types=self.context_types,
            raw_types=self.raw_types,
            under=self.under,
            labels=tuple(self.labels.items()),
            memory=False,
        )

    def holds(self, context: Context) -> bool:
        """Returns whether a context matches `criteria`."""
        return (
            not context.memory_layer
            and not context.context_type.is_card
            and (not self.context_types or context.context_type in self.context_types)
            and (not self.raw_types or context.raw_type in self.raw_types)
            and context.raw_id.startswith(self.under)
            and all(is_labelled(context.metadata, *label) for label in self.labels.items())
        )

    def narrowed(self, criteria: SearchFilter) -> SearchFilter | None:
        """Returns the combination with another filter; None if nothing can match."""
        types = _common(self.context_types, criteria.context_types)
        raw_types = _common(self.raw_types, criteria.raw_types)
        under = max(self.under, criteria.under, key=len)
        is_apart = not (under.startswith(self.under) and under.startswith(criteria.under))
        if (
            types is None
            or raw_types is None
            or is_apart
            or criteria.memory
            or criteria.memory_layers
        ):
            return None
        return replace(
            criteria,
            context_types=types,
            raw_types=raw_types,
            under=under,
            labels=(*self.criteria.labels, *criteria.labels),
            memory=False,
        )


def _common(own: tuple[ValueT, ...], other: tuple[ValueT, ...]) -> tuple[ValueT, ...] | None:
    """Intersects two lists, where an empty one means all; None if the intersection is empty."""
    if not own or not other:
        return own or other
    return tuple(value for value in other if value in own) or None


def origin_of(context: Context, sources: Sequence[Source]) -> str:
    """Returns the origin of a context: memory, the first source that contains it, or its type."""
    if context.memory_layer:
        return MEMORY
    named = (source.name for source in sources if source.holds(context))
    return next(named, ORIGINS[context.context_type])


class Scope(StrEnum):
    """The part of the stored data to search."""

    AUTO = "auto"
    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedQuery:
    """A query over memory and knowledge."""

    text: str  # what to look for
    top_k: int  # maximum number of hits
    scope: Scope = Scope.AUTO
    intent: str = ""  # the purpose, such as "recall"; it helps to choose the scope
    source: Source | None = None  # the only source to search; None means all
    sources: tuple[Source, ...] = ()  # all sources, to determine the origins of hits
    layers: tuple[int, ...] = ()  # only memories of these layers; empty means any
    # The filter; entities may be spelled in any way.
    criteria: SearchFilter = field(default_factory=SearchFilter)
    session_id: str = ""


_MEMORY_INTENTS = frozenset({"recall", "remember", "memory"})
_KNOWLEDGE_INTENTS = frozenset({"documentation", "knowledge"})


@dataclass(frozen=True, slots=True)
class Route:
    """A routing decision."""

    scope: Scope  # memory, knowledge or all
    why: str  # the reason, in a few words
    stored: SearchFilter | None  # the filter for stored contexts; None if they are not searched
    recent: bool  # whether to search layer 1
    # Whether the query's words decided; if nothing is found, the search is widened.
    is_guess: bool = False
    # Whether layer 1 was asked for; else it counts only if nothing else is found.
    asks_recent: bool = False
    failures: bool = False  # whether failed calls are asked for; else they are left out of others
    latest: bool = False  # whether the latest events are asked for, whatever their topic
    previous: bool = False  # whether layer 1 of the session before is asked for

    def widened(self, criteria: SearchFilter) -> Route:
        """Returns the route that searches everything, after this one found nothing."""
        everything = replace(criteria, cards=True)
        why = f"{self.why}, which has nothing"
        return Route(Scope.ALL, why, everything, recent=_fits_entries(criteria))


def route(query: UnifiedQuery) -> Route:
    """Decides where to search for the answer to a query."""
    scope, why, is_guess = _scope(query)
    criteria, recent = query.criteria, _fits_entries(query.criteria)
    failures = bool(_find_cue(_FAILED, query.text))
    match scope:
        case Scope.MEMORY:
            layers = tuple(layer for layer in query.layers if layer > 1)
            only_recent = bool(query.layers) and not layers
            memories = replace(criteria, memory=True, memory_layers=layers, cards=not layers)
            recent = recent and (not query.layers or 1 in query.layers)
            latest = recent and is_guess and _asks_what_was_last(query.text)
            previous = is_guess and bool(_find_cue(_PREVIOUS, query.text))
            stored = None if only_recent or latest else memories
            found = Route(scope, why, stored, recent, is_guess, asks_recent=True)
            return replace(found, failures=failures, latest=latest, previous=previous)
        case Scope.KNOWLEDGE:
            known = replace(criteria, memory=False, cards=True)
            stored = query.source.narrowed(criteria) if query.source else known
            return Route(scope, why, stored, recent=False, is_guess=is_guess)
        case _:
            return Route(scope, why, replace(criteria, cards=True), recent, failures=failures)


def _scope(query: UnifiedQuery) -> tuple[Scope, str, bool]:
    """Returns the scope, the reason, and whether that is a guess."""
    if query.scope in {Scope.MEMORY, Scope.KNOWLEDGE}:
        return query.scope, AS_ASKED, False
    if query.layers:
        named = ", ".join(f"l{layer}" for layer in query.layers)
        return Scope.MEMORY, f"{named} is a layer of memory", False
    if query.source is not None:
        return Scope.KNOWLEDGE, f"{query.source.name} is a source", False
    if query.scope is Scope.ALL:
        return Scope.ALL, AS_ASKED, False
    if query.criteria.labels:
        return Scope.KNOWLEDGE, "filtered by metadata", False
    return _guess(query.text, query.intent.strip().casefold())


def _guess(text: str, intent: str) -> tuple[Scope, str, bool]:
    memory = _find_cue(_FAILURES, text) or _find_cue(_MEMORY, text)
    knowledge = _find_cue(_KNOWLEDGE, text)
    if memory and not knowledge:
        return Scope.MEMORY, f"{memory!r} asks for memory", True
    if knowledge and not memory:
        return Scope.KNOWLEDGE, f"{knowledge!r} asks for knowledge", True
    if not memory and intent in _MEMORY_INTENTS:
        return Scope.MEMORY, f"intent {intent!r} asks for memory", True
    if not knowledge and intent in _KNOWLEDGE_INTENTS:
        return Scope.KNOWLEDGE, f"intent {intent!r} asks for knowledge", True
    return Scope.ALL, UNSAID, False


def _fits_entries(criteria: SearchFilter) -> bool:
    """Returns whether entries, which only have a time, can match a filter."""
    return replace(criteria, time_range=None) == SearchFilter()
