"""What is read out of docstrings of each style."""

from __future__ import annotations

import pytest

from tools.core.conversion.docstrings import Documentation, read_docstring

GOOGLE = """Finds.

Args:
    x (int): How
        many.
    y: Why: because.

Returns:
    The thing.

Raises:
    ValueError: Never.
"""
NUMPY = """Finds.

Parameters
----------
x : int
    How many.
y : str
    Why: because.

Returns
-------
int
    The thing.
"""
REST = """Finds.

:param int x: How many.
:param y: Why: because.
:returns: The thing.
"""
EPYTEXT = """Finds.

@param x: How many.
@param y: Why: because.
@return: The thing.
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST, EPYTEXT], ids=lambda text: text[8:20])
def test_each_style_says_the_same(text: str) -> None:
    assert read_docstring(text) == Documentation(
        "Finds.", {"x": "How many.", "y": "Why: because."}, "The thing."
    )


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_says_nothing(text: str | None) -> None:
    assert read_docstring(text) == Documentation()


def test_what_is_not_about_the_signature_stays_in_the_description() -> None:
    text = """Finds.

    - one
    - two

    Args:
        x: How many.

    Example:
        find(1)

    Returns:
        The thing.

    Note:
        It is slow.
    """
    assert read_docstring(text).description == (
        "Finds.\n\n- one\n- two\n\nExample:\n    find(1)\n\nNote:\n    It is slow."
    )


def test_a_docstring_of_no_style_is_all_description() -> None:
    assert read_docstring("Reads: a file.\nNothing more.").description == (
        "Reads: a file.\nNothing more."
    )


def test_a_malformed_section_costs_nothing_but_its_texts() -> None:
    found = read_docstring("Finds.\n\nArgs:\n    no colon here\n")
    assert found.parameters == {}
    assert found.description.startswith("Finds.")
