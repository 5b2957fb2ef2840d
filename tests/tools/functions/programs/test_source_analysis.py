from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.functions.programs.source_analysis import function_of, read_draft

GOOD = '''
import math
from collections.abc import Sequence

_FACTOR = 2


def _scaled(value: float) -> float:
    return value * _FACTOR


async def mean(values: Sequence[float], *, root: bool = False) -> float:
    """Takes the mean.

    Args:
        values: Of what.
    """
    found = _scaled(sum(values)) / len(values)
    return math.sqrt(found) if root else found
'''


def problem(source: str) -> str:
    with pytest.raises(InvalidArgumentsError) as raised:
        read_draft(source)
    assert raised.value.next_actions
    return raised.value.message


def test_a_source_is_read_without_being_run() -> None:
    draft = read_draft(GOOD.replace("_FACTOR = 2", "_FACTOR = 1 / 0"))
    assert (draft.function, draft.parameters) == ("mean", ("values", "root"))
    assert draft.said.description == "Takes the mean."
    assert draft.said.parameters == {"values": "Of what."}


def test_line_ends_of_windows_are_those_of_everywhere() -> None:
    assert read_draft(GOOD.replace("\n", "\r\n")) == read_draft(GOOD)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(:\n  pass", "line 1: SyntaxError"),
        ("x = 1", "exactly one public function, but has none"),
        ("def _f() -> int:\n    return 1", "but has none"),
        ("def f() -> int: ...\ndef g() -> int: ...", "but has f, g"),
        ("class A:\n    def f(self) -> int: ...", "but has none"),
        ("def f(x, y: int) -> int:\n    return y", "line 1: f has no types for x"),
        ("def f(*xs: int) -> int:\n    return 1", "f must name each of its parameters"),
        ("def f(**xs: int) -> int:\n    return 1", "f must name each of its parameters"),
        ("import numpy\ndef f() -> int: ...", "line 1: numpy is not in the standard library"),
        ("def f() -> int:\n    import mcp.client", "line 2: mcp.client is not in the standard"),
        ("from . import x\ndef f() -> int: ...", "line 1: . is not in the standard library"),
        ("from tools.core import spec\ndef f() -> int: ...", "tools needs no import"),
        ("import tools\ndef f() -> int: ...", "tools needs no import"),
        (
            "def f() -> int:\n    \u0430 = 1\n    return \u0430",
            "the name '\u0430' is not all ASCII",
        ),
        ("def f() -> int: ...\x00", "U+0000"),
        ("(" * 10_000, "implementation: "),
        ("-" * 40_000 + "1", "implementation: "),
        ("x = " + "[" * 3_000 + "]" * 3_000, "implementation: "),
        ("def f() -> int:\n" + " " * 4 + "x = 1\n\treturn x", "line 3"),
    ],
)
def test_what_no_tool_can_be_made_of_is_refused_with_the_place(source: str, said: str) -> None:
    assert said in problem(source)


@pytest.mark.parametrize(
    "hidden",
    [
        "\u202e",  # right to left, as in Trojan Source
        "\u2066",
        "\u200b",
        "\U000e0041",  # a tag
        "\x1b[2J",  # clears a terminal
        "\x08",
        "\u3164",  # a letter of no width
        "\ufeff",
        "\r",
    ],
)
@pytest.mark.parametrize("place", ["# {}", 'x = "{}"', '"""Says {}."""'])
def test_characters_that_nobody_sees_are_refused(hidden: str, place: str) -> None:
    source = f"{place.format(f'a{hidden}b')}\ndef f() -> int:\n    return 1"
    assert "line 1 has invisible characters" in problem(source)


def test_letters_of_other_alphabets_may_stand_in_texts() -> None:
    source = 'def f() -> str:\n    """Grüßt auf 中文, עברית und mit 👨‍👩‍👧."""\n    return "привет"'
    assert read_draft(source).said.description.startswith("Grüßt")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_draft(text)
    except InvalidArgumentsError as error:
        assert error.message  # noqa: PT017  # most are refused, and some are drafts


@given(st.text("()[]{}:=-+*,.\"'\\\n\t #defasyncwit lambdaxyz0123456789", max_size=300))
def test_whatever_looks_like_python_is_read_or_refused(text: str) -> None:
    try:
        read_draft(f"def f() -> int:\n    return 1\n{text}")
    except InvalidArgumentsError as error:
        assert error.message  # noqa: PT017  # the same


NUMBER = {"properties": {"n": {"type": "integer"}}}


class Tools:
    """A namespace in which every tool answers its name."""

    def __getattr__(self, name: str) -> Any:
        async def call(**given: Any) -> tuple[str, dict[str, Any]]:
            return name, given

        return call


def made(program: str, parameters: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """What the function returns that a program becomes."""
    scope: dict[str, Any] = {"tools": Tools(), "asyncio": asyncio}
    exec(function_of(program, "again", parameters), scope)  # noqa: S102  # the test's own source
    return asyncio.run(scope["again"](**arguments))


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("1 + 1", 2),
        ("x = 2\nx", 2),
        ("x = 2; x * 3", 6),
        ("for n in range(9):\n    if n == 4:\n        return n\nreturn 0", 4),
        ("print('one')", "one"),
        ("print(\n  [1,\n   2]\n)", [1, 2]),
        ("(1 +\n 2 +\n 3)", 6),
        ("text = '''a\n  b\n'''\ntext", "a\n  b\n"),
        ('n = 3\nf"""{n}\n {n}"""', "3\n 3"),
        ("await tools.query(query='x')", ("query", {"query": "x"})),
        ("from tools import query, grep as g\nawait g(a=1)", ("grep", {"a": 1})),
        ("import tools\nfrom tools import ToolError\nawait tools.x()", ("x", {})),
        ("async def main():\n    return 5\nasyncio.run(main())", 5),
        ("import math\ndef half(x):\n    return x / 2\nhalf(math.floor(4.5))", 2.0),
        ("s = 'Grüße'; s", "Grüße"),
        ("if True:\n\tx = 1\nx", 1),
    ],
)
def test_a_function_does_what_the_program_did(program: str, value: Any) -> None:
    assert made(program) == value


def test_a_variable_that_is_named_is_a_parameter_whose_default_is_its_value() -> None:
    assert made("n = 3\nn * 2", NUMBER) == 6
    assert made("n = 3\nn * 2", NUMBER, n=5) == 10
    lists = {"properties": {"n": {"type": "array"}}}
    assert made("n = [\n  1,\n  2,\n]\nlen(n)", lists) == 2


@pytest.mark.parametrize(
    ("program", "parameters"),
    [
        ("x = 1", None),
        ("", None),
        ("for n in range(3):\n    print(n)", None),
        ("1", NUMBER),
        ("n = int('3')\nn", NUMBER),
        ("n = 3; m = 4\nn", NUMBER),
        ("for n in [1]:\n    pass\nn", NUMBER),
        ("n = 1\nn", {"properties": {"n": {}}}),
        ("n = 1\nn", {"properties": {"n": "integer"}}),
        ("1" + "+1" * 40_000, None),
        ("-" * 9_000 + "1", None),
    ],
)
def test_what_is_no_function_is_refused_with_what_to_do(
    program: str, parameters: dict[str, Any] | None
) -> None:
    with pytest.raises(InvalidArgumentsError) as raised:
        function_of(program, "again", parameters)
    assert raised.value.next_actions
