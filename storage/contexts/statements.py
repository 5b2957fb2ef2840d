"""Statements: sentences about a subject, which a newer sentence can end.

A newer sentence ends an earlier one that it denies ("no longer"). It also ends one from which it
differs in one value, if it marks that as a change ("now", "since May", "instead of"), or if there
is one value at a time ("lives in", "Acme's API limit is"). Sentences that can hold together stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from storage.retrieval.ranking import numbers_and_negations
from storage.tokenize import fold, is_spaceless

LONGEST = 200  # maximum characters of a text that may be a statement
PURPOSE = 2  # minimum words after a value that say for what it is, such as "for the chat"
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
    r"|often|usually|today|tomorrow|tonight|this \w+|will|was|were|wenn|falls|während|oder|und|auch"
    r"|vielleicht|manchmal|oft|meistens|heute|morgen|diese \w+|wird|war|waren)\b"
    r"|如果|可能|也|还|有时|今天|明天|本周|这周|将|曾|^[他她它你您这那]|^(?:he|she|they|you|its?|his|her|their|your|this|that)\b|^\w+day['\u2019]s\b"
)
"""Words that leave open whether a sentence holds in general, or alone."""

_SINCE = r"(?:dem |der |Anfang |Ende |Mitte |letzte[mnr] |1?\d\. ?|the |last |early |late )*\w+"
_NOW = (
    rf"(?i)^(?:since|as of|from|seit|ab) {_SINCE}(?: \d{{4}})?,? |,? (?:since|as of) {_SINCE}"
    rf"(?: \d{{4}})?$|\b(?:seit|ab) {_SINCE}(?: \d{{4}})?"
    r"|\b(?:now|currently|nowadays|meanwhile|from now on|again|jetzt|nun|inzwischen|mittlerweile"
    r"|derzeit|aktuell|neuerdings|nunmehr|wieder)\b,?"
    r"|[从自][^,]{1,8}?(?:起|开始|以来),?|现在|目前|如今|已经|改(?=[用为成在])|重新"
)
_NO_LONGER = (
    r"(?i)\bno longer\b|\b(?:do|does|is|are|am)(?:n['\u2019]t| not)\b(?=.* any ?more$)| any ?more$"
    r"|\bnicht (?:mehr|länger)\b|\bk(?=ein\w{0,2}\b.* mehr$)| mehr$"
    r"|(?:现在)?(?:已经)?不再|已经?不(?=.*了$)"
)
_INSTEAD = (
    r"(?i),? (?:instead of|rather than|statt|anstatt|anstelle von) (?P<former>.+)$"
    r"|,?(?:而不是|代替)(?P<past>.+)$"
)
_WORDINGS = (
    (r"(?i)\b(?:(?:ha(?:s|ve) (?:been )?|(?:is|am|are) )liv(?:ed|ing)|resides?) in\b", "lives in"),
    (r"(?i)\b(?:ha(?:s|ve) )?(?:just )?moved (?:from [\w ]+ )?to\b", "now lives in"),
    (r"(?i)\b(?:ist|bin) (?:von [\w ]+ )?nach (.+) (?:um)?gezogen$", r"wohnt jetzt in \1"),
    (r"(?i)\b(?:ha(?:s|ve) )?switched from (.+) to (.+)$", r"uses \2 instead of \1"),
    (r"(?i)\b(?:ist|bin|sind) von (.+) (?:auf|zu) (.+) (?:um|ge)\w+$", r"nutzt \2 statt \1"),
    (r"\b([Ll])ebe?(t?) in\b", r"wohn\2 in"),
    (r"搬[到去]了?", "现在住在"),
    (r"居住在", "住在"),
    (r"换成了?", "改用"),
    (r"[改变][为成]", "现在是"),
    (r"(?<=[^为作认因])为(?=\S)(?=.*的?.)", "是"),
    (r"\b(?:ha(?:s|ve) |was |were )?changed to\b", "is now"),
    (r"\b(?:beträgt|lautet|liegt((?: \w+)?) (?:bei|auf))\b", r"ist\1"),
    (r"^(?:[Tt]he )?([\w-]+(?: [\w-]+){0,4}?) of (.+?) (is|are)\b", r"\2's \1 \3"),
    (r"^(?:Der|Die|Das) ([\w-]+) von (.+?) (ist|sind)\b", r"\2's \1 \3"),
    (r"^(?!Das|Was|Es|\w*les\b)([A-ZÄÖÜ]\w+)s (?=[A-ZÄÖÜ][\w-]+ (?:ist|sind)\b)", r"\1's "),
)
_USER = (
    (
        r"(?i)^(?:the user|der (?:be)?nutzer|die (?:be)?nutzerin|i|ich)\b(?!['\u2019])|^我(?!们)",
        "User",
    ),
    (r"(?i)^(?:the user['\u2019]s|my|meine?)\b", "User's"),
    (r"^用户", "User"),
)
"""Wordings, each with the one that stands for all of its kind: of predicates, and of the user."""

_NAMED = (
    r"(?!(?:The|Our|De[rs]|Die|Das|Unsere?|He|She|They|You|It|Its|This|That|These|There|Here|Er|Sie"
    r"|Es|Man|Dies\w*|Hier|Dort|\w+day|\w+tag)\b)[A-ZÄÖÜ][\w.-]*(?: [A-ZÄÖÜ][\w.-]*){0,3}"
)
_PHRASE = r"(?:(?i:the|our|der|die|das|unsere?)|.*\w['\u2019]s)(?: [\w-]+){1,4}?"
_VERB = r"(?!(?:on|in|of|for|to|at|and|or|with|by|von|zu|für|aus|über|und|mit|bei)\b)[a-zäöüß]\S*"
_VERBS = (
    r"is|are|ist|sind|runs?|starts?|ends?|meets?|uses?|lives?|works?|opens?|closes?|takes?|belongs?"
    r"|costs?|läuft|laufen|beginnt|endet|trifft|treffen|nutzt|nutzen|wohnt|arbeitet|öffnet|schließt"
    r"|findet|gehört|kostet|heißt|steht|liegt"
)
_SPACELESS_VERB = r"是|在|用|住|叫|为|由|归|吃|喝|开"
_IDEOGRAPH = "[\u4e00-\u9fff]"
_FORMS = {"is": "be", "are": "be", "am": "be", "ist": "be", "sind": "be", "bin": "be"}
_ENDINGS = frozenset("enst")  # letters of the endings of verbs
_THE = r"(?i)\b(?:the|de[rnms]|die|das) "
_A = r"(?i)\b(?:a|eine?[nmrs]?|(?<!t )an(?= [aeiou])) "
_SOME = "a"  # the word for indefinite articles
_HOME = r"(?:lives?|wohn\w*) in|住 ?在"
_ADDITIVE = (
    r"(?:ha[st]|have|habe\w*|owns?|besitz\w+|likes?|loves?|enjoys?|hates?|dislikes?|mag|mögen"
    r"|lieb\w+|hass\w+|speaks?|spr[ei]ch\w+|knows?|kenn\w+|can|kann|learns?|lern\w+|stud\w+"
    r"|plays?|spiel\w+|reads?|lies?t|les\w+|collects?|samm\w+|supports?|visits?|besuch\w+|uses?"
    r"|\w*nutz\w+|verwende\w+|needs?|brauch\w+|wants?|takes?|nimm\w+|sells?|buys?|contains?"
    r"|includes?|works? (?:on|with)|arbeit\w+ (?:an|mit)).*"
    r"|(?:有|养|喜欢|爱|会|懂|在?学|在?读|看|去|参加|负责|用|使用|玩).*"
)
"""Verbs, with what follows, that hold of several things at a time."""

_OF_PERSON = (
    r"be (?:(?:based|located|employed|married|engaged|called|named|verheiratet|angestellt) )?"
    r"(?:in|at|to|by|as|bei|beim|im|am|mit|als)"
)
"""What a person is, of which only one holds at a time; anything else can hold together."""

_STATES = (
    r"\b(?:branch|status|state|mode|colou?r|theme|language|editor|\w*zweig|\w*modus|\w*farbe)$"
)
_COUNTRIES = (
    r"(?i)(?:the )?(?:europe?a?|asi(?:a|en)|afri[ck]a|ameri[ck]a|usa?|u\.s\.|uk|scotland|wales"
    r"|(?:deutsch|eng|fin+|griechen|hol|i[rcs]e?|po|russ|schott|switzer|thai)land|\w*(?:reich|stan)"
    r"|germany|france|spa(?:in|nien)|ital(?:y|ien)|portugal|austria|belgi\w+|netherlands|den?mark"
    r"|dänemark|sweden|schweden|norw\w+|schweiz|greece|turkey|türkei|russia|ukraine|hungary|ungarn"
    r"|romania|rumänien|chin\w|japan|[ks]\w*korea|indi\w+|vietnam|indonesi\w+|austral\w+|[kc]anada"
    r"|mexi[ck]o|bra[sz]il\w*|argentin\w+|chile|egypt|ägypten|nigeria|[ck]enya|kenia|israel|iran"
    r"|bavaria|bayern|sachsen|hessen|california)"
    r"|.*[国省洲]|加州|日本|意大利|西班牙|加拿大|澳大利亚|巴西|印度|俄罗斯|瑞士|瑞典|奥地利|荷兰|台湾"
)
"""Countries and regions, in which a city is; others end like those that are listed."""


_WITH_NUMBER = r".*\d.*"
_PHONE = r"[+\d][\d ()/-]{3,}"
_SINGLE = {
    r"(?:.* )?e ?mail(?: address)?|.*e mail adresse|.*邮箱": r"\S+@\S+",
    r"(?:.* )?(?:deadline|due date|start date|end date|birthday|address)": _WITH_NUMBER,
    r".*(?:frist|geburtstag|adresse|anschrift)": _WITH_NUMBER,
    r".*(?:截止日期|截止时间|生日|地址|住址)": _WITH_NUMBER,
    r"(?:.* )?(?:phone|mobile)(?: number)?|.*(?:telefonnummer|handynummer)": _PHONE,
    r".*(?:电话|电话号码|手机号)": _PHONE,
    r"(?:.* )?(?:password|passcode|pin)|.*(?:passwort|kennwort|密码)": r"\S*\d\S*",
    r"(?:.* )?status|.*状态": ".+",
}
"""Folded attributes that have one value at a time, with the pattern of their certain values.

