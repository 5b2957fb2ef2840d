"""The titles that files give themselves, without what the program that made them put there."""

from __future__ import annotations

import re

_PRODUCERS = re.compile(
    r"(?:microsoft (?:office )?(?:word|powerpoint|excel)|powerpoint presentation|openoffice|"
    r"libreoffice(?: writer)?|pages|google docs)\s*[-\u2013\u2014:]\s*",
    re.IGNORECASE,
)

_DEFAULT = re.compile(
    r"""[(\[<"']*(?:
    untitled|unnamed|anonymous|unknown|none|null|no\ title|title|your\ title(?:\ here)?|
    insert\ title\ here|page\ title|(?:article|paper|document|report)\ title|
    title\ of\ (?:the\ )?(?:paper|article|document)|(?:la)?tex\ (?:document|output)|template|
    (?:untitled|new|word|blank|html|my|microsoft\ word|google)?[ _-]*document|
    (?:new|untitled|blank|web)\ page|index|main|default|
    (?:powerpoint|untitled)?[ _-]*presentation|slide|(?:vite|react|webpack)[ +a-z]*\ app|
    unbenannt|ohne\ titel|titel|dokument|neues\ dokument|unbenanntes\ dokument|präsentation|
    sans\ titre|sans\ nom|document\ sans\ (?:titre|nom)|nouveau\ document|titre|
    sin\ título|documento(?:\ sin\ título)?|sem\ título|senza\ (?:titolo|nome)|naamloos|
    без\ (?:названия|имени)|документ|無題(?:ドキュメント|の文書)?|名称未設定|文書|
    无标题(?:文档)?|未命名|未命名文档|文档|新建文档|新建\ ?microsoft\ word\ 文档|제목\ ?없음
    )[)\]>"']*[\s_.-]*(?:\(?\d{1,3}\)?)?[)\]>"']*""",
    re.IGNORECASE | re.VERBOSE,
)
"""What programs and templates call a document that nobody has named, also with a number."""

_FILE = re.compile(
    r"(?:file:/|[a-z]:\\|\\\\|~?/).*|\S.{0,200}\.(?:docx?|dotx?|docm|odt|ott|rtf|wpd|wps|pdf|e?ps|dvi|"
    r"tex|ltx|typ|indd|qxd|qxp|pmd|p65|fm|pptx?|odp|key|xlsx?|ods|numbers|pages|cdr|ai|svg|html?|"
    r"xhtml|php|aspx?|txt|md|rst|tmp)",
    re.IGNORECASE,
)
"""A file's name or path, which says less than the name that the file has now."""


def own_title(text: str) -> str:
    """Returns a title, or nothing where a program put it there by itself.

    Args:
        text: What the file's metadata give as its title.
    """
    title = _PRODUCERS.sub("", " ".join(text.split()), count=1) if text else ""
    is_said = any(map(str.isalnum, title))
    if not is_said or _DEFAULT.fullmatch(title) or _FILE.fullmatch(title):
        return ""
    return title
