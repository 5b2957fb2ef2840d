from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tools.core.errors import InvalidArgumentsError
from tools.functions.programs.from_runs import function_of

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