Names are not included: "Ann's favourite band is ABBA" and "... is Swedish" can both hold.
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

_NUMBER = r"\d+(?:[.,:]\d+)*"
_EACH = r"\b(?:an?|per|each|every|pro|je|jede[nrs]?)\b"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence without its markers of change."""

    words: tuple[str, ...]  # characters in scripts without spaces
    subject: int  # the number of words of the subject; 0 if it is unclear
    is_phrase: bool  # whether the subject is a phrase ("our office") instead of a name
    is_change: bool
    is_denied: bool  # whether it says that it holds no longer
    former: str  # the value that it names as the former one

    @property
    def owner(self) -> str:
        """The one whose attribute the subject is, or the subject."""
        return fold(re.split(r"['\u2019]s|的", _joined(self.words[: self.subject]))[0])

    @property
    def is_certain(self) -> bool:
        """Whether the subject surely means the same everywhere, or a change is stated."""
        named = r"User|\d|[A-ZÄÖÜ]|.*[\s-][A-ZÄÖÜ\d]|.*[A-Za-z].*[\u4e00-\u9fff]"
        is_named = re.match(named, _joined(self.words[: self.subject])) is not None
        return is_named or self.is_change or self.is_denied or self._is_home

    @property
    def may_end(self) -> bool:
        """Whether it can end another statement at all."""
        return self.is_change or self.is_denied or self._is_home or self._is_attribute

    @property
    def _is_home(self) -> bool:
        return re.search(_HOME, " ".join(self.words)) is not None

    @property
    def _is_attribute(self) -> bool:
        verb = "".join(self.words[self.subject : self.subject + 1])
        return self.is_phrase and re.fullmatch("is|are|ist|sind|是", verb) is not None

    def ends(self, earlier: Statement) -> bool:
        """Returns whether the earlier statement certainly holds no longer."""
        if self.is_denied or earlier.is_denied:
            fewer, more = (self, earlier) if self.is_denied else (earlier, self)
            one, other = ([word for word in each.words if word != _SOME] for each in (more, fewer))
            return self.is_denied != earlier.is_denied and _begins(one, other)
        if not self.subject or not _begins(earlier.words, self.words[: self.subject + 1]):
            return False
        mine, others = self.words[self.subject + 1 :], earlier.words[self.subject + 1 :]
        common = _shared(mine, others)
        tail = _shared(mine[common:][::-1], others[common:][::-1])
        new, old = (each[common : len(each) - tail] for each in (mine, others))
        if not (_is_value(new) and _is_value(old)):
            return False
        if self._has_one_value(mine, others):
            return True
        verb = self.words[self.subject : self.subject + 1 + common]
        return self._is_exclusive(verb, new, old, tail)

    @property
    def _attribute(self) -> str:
        return fold(_joined(self.words[: self.subject]))

    def _has_one_value(self, new: tuple[str, ...], old: tuple[str, ...]) -> bool:
        """Returns whether both are values of an attribute that has one at a time."""
        mine, others = _joined(new), _joined(old)
        if not (self._is_attribute and _is_value(new) and _is_value(old)):
            return False
        if re.fullmatch(_MEASURED, self._attribute) and re.search(_NUMBER, mine):
            return _form(mine) == _form(others)
        kinds = (kind for name, kind in _SINGLE.items() if re.fullmatch(name, self._attribute))
        kind = next(kinds, None)
        return kind is not None and all(re.fullmatch(kind, value) for value in (mine, others))

    def _is_exclusive(
        self, verb: tuple[str, ...], new: tuple[str, ...], old: tuple[str, ...], tail: int
    ) -> bool:
        head = _joined(_FORMS.get(each, each) for each in verb if each != _SOME)
        if self.former:
            return fold(self.former) in fold(_joined(old))
        if re.fullmatch(_HOME, head) and not tail:
            return _is_place(new) and _is_place(old) and _is_country(new) == _is_country(old)
        if not self.is_change or (re.fullmatch(_ADDITIVE, head) and tail < PURPOSE):
            return False
        if not self.is_phrase and re.match("be|是", head) and not re.fullmatch(_OF_PERSON, head):
            return False
        kind = _kind(new)
        if head == "be" and kind == "word" and not re.search(_STATES, self._attribute):
            return False
        return kind == _kind(old)


def statement_of(text: str) -> Statement | None:
    """Parses a text that is exactly one sentence which holds in general; None for any other."""
    if len(text) > LONGEST:
        return None
    bare = " ".join(unicodedata.normalize("NFKC", text).split()).rstrip(".!\u3002 ")
    bare = _reworded(bare, _WORDINGS)
    instead = re.search(_INSTEAD, bare)
    bare = re.sub(_INSTEAD, "", bare)
    kept = re.sub(_NO_LONGER, "", bare)
    change = re.search(_NOW, kept)
    held = " ".join(re.sub(_NOW, "", kept).split())
    if not held or re.search(_SENTENCES, held) or re.search(_QUALIFIED, held):
        return None
    is_spaced = re.search(_IDEOGRAPH, held) is None
    if is_spaced and held[0].islower():  # "Jetzt wohnt Ann in Bonn"
        turned = rf"(\S+[td]|sind|bin) ({_NAMED}|{_PHRASE}|ich|wir)(?= |$)"
        held = re.sub(rf"^{turned}", r"\2 \1", held)
    held = _reworded(held, _USER)
    found = None
    if is_spaced:
        found = re.match(rf"(?P<name>{_NAMED}) {_VERB}", held) or re.match(
            rf"(?P<phrase>{_PHRASE}) (?:{_VERBS})\b", held
        )
        subject = found[1] if found else ""
    elif change and change.start():
        subject = _reworded(kept[: change.start()], _USER)
    else:
        found = re.match(rf"(.+?)(?={_SPACELESS_VERB})", held)
        subject = found[1] if found else ""
    return Statement(
        words=_words(held.removesuffix("了")),
        subject=len(_words(f"{subject} ")),
        is_phrase=subject != "User"
        if not is_spaced
        else bool(found and found.lastgroup == "phrase"),
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


def _joined(words: Iterable[str]) -> str:
    text = " ".join(words)
    return text.replace(" ", "") if re.search(_IDEOGRAPH, text) else text


def _form(value: str) -> str:
    return re.sub(_EACH, "/", re.sub(_NUMBER, "#", value.casefold()))


def _begins(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    return len(longer) >= len(shorter) and all(map(_is_same, longer, shorter))


def _is_same(one: str, other: str) -> bool:
    """Returns whether two words are the same, or forms of the same verb."""
    stem = _shared(one, other)
    rest = {*one[stem:], *other[stem:]}
    is_form = one.islower() and other.islower() and stem > 1 and rest <= _ENDINGS
    return fold(one) == fold(other) or is_form or _FORMS.get(one, one) == _FORMS.get(other, other)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Returns how many words or letters they have in common at the start."""
    pairs = zip(map(fold, one), map(fold, other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_value(words: tuple[str, ...]) -> bool:
    text = _joined(words)
    most = 2 * MOST_WORDS if is_spaceless(text) else MOST_WORDS
    denies = any(not each[0].isdigit() for each in numbers_and_negations(text))
    return 0 < len(words) <= most and not re.search(_UNSURE, text) and not denies


def _is_place(words: tuple[str, ...]) -> bool:
    name = r"[A-ZÄÖÜ].*|am|an|der|de|la|upon|[\u4e00-\u9fff]"
    return all(re.fullmatch(name, each) for each in words) and not re.search(
        "[楼层室路街号区里间房家]", "".join(words)
    )


def _is_country(words: tuple[str, ...]) -> bool:
    return re.fullmatch(_COUNTRIES, _joined(words)) is not None


def _kind(words: tuple[str, ...]) -> str:
    """Returns the kind of a value: values of different kinds answer different questions."""
    first = next((word for word in words if word != _SOME), _SOME)
    if re.search(r"\d", "".join(words)):
        return "number"
    if is_spaceless(first):
        return f"ends with {words[-1]}" if words[-1] in "的人" else "name"
    is_preposition = re.fullmatch(r"in|on|at|as|from|to|by|im|am|an|auf|bei|beim|als|zu|aus", first)
    return first if is_preposition else "name" if first[0].isupper() else "word"
