"""Statements: sentences about a subject, which a newer sentence can end.

A newer sentence ends an earlier one that it denies ("no longer"), or from which it differs in one
value. The value is one that it names ("instead of"), or there is one at a time ("lives in", "Acme's
API limit is"). Some verbs also need a marked change ("now"). What can hold together stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from storage.retrieval.ranking import numbers_and_negations
from storage.tokenize import fold, is_spaceless

REMEMBERED = 4096  # parsed texts: each new one is compared with many of the earlier ones
LONGEST = 200  # maximum characters of a text that may be a statement
MOST_WORDS = 6  # maximum words of a value; twice as many characters in scripts without spaces

_SENTENCES = (
    r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bProf)(?<!\bSt)(?<!\d)[.!?]\s|[,;:]\s|\n"
    r"|\d[.!?]\s(?!Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dez)"
)
_UNSURE = (
    r"(?i)\b(?:or|and|but|for|if|when|unless|except|until|since|from|with|because|during|while"
    r"|only|before|after|probably|maybe|perhaps|possibly|about|around|roughly|sometimes|often"
    r"|usually|at least|at most|more than|less than|over|under|above|below|up to|also|too"
    r"|oder|und|aber|für|wenn|falls|außer|bis|seit|ab|mit|weil|während|nur|vor|nach|wohl|vielleicht"
    r"|wahrscheinlich|etwa|ungefähr|manchmal|oft|mindestens|höchstens|mehr als|weniger als|über"
    r"|unter|auch)\b|或|和|但|如果|可能|大约|大概|至少|至多|超过|以上|以下|只|也"
)
"""Words in a value that may hold alongside another value."""

_QUALIFIED = (
    r"(?i)\?|[,;:](?=\D)|\b(?:if|when|while|unless|or|and|also|too|maybe|perhaps|probably|sometimes"
    r"|often|usually|today|tomorrow|tonight|temporarily|this \w+|will|was|were|wenn|falls|während"
    r"|oder|und|auch|vielleicht|manchmal|oft|meistens|heute|morgen|vorübergehend|diese \w+|wird|war"
    r"|waren)\b|如果|可能|也|还|有时|暂时|临时|今天|明天|本周|这周|将|曾|^[他她它你您这那]"
    r"|^(?:he|she|they|you|its?|his|her|their|your|this|that)\b|^\w+day's\b"
)
"""Words that leave open whether a sentence holds in general, or alone."""

_SINCE = r"(?:dem |der |Anfang |Ende |Mitte |letzte[mnr] |1?\d\. ?|the |last |early |late )*\w+"
_NOW = (
    rf"(?i)^(?:since|seit) {_SINCE}(?: \d{{4}})?,? |,? since {_SINCE}(?: \d{{4}})?$"
    rf"|\bseit {_SINCE}(?: \d{{4}})?|\b(?:now|currently|nowadays|meanwhile|from now on|again|nun"
    r"|jetzt|inzwischen|mittlerweile|derzeit|aktuell|neuerdings|nunmehr|wieder|ab sofort)\b,?"
    r"|[从自][^,]{1,8}?(?:起|开始|以来),?|现在|目前|如今|已经|改(?=[用为成在])|重新"
)
"""Markers of a change. "From May" marks none: until then, the earlier statement holds."""

_NO_LONGER = (
    r"(?i)\bno longer\b|\b(?:do|does|is|are|am)(?:n't| not)\b(.*) any ?more$"
    r"|\bnicht (?:mehr|länger)\b|\bk(ein\w{0,2}\b.*) mehr$"
    r"|(?:现在)?(?:已经)?不再|已经?不(?=.*了$)"
)
_INSTEAD = (
    r"(?i),? (?:instead of|rather than|statt|anstatt|anstelle von) (?P<former>.+)$"
    r"|,?(?:而不是|代替)(?P<past>.+)$"
)
_WORDINGS = (
    (r"(?i)\b(?:(?:ha(?:s|ve) (?:been )?|(?:is|am|are) )liv(?:ed|ing)|resides?) in\b", "lives in"),
    (r"(?i)\b(?:ha(?:s|ve) )?moved from (.+) to (.+)$", r"lives in \2 instead of \1"),
    (r"(?i)\b(?:ist|bin) (?:von [\w ]+ )?nach (.+) (?:um)?gezogen$", r"wohnt jetzt in \1"),
    (r"(?i)\b(?:ha(?:s|ve) )?switched from (.+) to (.+)$", r"uses \2 instead of \1"),
    (r"(?i)\b(?:ist|bin|sind) von (.+) (?:auf|zu) (.+) (?:um|ge)\w+$", r"nutzt \2 statt \1"),
    (r"\b([Ll])ebe?(t?) in\b", r"wohn\2 in"),
    (r"搬[到去]了?", "现在住在"),
    (r"居住在", "住在"),
    (r"换成了?", "改用"),
    (r"[改变][为成]", "现在是"),
    (r"(?<=[^为作认因])为(?=\S)", "是"),
    (r"\b(?:ha(?:s|ve) |was |were )?changed to\b", "is now"),
    (r"\b(?:beträgt|lautet|liegt((?: \w+)?) (?:bei|auf))\b", r"ist\1"),
    (r"^The ([\w-]+(?: [\w-]+){0,4}?) of (.+?) (is|are)\b", r"\2's \1 \3"),
    (r"^(?:Der|Die|Das) ([\w-]+) von (.+?) (ist|sind)\b", r"\2's \1 \3"),
    (r"^(?!Das|Was|Es|\w*les\b)([A-ZÄÖÜ]\w+)s (?=[A-ZÄÖÜ][\w-]+ (?:ist|sind)\b)", r"\1's "),
)
_USER = (
    (r"(?i)^(?:(?:the user|d\w+ (?:be)?nutzer(?:in)?|i|ich)\b(?!')|我(?!们)|用户)", "User"),
    (r"(?i)^(?:the user's|my|meine?)\b", "User's"),
)
"""Replacements that reduce the wordings of a predicate, or of the user, to one."""

_NAMED = (
    r"(?!(?:The|Our|De[rs]|Die|Das|Unsere?|He|She|They|You|It|Its|This|That|These|There|Here|Er|Sie"
    r"|Es|Man|Dies\w*|Hier|Dort|\w+day|\w+tag)\b)[A-ZÄÖÜ][\w.-]*(?: [A-ZÄÖÜ][\w.-]*){0,3}"
)
_PHRASE = r"(?:(?i:the|our|der|die|das|unsere?)|.*\w's)(?: [\w-]+){1,4}?"
_VERB = r"(?!(?:on|in|of|for|to|at|and|or|with|by|von|zu|für|aus|über|und|mit|bei)\b)[a-zäöüß]\S*"
_VERBS = (
    r"is|are|ist|sind|lives?|wohnt|works?|arbeitet|meets?|starts?|begins?|ends?|opens?|closes?"
    r"|leaves?|belongs?|costs?|uses?|beginnt|endet|öffnet|schließt|gehört|kostet|heißt|nutzt"
)
_IDEOGRAPH = "[\u4e00-\u9fff]"
_FORMS = {"is": "be", "are": "be", "am": "be", "ist": "be", "sind": "be", "bin": "be"}
_THE = r"(?i)\b(?:the|de[rnms]|die|das) "
_A = r"(?i)\b(?:a|eine?[nmrs]?|(?<!t )an(?= [aeiou])) "
_SOME = "a"  # the word for indefinite articles
_HOME = r"(?:lives?|wohn\w*) in|住 ?在"
_EXCLUSIVE = (
    r"(?:works? (?:at|for)|arbeite\w* (?:bei|für)|reports? to|berichte\w* an|deploys? with|heißt"
    r"|costs?|kostet|(?:meets?|starts?|begins?|ends?|opens?|closes?|leaves?) (?:on|at)"
    r"|(?:beginn|ende|öffne|schließ)e?t (?:um|am))…|(?:use|nutze|verwende)\w?…(?:for|as|für|als) .+"
    r"|用….{2,}|在…(?:上班|[楼层点])|在(?:星期|周)….*"
)
"""Verbs, each with what follows its value, that have one value at a time; "plays" has several."""

_STATES = (
    r"(?:.* )?(?:branch|status|state|mode|colou?r|language|\w*zweig|\w*modus|\w*farbe)|.*分支"
    r"|(?:.* )?(?:party|meeting|office|\w*feier|\w*treffen|büro) (?:in|on|at|im|am)"
)
"""Folded attributes, with the preposition of their value, that can take any new value."""

_PREPOSITION = r"in|on|at|as|from|to|by|im|am|an|auf|bei|beim|als|zu|aus"
_WEEKDAY = r"(?:\w+(?:day|tag)|mittwoch)s?"
_FULL_NAME = (
    r"(?:[A-ZÄÖÜ][\w.-]*(?: |$)){2,}"
    "|[王李张刘陈杨黄赵吴周徐孙朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡].{1,2}"
)
_REGIONS = (
    r"(?i)(?:the )?(?:..+(?:(?<!mai)land|lands|stan|ia|ien|reich|shire|korea|[ck]arolina|dakota)"
    r"|europ[ea]|afri[ck]a|ameri[ck]a|usa?|u\.s\.|uk|wales|germany|france|spain|italy|portugal"
    r"|belgium|netherlands|den?mark|dänemark|sweden|schweden|norway|norwegen|schweiz|greece|turkey"
    r"|türkei|ukraine|hungary|ungarn|china|japan|vietnam|[kc]anada|mexi[ck]o|bra[sz]il|chile|peru"
    r"|egypt|ägypten|[ck]enya|israel|iran|bayern|sachsen|hessen|thüringen|texas|florida|ontario)"
    r"|.*[国省洲]|加州|日本|意大利|西班牙|加拿大|澳大利亚|巴西|印度|俄罗斯|瑞士|瑞典|奥地利|荷兰|台湾"
)
"""Places in which a city may be; a few cities that end like them are left alone too."""
_SINGLE = (
    r"(?:.* )?(?:deadline|due date|start date|end date|birthday|address|phone number|mobile number)"
    r"|.*(?:frist|geburtstag|adresse|anschrift|telefonnummer|handynummer|截止日期|截止时间|生日|地址"
    r"|住址|电话|电话号码|手机号)"
)
"""Folded attributes that have one value with a number at a time, for each form of such a value.

