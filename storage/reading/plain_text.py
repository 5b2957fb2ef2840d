"""Converts a stored text to readable pieces: sentences, list items, table rows, lines of code.

Markdown syntax is removed, but its meaning is kept: pieces have their heading, and a row has the
names of its columns. Other texts keep every character, because what looks like a link may be a
shell test or a list of lists.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from storage.reading.formats import FORMATS, MARKDOWN
from storage.tokenize import is_spaceless

WRAPPED = 50  # from this length on, a line without a sentence end continues on the next line
_NOTES = frozenset(MARKDOWN.suffixes)
_MARKDOWN = frozenset(suffix for each in FORMATS if each.markdown for suffix in each.suffixes)

_PROSE = _MARKDOWN | {"", ".txt", ".text", ".pdf", ".rst", ".eml", ".log", ".org"}

_WIDE = (
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff\uff01-\uff9f]"
)

_FENCE = r"[ \t]*(`{3,}(?!.*`)|~{3,})"
_HEADING = r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$"
_UNDERLINE = r" {0,3}(?:=+|-{2,})[ \t]*$"
_RULE = r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$"
_ITEM = r"[ \t]*(?:[-*+•]|(\d{1,9}[.)]))[ \t]+(?=\S)"
_ROW = r"[ \t]*\|.*\|[ \t]*$"
_SEPARATOR = r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$"
_CELL = r"(?<!\\)\|"
_QUOTE = r"(?: {0,3}> ?)+"
_CODE_SPAN = r"(`+)(?!`).+?(?<!`)\1(?!`)"

# Matches `[[Plan]]`, but not `[[ -f x ]]`, `[[:alpha:]]` or a list of lists.
_WIKI_LINK = (
    r"(?<![A-Za-z0-9_)\]])!?\[\[(?![\s\"'])(?=[^\[\]]*[^\W\d_]|\d{4}-\d)"
    r"(?:[^\[\]|:=<>\\]*\|)?([^\[\]|:=<>\\]*[^\[\]|:=<>\\\s])\]\]"
)

# Markup around words outside code, with its replacement, in order of removal.
_INLINE = (
    (r"<!--.*?-->", ""),
    (r"<br[ \t]*/?>", " "),
    (
        (
            r"</?(?:a|b|i|u|p|em|strong|div|span|sub|sup|kbd|code|details|summary|img|small|center"
            r"|font|h[1-6]|table|t[rdh]|[uo]l|li)(?:\s[^<>]*)?/?>"
        ),
        "",
    ),
    (r"!\[([^\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^\"']*[\"'])?\)", r"\1"),
    (r"\[([^\[\]]+)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^\"']*[\"'])?\)", r"\1"),
    (_WIKI_LINK, r"\1"),
    (r"\[\^[^\]]+\]", ""),
    (r"(?<![\w\[\])])\[([^\[\]]+)\]\[[^\[\]]*\]", r"\1"),
    (r"(?<![\d*\\])(\*{2,3})(?=\S)([^*]*?\S)\1(?![\d*])", r"\2"),
    (r"(?<![\w*\\])\*(?=[^\s*])([^*]*?[^\s*])\*(?![\w*])", r"\1"),
    (r"(?<!\w)__(?=[^\s_])([^_]*[^\w][^_]*)__(?!\w)", r"\1"),  # __init__ is a name
    (r"(?<!\w)_(?=[^\s_])([^_]*?[^\s_])_(?!\w)", r"\1"),
    (r"~~(?=\S)(.+?)~~", r"\1"),
    (r"\\([!-/:-@\[-`{-~])", r"\1"),
)

_LINK = r"<((?:https?|mailto):[^<>\s]+)>"

_ENDS = (
    r"(?<![.!?…])[.!?…]++[\"')\]”\u2019»*_]*+(?=\s)"
    r"|[。\uff01\uff1f｡]++[」』”\u2019\uff09]*+"
)
_OPEN = frozenset(
    # German and English; without those that often end a sentence ("etc.").
    """
    adj al approx art aug bd bzw ca cf co col corp dec dept dr ed eds eg est evtl feb fig figs gen
    ggf hr hrsg inc inkl jan jr jul jun lt ltd max mio mr mrd mrs ms mt nov nr oct op pp prof rev
    sep sept sog sr st str tel usf vgl viz vol vs
    """.split()  # noqa: SIM905  # abbreviations read best as text
)
_MONTH = (
    r"\s+(?:jan|feb|mär|maer|apr|mai|jun|jul|aug|sep|okt|nov|dez|jahrhundert|jh|klasse|stock|etage"
    r"|platz|mal\b|tag\b)"
)
_CLOSING = "\"')]”\u2019»*_"


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, a list item, a table row or a line of code, as plain text."""

    text: str
    heading: str = ""  # the heading above it within its text; empty if there is none
    lead: str = ""  # the sentence with a colon that introduces its list
    block: int = 0  # the number of its paragraph or list
    is_line: bool = False  # whether it has its own line


