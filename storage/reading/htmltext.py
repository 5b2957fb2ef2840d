"""Converts HTML to Markdown: the article if one stands out, otherwise all text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from storage.errors import UnreadableDocumentError
from storage.reading.content import DISPUTED, Content
from storage.reading.decode import Decoded, decode

_DECLARED_ENCODING = re.compile(
    rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?([\w-]{1,40})", re.IGNORECASE
)
_HEAD_BYTES = 4096  # a declaration must be within these
_ARTICLE_SHARE = 0.8  # with fewer of the words, more than menus are missing
_MAX_ARTICLE_CHARS = 2_000_000  # longer ones take trafilatura minutes
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SKIPPED = {"script", "style", "template", "svg"}
_BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog div dl dt fieldset figcaption
    figure footer form header hr html legend main nav ol p section summary table tbody tfoot thead
    ul
    """.split()  # noqa: SIM905  # a list of names reads best as text
)
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


def read_html(data: bytes) -> Content:
    """Reads a page as Markdown, without its menus if an article stands out."""
    decoded = _decode(data)
    html = decoded.text
    page = _Page()
    page.feed(html)
    page.close()
    whole = page.text()
    article = _article(html) if len(html) <= _MAX_ARTICLE_CHARS else ""
    is_whole = all(
        len(pattern.findall(article)) >= _ARTICLE_SHARE * len(pattern.findall(whole))
        for pattern in (_WORD, _HEADING)
    )
    notes = (DISPUTED,) if decoded.disputed else ()
    text = article if is_whole else whole
    return Content(text, page.title(), notes=notes)


def page_text(data: bytes) -> str:
    """Returns all text of a page as Markdown."""
    page = _Page()
    page.feed(_decode(data).text)
    page.close()
    return page.text()


def _decode(data: bytes) -> Decoded:
    declared = _DECLARED_ENCODING.search(data[:_HEAD_BYTES])
    try:
        decoded = decode(data, western=not declared)
        if decoded.certain or not declared:
            return decoded
    except UnreadableDocumentError:
        if not declared or b"\0" in data:
            raise
    try:
        return decode(data, declared[1].decode("ascii"))
    except LookupError:
        return decode(data, western=True)


def _article(html: str) -> str:
    """Extracts the page without menus and footers with trafilatura; empty if that fails."""
    from trafilatura import extract

    try:
        return extract(html, output_format="markdown", favor_recall=True) or ""
    except Exception:  # noqa: BLE001  # any failure: the whole text is used instead
        return ""


class _Page(HTMLParser):
    """Converts all text of a page to Markdown, without a tree that could become too deep."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._title: list[str] = []
        self._in_title = False
        self._skipped = ""  # the open tag whose content is skipped
        self._skipped_depth = 0
        self._lines: list[str] = []
        self._line: list[str] = []
        self._prefix = ""
        self._in_row = False
        self._cells = 0
        self._in_pre = False

    def title(self) -> str:
        return " ".join("".join(self._title).split())

    def text(self) -> str:
        self._end_line()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if self._skipped or tag in _SKIPPED:
            self._skipped = self._skipped or tag
            self._skipped_depth += tag == self._skipped
        elif tag == "title":
            self._in_title = not self._title
        elif tag in _HEADINGS:
            self._end_paragraph()
            self._prefix = _HEADINGS[tag]
        elif tag == "li":
            self._end_line()
            self._prefix = "- "
        elif tag in {"tr", "td", "th"}:
            self._start_in_table(tag)
        elif tag == "pre":
            self._end_paragraph()
            self._in_pre = True
        elif tag == "br" or tag in _BLOCKS:
            self._break(paragraph=tag != "br")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._skipped_depth -= tag == self._skipped
            self._skipped = self._skipped if self._skipped_depth else ""
        elif tag == "title":
            self._in_title = False
        elif tag in _HEADINGS or tag in {"pre", "table"}:
            self._end_paragraph()
        elif tag in {"li", "tr"}:
            self._end_line()
            self._prefix = ""
        elif tag in _BLOCKS:
            self._break(paragraph=True)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._skipped:
            self._line.append(data)

    def _start_in_table(self, tag: str) -> None:
        if tag == "tr":
            self._end_line()
            self._in_row = True
        elif self._in_row:
            self._line.append(" | " if self._cells else "")
            self._cells += 1

    def _break(self, *, paragraph: bool) -> None:
        if self._in_pre:
            self._line.append("\n")
        elif self._in_row or self._prefix.startswith("#"):
            self._line.append(" ")
        elif paragraph:
            self._end_paragraph()
        else:
            self._end_line()

    def _end_paragraph(self) -> None:
        self._end_line()
        self._lines.append("")

    def _end_line(self) -> None:
        text = "".join(self._line)
        self._line.clear()
        if self._in_pre:
            self._lines += ["```", text.strip("\n"), "```"] if text.strip() else []
        elif text := " ".join(text.split()):
            self._lines.append(f"| {text} |" if self._cells > 1 else self._prefix + text)
            self._prefix = ""
        self._in_row = self._in_pre = False
        self._cells = 0