Names are not included: "Ann's favourite band is ABBA" and "... is Swedish" can both hold. Nor are
passwords and e-mail addresses: a person has several.
"""

_MEASURED = (
    r"(?:.* )?(?:limit|quota|size|count|rate|timeout|port|price|rent|salary|budget|weight|height"
    r"|age|capacity|balance|version|threshold|length|width|interval|cost|fee|maximum|minimum)"
    r"|.*(?:limit|kontingent|grosse|anzahl|zahl|rate|timeout|port|preis|miete|gehalt|budget|gewicht"
    r"|hohe|alter|kapazitat|kontostand|version|länge|breite|intervall|kosten|gebuhr)"
    r"|.*(?:限额|限制|上限|配额|大小|数量|次数|速率|超时|端口|价格|租金|工资|薪水|预算|体重|身高"
    r"|年龄|容量|余额|版本|阈值|长度|宽度|间隔|费用|规模)"
)
"""Folded attributes that have one number at a time per unit of measure."""

_NUMBER = r"\d+(?:[.,:]\d+)*|[一二三四五六七八九十]+"
_EACH = r"\b(?:an?|per|each|every|pro|je|jede[nrs]?)\b"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence without its markers of change."""

    words: tuple[str, ...]  # characters in scripts without spaces
    subject: int  # the number of words of the subject; 0 if it is unclear
    is_phrase: bool  # whether the subject is a phrase ("our office") instead of a name
    is_change: bool
    is_denied: bool  # whether it says that it no longer holds
    former: str  # the value that it names as the former one

    @property
    def owner(self) -> str:
        """The one whose attribute the subject is, or the subject."""
        return fold(re.split(r"'s|的", _joined(self.words[: self.subject]))[0])

    @property
    def is_named(self) -> bool:
        """Whether the subject surely means the same everywhere."""
        named = r"User|\d|[A-ZÄÖÜ]|.*[\s-][A-ZÄÖÜ\d]|.*[A-Za-z].*[\u4e00-\u9fff]"
        return re.match(named, _joined(self.words[: self.subject])) is not None

    @property
    def is_certain(self) -> bool:
        """Whether the subject is named, or a change is stated."""
        return self.is_named or self.is_change or self.is_denied or self._is_home

    @property
    def may_end(self) -> bool:
        """Whether it can end another statement at all."""
        return self.is_change or self.is_denied or self._is_home or self._is_state

    @property
    def _is_home(self) -> bool:
        return re.search(_HOME, " ".join(self.words)) is not None

    @property
    def _attribute(self) -> str:
        return fold(_joined(self.words[: self.subject]))

    @property
    def _is_state(self) -> bool:
        """Whether it says what its subject is."""
        verb = "".join(self.words[self.subject : self.subject + 1])
        return re.fullmatch("is|are|am|ist|sind|bin|是", verb) is not None

    def ends(self, earlier: Statement) -> bool:
        """Returns whether the earlier statement certainly holds no longer."""
        if self.is_denied or earlier.is_denied:
            one, other = (_bare(each.words) for each in (self, earlier))
            is_same = len(one) == len(other) and self._begins_alike(one, other)
            return self.is_denied != earlier.is_denied and is_same
        verb = self.words[: self.subject + 1]
        if not self.subject or not self._begins_alike(verb, earlier.words):
            return False
        mine, others = self.words[self.subject + 1 :], earlier.words[self.subject + 1 :]
        common = _shared(mine, others)
        tail = _shared(mine[common:][::-1], others[common:][::-1])
        new, old = (each[common : len(each) - tail] for each in (mine, others))
        if not (_is_value(new) and _is_value(old)):
            return False
        if self.former:
            return fold(self.former) == fold(_joined(old))
        head = _joined(_bare(self.words[self.subject :][: common + 1]))
        if re.fullmatch(_HOME, head) and not tail:
            return _is_city(new) and _is_city(old)
        said = f"{head}…{_joined(mine[len(mine) - tail :])}"
        values = (mine, others) if self._is_state else (new, old)
        is_one = self._is_state or re.fullmatch(_EXCLUSIVE, said) is not None
        is_changed = self.is_change and is_one and self._is_new_value(*values)
        return is_changed or self._has_one_value(mine, others)

    def _begins_alike(self, words: Sequence[str], longer: Sequence[str]) -> bool:
        """Returns whether the longer begins with the words; the verb may have another form."""
        return len(words) <= len(longer) and all(
            one.casefold() == other.casefold() or (self.subject == at and _is_same_verb(one, other))
            for at, (one, other) in enumerate(zip(words, longer, strict=False))
        )

    def _has_one_value(self, new: tuple[str, ...], old: tuple[str, ...]) -> bool:
        """Returns whether both are values of an attribute that has one at a time."""
        mine, others = _joined(new), _joined(old)
        if not (self.is_phrase and self._is_state and _is_value(new) and _is_value(old)):
            return False
        if re.fullmatch(_MEASURED, self._attribute) and re.search(_NUMBER, mine):
            return _form(mine) == _form(others)
        if re.fullmatch(_SINGLE, self._attribute):
            return re.search(_NUMBER, mine) is not None and _kind(new) == _kind(old)
        return re.fullmatch(r"(?:.* )?status|.*状态", self._attribute) is not None

    def _is_new_value(self, new: tuple[str, ...], old: tuple[str, ...]) -> bool:
        """Returns whether both values are of one kind, so that the new one replaces the old."""
        preposition, kind = _kind(new)
        if self.is_phrase and re.fullmatch(_STATES, f"{self._attribute} {preposition}".strip()):
            return preposition == _kind(old)[0]
        if kind == "name" and self._is_state:
            full = (re.fullmatch(_FULL_NAME, _joined(each)) for each in (new, old))
            return self.is_phrase and all(full)
        return kind != "" and _kind(new) == _kind(old)


