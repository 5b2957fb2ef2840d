"""Recognizes text that programs wrote: logs, data, minified code."""

from __future__ import annotations

import re
from collections import Counter

LEAST_CHARS = 50_000  # a shorter text is embedded whatever it is
_SAMPLE_CHARS = 400_000
_PROSE_SHARE = 0.5  # of the characters, in runs of words; a text with more was written by people
_STAMPED_SHARE = 0.5  # of the lines that are not indented
_TALK_SHARE = 0.2  # as _PROSE_SHARE, for a chat or a journal, whose lines have times as well
_REPEATED_SHARE = 0.5  # of the characters, in lines whose shape is frequent
_OFTEN = 5
_LONG_LINE = 500  # characters of a line on average; people break lines, or write prose
# At least five words in a row, with little between them; or text in a script without spaces.
_PROSE = re.compile(
    r"(?<![^\W\d_])(?:[^\W\d_]+(?:['\u2019-][^\W\d_]+)?[,;:.!?]?[ \n]){4,}[^\W\d_]+"
    r"|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{5,}"
)
_STAMPED = re.compile(
    r"\W{0,2}(?:\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}|\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\d{9,}[.,:]"
    r"|\S{1,60} \S+ \S+ \[\d\d/|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE)\b)"
)
_VALUES = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+")


def is_machine_written(text: str, *, is_table: bool = False) -> bool:
    """Returns whether a long text is a log, data or minified code, by its beginning.

    A table is data unless most of it is prose.
    """
    if len(text) < LEAST_CHARS:
        return False
    sample = text[:_SAMPLE_CHARS]
    lines = [line for line in sample.split("\n") if line.strip()]
    flush = [line for line in lines if not line[0].isspace()]
    stamped = sum(_STAMPED.match(line) is not None for line in flush)
    is_stamped = stamped > 0 and stamped >= _STAMPED_SHARE * len(flush)
    prose = sum(len(match[0]) for match in _PROSE.finditer(sample))
    if prose >= _PROSE_SHARE * len(sample) and not is_stamped:
        return False
    if is_stamped and prose < _TALK_SHARE * len(sample):
        return True
    if not is_stamped and (is_table or len(sample) >= _LONG_LINE * len(lines)):
        return True
    shapes = [_VALUES.sub("0", line.strip()) for line in lines]
    counts = Counter(shapes)
    repeated = sum(
        len(line)
        for line, shape in zip(lines, shapes, strict=True)
        if counts[shape] >= _OFTEN and len(shape) > 1
    )
    return repeated >= _REPEATED_SHARE * len(sample)
