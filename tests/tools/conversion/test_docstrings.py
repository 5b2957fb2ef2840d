"""What is read out of docstrings of each style."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.conversion.callables.docstrings import Documentation, read_docstring

EPYTEXT = """Finds.

@param x: How many.
@param y: Why: because.
@return: The thing.
@rtype: int
@raise ValueError: Never.
"""


def test_fields_of_epytext_are_read() -> None:
    assert read_docstring(EPYTEXT) == Documentation(
        "Finds.", {"x": "How many.", "y": "Why: because."}, "The thing.", {"ValueError": "Never."}
    )


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_says_nothing(text: str | None) -> None:
    assert read_docstring(text) == Documentation()


def test_a_malformed_section_costs_nothing_but_its_texts() -> None:
    found = read_docstring("Finds.\n\nArgs:\n    no colon here\n")
    assert found.parameters == {}
    assert found.description.startswith("Finds.")


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("F.\n\nArgs:\nx: Not indented.\ny: Nor this.\n\nMore.", ["x", "y"]),
        ("F.\n\nArgs:\n    x: One\n\n    y: After a gap.\n", ["x", "y"]),
        (
            "F.\n\nArgs:\n  *args: Those.\n  **kwargs (dict[str, int], optional): These.\n",
            ["args", "kwargs"],
        ),
        ("F.\n\nArgs:\n    x - One.\n    y -- Two.\n", ["x", "y"]),
        ("F.\n\nKeyword Args:\n    x: One.\n", ["x"]),
        (
            "F.\n\nParameters\n----------\nx, y : int\n    Both.\n*args\n    Those.\n",
            ["x", "y", "args"],
        ),
        ("F.\n\nParameters\n==========\nx : int, default: 3\n    One.\n", ["x"]),
        ("F.\n\nOther Parameters\n----------------\nx\n    One.\n", ["x"]),
        ("F.\n\n:param x: One\n    on two lines.\n:type x: int\n:param int y: Two.\n", ["x", "y"]),
        ("F.\n\n:param \\\\*args: Those.\n:keyword z: Three.\n", ["args", "z"]),
        ("F.\n\n@param x: One.\n@type x: int\n@ivar y: Two.\n", ["x", "y"]),
        ("F.\n\nArgs:\n    x: One.\n\n:param y: Two, in another style.\n", ["x", "y"]),
    ],
)
def test_parameters_are_found_however_they_are_written(text: str, parameters: list[str]) -> None:
    found = read_docstring(text)
    assert list(found.parameters) == parameters
    assert found.description.removesuffix("More.").strip() == "F."


@pytest.mark.parametrize(
    "text",
    [
        *("Reads: a file.\nNothing more.", "Steps:\n    1. Read.\n    2. Write.\nDone."),
        *("Uses the form:\n\n    key: value\n\nDone.", "F.\n\n:note: It is slow."),
        *("See http://example.org: it is there.", "A table\n-----\nof things"),
    ],
)
def test_other_sections_stay_in_the_description(text: str) -> None:
    assert read_docstring(text) == Documentation(text)


def test_sections_of_numpys_keep_their_titles_without_the_line_below() -> None:
    text = "F.\n\nSee Also\n--------\ng : More.\n\nNotes\n-----\nSlow.\n\n    a\n    -\n    1"
    said = "F.\n\nSee Also:\ng : More.\n\nNotes:\nSlow.\n\n    a\n    -\n    1"
    assert read_docstring(text) == Documentation(said)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (
            "F.\n\nArgs:\n    x: One.\n    *args, **kwargs: Handed on.\n    a, b and c: Sides.",
            {
                "x": "One.",
                "args": "Handed on.",
                "kwargs": "Handed on.",
                "a": "Sides.",
                "b": "Sides.",
                "c": "Sides.",
            },
        ),
        (
            "F.\n\nParameters\n----------\nx : int\n    One.\nkwargs:\n    Handed on.",
            {"x": "One.", "kwargs": "Handed on."},
        ),
    ],
)
def test_texts_that_look_like_something_else_stay_with_their_parameters(
    text: str, parameters: dict[str, str]
) -> None:
    assert read_docstring(text) == Documentation("F.", parameters)


def test_a_result_loses_its_type_and_keeps_its_lines() -> None:
    text = "F.\n\nReturns:\n    dict[str, int]: How many\n    of each.\n"
    assert read_docstring(text).returns == "How many of each."


@given(
    st.text(st.sampled_from("aA :@-=*()\n\t.`\\")),
    st.sampled_from(["", "Args:", ":param x:", "x\n---"]),
)
def test_any_text_is_read(text: str, mark: str) -> None:
    assert isinstance(read_docstring(f"F.\n{mark}\n{text}"), Documentation)


@pytest.mark.parametrize(
    "text",
    [
        *("Returns:\n    " + "xor" * 10_000, "Returns:\n    " + "x[y]," * 6_000),
        *("Returns:\n    " + "x," * 10_000, "Args:\n    x" + " " * 20_000 + "y"),
        *(":a" + " " * 30_000 + "b", "Parameters\n----------\nx" + " " * 40_000 + "y\n    text"),
    ],
)
def test_a_docstring_is_read_in_a_time_that_grows_with_its_length(text: str) -> None:
    began = time.process_time()
    read_docstring(text)
    assert time.process_time() - began < 1


def test_words_of_a_result_are_no_type_of_it() -> None:
    said = read_docstring("Does it.\n\nReturns:\n    A dictionary with the keys: a and b.")
    assert said.returns == "A dictionary with the keys: a and b."