def statement_of(text: str) -> Statement | None:
    """Parses a text that is exactly one sentence which holds in general; None for any other."""
    return None if len(text) > LONGEST else _parse(text)


@lru_cache(maxsize=REMEMBERED)
def _parse(text: str) -> Statement | None:
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    bare = " ".join(text.split()).rstrip(".!\u3002 ")
    bare = _reworded(bare, _WORDINGS)
    instead = re.search(_INSTEAD, bare)
    bare = re.sub(_INSTEAD, "", bare)
    kept = re.sub(_NO_LONGER, r"\1\2", bare)
    change = re.search(_NOW, kept)
    held = " ".join(re.sub(_NOW, "", kept).split())
    if not held or re.search(_SENTENCES, held) or re.search(_QUALIFIED, held):
        return None
    is_spaced = re.search(_IDEOGRAPH, held) is None
    if is_spaced and held[0].islower():  # "Jetzt wohnt Ann in Bonn"
        turned = rf"(\S+[td]|sind|bin) ({_NAMED}|{_PHRASE}|ich|wir)(?= |$)"
        held = re.sub(rf"^{turned}", r"\2 \1", held)
    held = _reworded(held, _USER)
    if is_spaced:
        named = rf"{_NAMED}(?= {_VERB})|(?P<phrase>{_PHRASE})(?= (?:{_VERBS})\b)"
        found = re.match(named, held)
    elif change and change.start():
        found = re.match(".+", _reworded(kept[: change.start()], _USER))
    else:
        found = re.match(r".+?(?=[是在用住])", held)
    subject = found[0] if found else ""
    return Statement(
        words=_words(held.removesuffix("了")),
        subject=len(_words(f"{subject} ")),
        is_phrase=found.lastgroup == "phrase"
        if is_spaced and found
        else subject not in {"", "User"},
        is_change=bool(change or instead),
        is_denied=kept != bare,
        former=(instead["former"] or instead["past"]) if instead else "",
    )


