"""What the text of a query says: its numbers and negations, and what it leans on.

"And its limits?" finds nothing alone, so it is asked together with the query before it. Whatever
can stand alone is left as it was asked: words of an earlier question would only lead away from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence

from storage.tokenize import STOP_WORDS, is_spaceless, tokenize

__all__ = [
    "is_follow_up",
    "numbers_and_negations",
    "rewrite",
    "wording",
]

# The patterns are strings, which `re` compiles and keeps on first use: a start needs none of them.

FEW_TERMS = 2
"""A query with more terms says what it is about, whatever it begins with."""

FEW_OF_SOMEBODY = 3
"""The same where it speaks of a person by a pronoun, which says less than "it" does without one."""

FEW_CHARACTERS = 8
"""The same for scripts without spaces, in characters beside those that lean."""

FEW_SAID = 4
"""The same, in characters that say something."""

LONGEST = 300
"""Characters of the earlier query that are taken over."""

_OPENING = (
    r"(?i)\W*(?:and|but|or|what about|how about|what if|und|aber|oder|was ist mit|wie ist es mit"
    r"|was(?: ist)?,? wenn)\b"
)
_TURN = (
    r"(?i)\W*(?:also|then|only|just|even|same|any (?:others?|more|of|\w+er)"
    r"|which (?=is|are|was|has|does)|(?:who|what|where|how|anything|anyone|somebody|nothing) else"
    r"|auch|dann|nur|bloß|sogar|selbst|dasselbe|genauso|sonst noch|we[rnm] (?:\w+ )?noch"
    r"|welche[rs]? (?=ist|sind|war|hat|kostet))\b"
)
"""What begins a request as well as a follow-up: "also the blue one", "then list the invoices"."""

_PART = (
    r"(?i)\W*(?:in|on|at|for|with|without|from|to|by|until|since|after|before|per"
    r"|im|am|an|auf|für|mit|ohne|von|vom|bis|seit|nach|vor|zu|zum|zur|pro|um|bei)\b"
    r"(?!.*\b(?:i|my|we|our|ich|meine?\w?|wir|unsere?\w?)\b)"
)
"""What begins a part of a question as well as a question: "in which drawer?", "without milk"."""

_PRONOUN = (
    r"(?i)\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|ones"
    r"|er|ihn|ihm|ihrem|ihren|ihrer|sein|seine|seinem|seinen|seiner|dessen|deren"
    r"|davon|dazu|dafür|damit|darin|daran|dabei|danach|davor|darauf|darüber|daneben|dagegen|dorthin"
    r"|dort(?! dr\w+| oben| unten| in))\b"
    r"|(?<!\bare )\bthere(?=\W*$)"
)
_POLITE = r"\b(?:es|sie|ihr|ihre)\b|^\W*(?:Es|Sie|Ihr|Ihre)\b"
"""German pronouns, which written with a capital within a sentence address the one who is asked."""

_EXPLETIVE = (
    r"(?i)\b(?:(?:gibt|gab|gäbe) es|es (?:gibt|gab|gäbe)|wie spät ist es|(?:regnet|schneit) es"
    r"|what time is it|(?:is|will|did) it (?:going to )?(?:rain|snow)\w*)\b"
)
_POINTING = (
    # "this" alone points to what was said, "this week" does not.
    r"(?i)\b(?:this|that|these|those|one)(?=\W*$|[,.;:?!]"
    r"|\W+(?:is|isn|was|wasn|are|aren|were|has|have|had|do|does|doesn|did|didn|can|could|will|won"
    r"|would|should|may|might|must|be|mean|means|cost|costs|work|works|worked|take|takes|need|needs"
    r"|help|helps|apply|applies|happen|happens|happened|come|comes|go|goes|look|looks|say|says|too"
    r"|so|not|again|really|still|already|better|much|true|right|ok|okay|on|in|at|for|from|of|to"
    r"|with|by|about|than|as|and|or|if|when|also|only|either|instead|now|then)\b"
    r"|\W+\w+\W+(?:the|an?|my|our|your|his|her|its|their|any|all|every|each|some|no|me|us|you|it"
    r"|them)\b)"  # a verb stands between the two
)
_ELLIPSIS = (
    r"(?i)\b(?:the \w+|which|another|each) ones?\b|^\W*(?:why|how|warum|wieso|weshalb) so\W+\w+\W*$"
    r"|\b(?:the|last|next) (?:day|week|month|year)s? (?:before|after)\W*$"
)
_GERMAN_ELLIPSIS = (
    r"\b(?:der|die|das|den|dem) (?:nächst|letzt|vorig|erst|zweit|dritt|ander|neu|alt|best)\w+"
    r"(?=\W*$|\W+[a-zäöü])|\beine?n? \w{3,}ere[nrs]?\W*$"
)
_GERMAN_POINTING = (
    # German writes nouns with a capital: where one follows, "das" belongs to it.
    r"\b(?:[Dd]as|[Dd]ies|[Dd]ieses|[Dd]iese|[Dd]ieser)\b"
    r"(?!(?:\W+\w+){0,2}?\W+[A-ZÄÖÜ])"
    r"|\b[Dd](?:ie|er|en|em)(?=\W+(?:wieder|noch|auch|nicht|denn|dann|jetzt|schon|immer|mal|so"
    r"|zusammen|beide|überhaupt|eigentlich|selbst|auf|in|im|an|am|bei|beim|für|mit|zu|zum|zur|von"
    r"|vom|aus|nach)\b)"
    r"|\b(?:da(?=\W*$|\W+(?:auch|noch|schon|mit|was|etwas|drin))|drin)\b"
    r"|\b[Dd](?:as|ies)(?=\W+(?:auch|für|noch|nicht|zu|so|immer|wirklich|mit|bei|in|im|an|am|auf"
    r"|von|vom|zum|zur|schon|jetzt|ich|du|er|sie|wir|man|ein|eine|einen|der|die|den)\b)"
)
_GERMAN_WORDS = frozenset(
    """
    aber als am auch auf bei das dass dem den der des die du ein eine einen er es für gibt habe
    haben hast hat ich ihn ihr im ist kann man mit nach nicht noch nun oder sein seine sie sind und
    uns von vom war warum was wem wen wer werden wessen wie wir wird wo wann zu zum zur welche
    welcher welches
    """.split()  # noqa: SIM905  # words read best as text
)
_SOMEBODY = r"\b(?:he|him|his|she|her|hers|they|them|their|theirs|er|ihn|ihm|ihnen|sie)\b"
_PERSON = r"(?i)\b(?:he|him|his|she|her|hers)\b"
_NAME = (
    r"(?<=[\w,] )(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|(?:Janu|Febru)ary\b|March\b"
    r"|April\b|May\b|June\b|July\b|August\b|(?:Septem|Octo|Novem|Decem)ber\b)"
    r"[A-ZÄÖÜ]\w*[a-z]\w*"
)
_ACRONYM = r"\b[A-Z]{2,}\b"
_SAYING = r"(?i)\d|\b(?:who (?:am i|are you)|wer (?:bin ich|bist du))\b"
"""What says something though it is no term."""

_SPACELESS_LEANING = (
    r"^哪[个些一](?=[更最比])|^其中|^(?:那么|还有|以及|而且|另外|可是|但是?|或者)|呢\W*$|也(?!许)"
    r"|(?:[它她]|(?<!其)他)们?的?|其(?![他它实中次])"
    r"|[这那](?:个|些)?(?=[是要会能可有怎多什吗呢样里边儿为也就算对行不还么贵]|\W*$)"
    r"|^那(?!个|些|[天周月年日次份台条张本件批篇种位名家座首部期届段款项套封时])(?=.{1,6}\W*$)"
    # what a noun is left out of, or what is done or when: the topic is what was said
    r"|^(?:只|仅).+的\W*$|^(?:不要|除了|不含|去掉)|^有.{1,6}的吗\W*$|^在哪.{1,4}$|^.{1,3}怎么样\W*$"
    r"|^(?:已经|还没)|^.{1,2}了(?=多久|多少|几)|(?<=[上里中下边])有(?:吗|没有)\W*$|^.{2,4}怎么办\W*$"
    r"|^第?[一二三四五六七八九十几\d]+[个条张本]\W*$|[另哪几]一?[个把张本条件家]\W*$|一[把张本条件家]\W*$"
    r"|^有?多(?!少).{1,2}\W*$|^(?:能|会|要|得|该|可以|需要|应该)(?!.?[雨雪])(?=.{1,7}$)"
    r"|^(?:周|星期|礼拜)[一二三四五六日天末](?=.{1,3}吗\W*$)|(?:可以|能)[吃喝用看买带退改换]吗?\W*$"
)
_SPACELESS_EMPTY = (
    r"为什么|什么时候|什么|怎么|怎样|如何|多少|多久|多大|多长|多远|几点|哪里|哪儿|哪个|一共|总共|可以"
    r"|需要|然后|开始|继续|意思|详细|具体|一点|更多|别的|在场|[不行够再从到]|下一|上一|[谁哪几钱有是在的了吗呢会要能办次个只条人又再还都也就一样\W]"
)
"""What a question may consist of that says nothing of its own."""

_FUNCTION_WORDS = frozenset(
    # Beside the English stop words, which are no terms.
    """
    aber als am an auch auf aus bei das dass dem den der des die doch du ein eine einem einen einer
    er es für hat ich ihr im in ist kann man mit nach noch nun oder sie sind so über um und uns vom
    von vor wann war warum was welche welchem welchen welcher welches wenn wer werden wie wieso wir
    wird wo zu zum zur else many much anything often long exactly again more instead oft lange seit
    since one ones next wem wen
    sein seine seinem seinen seiner ihre ihrem ihren ihrer
    sonst genau eigentlich denn mal bitte mehr viel viele
    nicht kein keine keinen haben habe hast hatte hatten waren wurde wurden können muss müssen soll
    sollen darf dürfen will wollen gibt schon jetzt dort dabei davor danach ihm ihn ihnen andere
    davon dazu dafür damit darin daran danach darauf darüber daneben dagegen dorthin
    anderen anderes erzähl sag weiter mir nur ohne dasselbe wieder würde würden da drin immer selbst
    please tell details other others left enough come there with without only just even
    """.split()  # noqa: SIM905  # words read best as text
)
_LETTERS = r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?"
_DECISIVE = (
    r"\d+(?:[.,:/-]\d+)*"
    r"|\b(?:no|not|nor|none|never|neither|nothing|nobody|without|except|cannot|\w+n['\u2019]?t"
    r"|nicht|nie|niemals|kein\w{0,2}|ohne|au\u00dfer|weder|nichts|niemand)\b"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e\u672a\u522b\u5225\u5426\u83ab\u52ff\u9664]"
)
_EMPTY_WORDS = frozenset(["a", "an", "the", "is", "are", "am", "do", "does", "of", "there"])
_SILENT = r"[\s.,;:!?()\"\u3001\u3002]+"


def numbers_and_negations(text: str) -> tuple[str, ...]:
    """The numbers and negations of a text, in its order: who differs in them says another thing."""
    return tuple(re.findall(_DECISIVE, unicodedata.normalize("NFKC", text).casefold()))


def wording(query: str) -> Hashable:
    """What has to be the same in two wordings of one question.

    That is everything but case, spaces, punctuation and words that say nothing, in its order.
    """
    text = unicodedata.normalize("NFKC", query).casefold()
    words = (word for word in re.split(_SILENT, text) if word and word not in _EMPTY_WORDS)
    return tuple(words), numbers_and_negations(query)


def rewrite(query: str, earlier: Sequence[str]) -> str:
    """The query as it is to be asked.

    Args:
        query: What was asked.
        earlier: What was asked before it in the same conversation, the latest last.

    Returns:
        The query itself where it stands alone, or nothing before it does; else the latest earlier
        query that stands alone, and the query. Where the query speaks of a person, only the names
        are taken, also of the follow-ups since: what else was asked was measured to lead away.
    """
    if not is_follow_up(query):
        return query
    first = next((at for at in reversed(range(len(earlier))) if _stands(earlier[at])), None)
    if first is None:
        return query
    subject = earlier[first]
    if re.search(_PERSON, query):
        named = (name for before in earlier[first:] for name in re.findall(_NAME, before))
        subject = " ".join(dict.fromkeys(named)) or subject
    return f"{_shortened(subject)} {query.strip()}"


def is_follow_up(query: str) -> bool:
    """Whether a query cannot stand alone: it hardly says anything, and points to what was said."""
    if is_spaceless(query):
        return _leans_spaceless(query)
    words = re.findall(_LETTERS, query)
    terms = tokenize(" ".join(word for word in words if word.casefold() not in _FUNCTION_WORDS))
    plain = query if query.isupper() else re.sub(_ACRONYM, "", query)  # "IT" is no "it"
    if re.match(_TURN, query) or re.match(_PART, query):
        return len(terms) < FEW_TERMS
    if re.match(_OPENING, query) or _points(plain):
        return len(terms) <= (FEW_OF_SOMEBODY if re.search(_SOMEBODY, plain) else FEW_TERMS)
    says = terms or plain != query or re.search(_NAME, query) or re.search(_SAYING, query)
    return bool(words) and not says


def _points(query: str) -> bool:
    """Whether a query has a pronoun, and no name that this may stand for."""
    if _is_german(query):  # its nouns look like names
        plain = re.sub(_EXPLETIVE, "", query)
        ways = (_PRONOUN, _POLITE, _GERMAN_POINTING, _GERMAN_ELLIPSIS)
        return any(re.search(each, plain) for each in ways)
    query = re.sub(_EXPLETIVE, "", query)
    named = re.search(_NAME, query)
    return not named and any(re.search(each, query) for each in (_PRONOUN, _POINTING, _ELLIPSIS))


def _is_german(query: str) -> bool:
    words = [word.casefold() for word in re.findall(_LETTERS, query)]
    german = sum(word in _GERMAN_WORDS for word in words)
    return german > sum(word in STOP_WORDS and word not in _GERMAN_WORDS for word in words)


def _leans_spaceless(query: str) -> bool:
    if re.search(_SPACELESS_LEANING, query):
        rest = re.sub(rf"\W|{_SPACELESS_LEANING}", "", query)
        return len(rest) <= FEW_CHARACTERS or len(re.sub(_SPACELESS_EMPTY, "", rest)) <= FEW_SAID
    return bool(re.search(r"\w", query)) and not re.sub(_SPACELESS_EMPTY, "", query)


def _stands(query: str) -> bool:
    """Whether another query can lean on this one: it says something, and leans on none."""
    return bool(tokenize(query)) and not is_follow_up(query)


def _shortened(text: str) -> str:
    text = " ".join(text.split()).rstrip("?.! \uff1f\u3002\uff01")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0]
