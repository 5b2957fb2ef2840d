"""Routing cues: words of a question that show with certainty where its answer is.

They are in English, German and Chinese. Whatever the topic, "what did you just run" is about this
session, and "according to the docs" about stored documents.
"""

from __future__ import annotations

import re

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


_LONG_AGO = _any(
    (
        r"know|remember|recall|last time|(?:last|previous|earlier) (?:session|conversation|chat)",
        r"wei\u00dft|erinner\w*|letzte[mns]? (?:mal|sitzung|gespr\u00e4ch|chat|unterhaltung)",
    ),
    ("\u8bb0\u5f97", "\u4e0a\u4e00?\u6b21[^调命操步]", "\u524d\u4e00\u6b21"),
)
_EMPTY_TERMS = frozenset(
    # As `tokenize` stems them.
    """
    run ran execut call use do done tool command step file result output answer repli say said tell
    told ask chang edit write wrote read open search look just now earlier far happen show list
    summar summaris so everyth anyth someth fail wrong error go went last latest previous recent
    session convers chat messag question request action exact
    was welch hast du hab ich mir dir wir bitte denn eben gerad gerade vorhin zuletzt bisher befehl
    befehle aufruf aufrufe datei dateien werkzeug werkzeuge schritt schritte gemacht getan gesagt
    ausgefuhrt aufgerufen geandert geschrieben gelesen benutzt verwendet gesucht
    die der das den alles noch mal nun und in dieser sitzung
    """.split()  # noqa: SIM905  # words read best as text
)
_CHINESE_EMPTY = (
    r"[你我们了什么哪些个次条步的吗呢过都做说写读是在有这里中\W]|运行|执行|调用|修改|使用|搜索|命令|工具"
    r"|操作|文件|会话|对话"
)

# Strings, which `re` compiles and caches on first use, so that startup stays fast.
_MEMORY = _any((*_ENGLISH_MEMORY, *_GERMAN_MEMORY), _CHINESE_MEMORY)
_FAILURES = _any((*_ENGLISH_FAILURES, *_GERMAN_FAILURES), _CHINESE_FAILURES)
_FAILED = _any(
    (_FAILING, r"errors?|failures?|fehler|fehlgeschlagen\w*|gescheitert|schief\w*"),
    (r"失败|出错|报错|错误",),
)
_KNOWLEDGE = _any((*_ENGLISH_KNOWLEDGE, *_GERMAN_KNOWLEDGE), _CHINESE_KNOWLEDGE)


def memory_cue(text: str) -> str:
    """Returns the words that ask for memory; empty if there are none."""
    return _cue(_FAILURES, text) or _cue(_MEMORY, text)


def knowledge_cue(text: str) -> str:
    """Returns the words that ask for stored documents; empty if there are none."""
    return _cue(_KNOWLEDGE, text)


def tells_of_failures(text: str) -> bool:
    """Returns whether a question mentions failures."""
    return bool(_cue(_FAILED, text))


def asks_what_was_last(text: str) -> bool:
    """Returns whether a question about this session has no topic."""
    if _cue(_LONG_AGO, text):
        return False
    plain = " ".join(text.split())
    rest = re.sub(_MEMORY, " ", re.sub(_FAILURES, " ", plain))
    if is_spaceless(plain):
        return len(re.sub(_CHINESE_EMPTY, "", rest)) <= 1
    return _EMPTY_TERMS.issuperset(tokenize(rest))


def _cue(pattern: str, text: str) -> str:
    found = re.search(pattern, " ".join(text.split()))
    return found[0] if found else ""