def is_prose(file: str) -> bool:
    """Returns whether a text is prose, not code or data, by its file name; without one it is."""
    return PurePath(file).suffix.lower() in _PROSE


def is_markdown(file: str) -> bool:
    """Returns whether a text is Markdown, by its file name; without one it is not."""
    return PurePath(file).suffix.lower() in _MARKDOWN


def is_note(file: str) -> bool:
    """Returns whether a file may be a note, in which `[[Plan]]` is a link."""
    return PurePath(file).suffix.lower() in _NOTES


def is_unspaced(before: str, after: str) -> bool:
    """Returns whether two texts are joined without a space, as in Chinese, Japanese or Thai."""
    return re.match(_WIDE, before[-1:]) is not None and re.match(_WIDE, after) is not None


def pieces_of(
    text: str, *, prose: bool = True, markdown: bool = True, note: bool = True
) -> list[Piece]:
    """Splits a text into pieces, in order.

    Of code and data, every line is an unchanged piece. Prose other than Markdown is not changed; in
    a note, wiki links are replaced by their names.
    """
    if not prose:
        lines = (line.rstrip() for line in text.splitlines())
        return [Piece(line, is_line=True) for line in lines if line]
    reader = _Reader(note=note) if markdown else _PlainReader()
    for line in text.splitlines():
        reader.read(line.rstrip(" \t\r"), is_hard=line.endswith("  "))
    return reader.close()


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Returns the span of each sentence of a paragraph, without the blanks between them."""
    cuts = [0, *(end for end in _sentence_ends(text) if end < len(text)), len(text)]
    spans = []
    for start, end in pairwise(cuts):
        sentence = text[start:end]
        blanks = len(sentence) - len(sentence.lstrip())
        if sentence.strip():
            spans.append((start + blanks, start + len(sentence.rstrip())))
    return spans


def _sentence_ends(text: str) -> Iterator[int]:
    for match in re.finditer(_ENDS, text):
        following = text[match.end() : match.end() + 12]
        if match[0].rstrip(_CLOSING) == "." and _is_abbreviation(text[: match.start()], following):
            continue
        if match[0][0] in ".…" and following.lstrip()[:1].islower():
            continue
        yield match.end()


def _is_abbreviation(before: str, following: str) -> bool:
    """Returns whether a full stop ends an abbreviation, an initial or a German ordinal."""
    word = re.search(r"[^\s(\[\"'“„]*$", before[-24:])
    last = word[0] if word else ""
    if last.isdigit():
        is_number = last == before.strip()  # "1. Open the lid"
        return is_number or re.match(_MONTH, following, re.IGNORECASE) is not None
    inner = last.rpartition(".")[2]
    if len(inner) == 1 and inner.isalpha() and (inner.isupper() or "." in last):
        is_pronoun = before[:-1].rstrip().endswith(("and", "or", "than", "as"))
        return inner != "I" or not is_pronoun
    if len(inner) == 1 and inner.isalpha():
        return inner in "zduosi" and re.match(r"\s+[A-Za-zÄÖÜ]\.", following) is not None
    return inner.casefold() in _OPEN


class _Reader:
    def _line(self, text: str) -> str:
        return plain_line(text, note=self._note)

    def __init__(self, *, note: bool = True) -> None:
        self._note = note
        self._pieces: list[Piece] = []
        self._heading = ""
        self._lead = ""
        self._block = 0
        self._paragraph: list[str] = []
        self._item: str | None = None  # the marker of the current list item
        self._rows: list[str] = []
        self._fence = ""

    def read(self, line: str, *, is_hard: bool) -> None:
        """Reads the next line."""
        if self._fence:
            self._read_code(line)
        elif opening := re.match(_FENCE, line):
            self._end_block()
            self._fence = opening[1]
        elif re.match(_ROW, line) or (self._rows and "|" in line):
            self._end_paragraph()
            self._rows.append(line)
        elif not self._read_structure(line):
            self._read_words(line, is_hard=is_hard)

    def close(self) -> list[Piece]:
        """Returns the pieces."""
        self._end_block()
        return self._pieces

    def _read_code(self, line: str) -> None:
        closing = line.strip()
        if closing.startswith(self._fence) and not closing.strip(self._fence[0]):
            self._fence = ""
            self._end_block()
        elif closing:
            self._add(line, is_line=True)

    def _read_structure(self, line: str) -> bool:
        """Reads a blank line, a heading, a rule, or the separator of a table without edges."""
        if not line.strip():
            self._end_block()
        elif heading := re.match(_HEADING, line):
            self._end_block()
            self._heading, self._lead = self._line(heading[1]), ""
        elif len(self._paragraph) == 1 and "|" in self._paragraph[0] and _is_separator(line):
            self._rows = [self._paragraph.pop(), line]
        elif len(self._paragraph) == 1 and self._item is None and re.match(_UNDERLINE, line):
            self._heading, self._lead = self._line(self._paragraph.pop()), ""
        elif re.match(_RULE, line) or re.match(_UNDERLINE, line):
            self._end_block()
        else:
            return False
        return True

    def _read_words(self, line: str, *, is_hard: bool) -> None:
        if self._rows:
            self._end_block()
        line = re.sub(_QUOTE, "", line, count=1) if line.lstrip().startswith(">") else line
        if item := re.match(_ITEM, line):
            self._end_paragraph()
            self._item = f"{item[1]} " if item[1] else "• "
            line = line[item.end() :]
        elif self._item is None and self._paragraph and _is_whole(self._paragraph[-1]):
            self._end_paragraph()
        self._paragraph.append(line.strip().removesuffix("\\"))
        if is_hard and self._item is None:
            self._end_paragraph()

    def _end_block(self) -> None:
        self._end_paragraph()
        self._end_table()
        self._block += 1

    def _end_paragraph(self) -> None:
        text = self._line(_join_lines(self._paragraph))
        item, self._item = self._item, None
        self._paragraph = []
        if not text:
            return
        if item is not None:
            self._add(item + text, lead=self._lead, is_line=True)
            return
        spans = sentence_spans(text)
        for start, end in spans:
            is_within_block = bool(self._pieces) and self._pieces[-1].block == self._block
            self._add(text[start:end], is_line=start == 0 and is_within_block)
        self._lead = text[slice(*spans[-1])] if text.endswith((":", "\uff1a")) else ""

    def _end_table(self) -> None:
        rows, self._rows = self._rows, []
        names: list[str] = []
        if len(rows) > 1 and _is_separator(rows[1]):
            names = self._cells(rows[0])
        for row in rows[2 if names else 0 :]:
            if _is_separator(row):
                continue
            cells = self._cells(row)
            named = [*names, *[""] * (len(cells) - len(names))]
            labelled = [
                f"{name}: {cell}" if name else cell
                for name, cell in zip(named, cells, strict=False)
                if cell
            ]
            if labelled:
                self._add("; ".join(labelled), lead=self._lead, is_line=True)

    def _cells(self, row: str) -> list[str]:
        bare = row.strip().removeprefix("|")
        if bare.endswith("|") and not bare.endswith("\\|"):
            bare = bare[:-1]
        return [self._line(cell.replace("\\|", "|")) for cell in re.split(_CELL, bare)]

    def _add(self, text: str, *, lead: str = "", is_line: bool = False) -> None:
        self._pieces.append(Piece(text, self._heading, lead, self._block, is_line))


class _PlainReader(_Reader):
    """Reads text that is not Markdown: its lines and sentences, unchanged."""

    def _line(self, text: str) -> str:
        return text

    def read(self, line: str, *, is_hard: bool) -> None:  # noqa: ARG002  # used for Markdown only
        if not line:
            self._end_block()
        elif line[0].isspace() or re.match(_ROW, line):  # code, or manual layout
            self._end_paragraph()
            self._add(line, is_line=True)
        else:
            if re.match(_ITEM, line) or (self._paragraph and _is_whole(self._paragraph[-1])):
                self._end_paragraph()
            self._paragraph.append(line)


def _is_separator(line: str) -> bool:
    return "|" in line and re.match(_SEPARATOR, line) is not None


def _is_whole(line: str) -> bool:
    """Returns whether a line is complete, as in a plain list, a letter's head or a log."""
    return len(line) < WRAPPED and not is_spaceless(line)


def _join_lines(lines: list[str]) -> str:
    """Joins lines; without spaces for scripts that have none."""
    text = ""
    for line in lines:
        between = "" if not text or is_unspaced(text, line) else " "
        text += between + line
    return text


def plain_line(text: str, *, note: bool = True) -> str:
    """Removes the Markdown syntax from a line; code keeps its backticks."""
    parts, at = [], 0
    if "`" in text:
        for match in re.finditer(_CODE_SPAN, text):
            parts += [_strip_markup(text[at : match.start()], note=note), match[0]]
            at = match.end()
    parts.append(_strip_markup(text[at:], note=note))
    return " ".join("".join(parts).split())


def _strip_markup(text: str, *, note: bool) -> str:
    if not any(sign in text for sign in "*_[<~\\&"):
        return text
    text = re.sub(_LINK, r"\1", text)
    for sign, kept in _INLINE:
        if sign is _WIKI_LINK and not note:
            continue
        text = re.sub(sign, kept, text)
    return html.unescape(text) if "&" in text else text
