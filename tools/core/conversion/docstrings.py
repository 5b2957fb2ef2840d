"""Docstrings: what they say of a function, and what of its parameters."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

import docstring_parser
from docstring_parser.common import DocstringMeta, DocstringParam, DocstringReturns

__all__ = ["Documentation", "read_docstring"]

GOOGLE_SECTION = re.compile(
    r"^(?:Args|Arguments|Parameters|Params|Attributes|Raises|Exceptions|Except|Returns|Yields):"
    r"[ \t]*\n(?:(?:[ \t]+.*)?(?:\n|\Z))*?(?=\S|\Z)",
    re.MULTILINE,
)
"""A section that says something of the signature, down to the next line that is not indented."""


@dataclass(frozen=True, slots=True)
class Documentation:
    """What a docstring says.

    Attributes:
        description: The docstring without what it says of parameters, results and exceptions.
        parameters: Text of each parameter or attribute that has one.
        returns: Text of the result, or empty.
    """

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str | None) -> Documentation:
    """Reads a docstring of Google, NumPy, reST or Epytext style, whichever fits best.

    Args:
        text: The docstring; None and empty say nothing.

    Returns:
        What it says. A docstring that no style can read is all description.
    """
    if not text:
        return Documentation()
    text = inspect.cleandoc(text)
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Documentation(text)
    if parsed.style is docstring_parser.DocstringStyle.GOOGLE:
        description = GOOGLE_SECTION.sub("", text)
    else:
        description = parsed.description or ""
    return Documentation(
        description=description.strip(),
        parameters=_parameter_texts(parsed.meta),
        returns=_returns_text(parsed.meta),
    )


def _parameter_texts(sections: list[DocstringMeta]) -> dict[str, str]:
    return {
        # NumPy writes `**options`, and reST escapes the stars.
        section.arg_name.lstrip("\\*"): _one_line(section.description)
        for section in sections
        if isinstance(section, DocstringParam) and section.description
    }


def _returns_text(sections: list[DocstringMeta]) -> str:
    return next(
        (
            _one_line(section.description)
            for section in sections
            if isinstance(section, DocstringReturns) and section.description
        ),
        "",
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