def _reworded(text: str, wordings: Iterable[tuple[str, str]]) -> str:
    for wording, plain in wordings:
        text = re.sub(wording, plain, text)
    return text


def _words(text: str) -> tuple[str, ...]:
    if re.search(_IDEOGRAPH, text):
        return tuple(re.findall(r"[A-Za-z0-9._-]+|\S", text))
    return tuple(re.sub(_A, f"{_SOME} ", re.sub(_THE, "", text)).split())


def _bare(words: Iterable[str]) -> list[str]:
    return [word for word in words if word != _SOME]


def _joined(words: Iterable[str]) -> str:
    text = " ".join(words)
    return text.replace(" ", "") if re.search(_IDEOGRAPH, text) else text


def _form(value: str) -> str:
    return re.sub(_EACH, "/", re.sub(_NUMBER, "#", value.casefold()))


def _is_same_verb(one: str, other: str) -> bool:
    stem = _shared(one, other)
    is_form = stem > 1 and {one[stem:], other[stem:]} <= {"", "e", "s", "t", "en", "es", "st"}
    return is_form or _FORMS.get(one, one) == _FORMS.get(other, other)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Returns how many words or letters they have in common at the start."""
    pairs = zip(map(str.casefold, one), map(str.casefold, other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_value(words: tuple[str, ...]) -> bool:
    text = _joined(words)
    most = 2 * MOST_WORDS if is_spaceless(text) else MOST_WORDS
    denies = any(not each[0].isdigit() for each in numbers_and_negations(text))
    is_single = not any(re.fullmatch(_PREPOSITION, word) for word in words[1:])
    return 0 < len(words) <= most and is_single and not re.search(_UNSURE, text) and not denies


def _is_city(words: tuple[str, ...]) -> bool:
    text = _joined(words)
    is_part = re.search("[楼层室路街号区里间房家]", text) or re.fullmatch(_REGIONS, text)
    return _is_name(words) and not is_part


def _is_name(words: Sequence[str]) -> bool:
    name = r"[A-ZÄÖÜ].*|am|an|der|de|la|upon|[\u4e00-\u9fff]"
    return all(re.fullmatch(name, each) for each in words)


def _kind(words: tuple[str, ...]) -> tuple[str, str]:
    """Returns a value's preposition, and what it is: "name", "weekday", a number's form, or ""."""
    bare = _bare(words)
    preposition = bare.pop(0) if bare and re.fullmatch(_PREPOSITION, bare[0]) else ""
    text = _joined(bare)
    if re.search(_NUMBER, text):
        return preposition, _form(re.sub(r"\b[A-ZÄÖÜ]\w{2,}(?: [A-ZÄÖÜ]\w+)*", "N", text))
    if re.fullmatch(_WEEKDAY, text.casefold()):
        return preposition, "weekday"
    return preposition, "name" if bare and _is_name(bare) else ""
