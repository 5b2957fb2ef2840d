"""`toolcrib convert`, and function files in `tools` and `call`: the real command on real files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.conftest import Started

pytestmark = pytest.mark.slow


CRAFTS = '''
from typing import Literal

__tool_options__ = {"effects": ["read"]}

def saw(length: float, grain: Literal["along", "across"] = "across") -> float:
    """Saws a board.

    Args:
        length: In metres.
    """
    print("sawing")
    return length / 2

def plane(x: int) -> int:
    return x
'''


@pytest.fixture
def ran(toolcrib: Started, work: Path) -> Callable[..., tuple[int, str, str]]:
    (work / "crafts.py").write_text(CRAFTS)

    def run(*arguments: str) -> tuple[int, str, str]:
        with toolcrib(*arguments) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return run


Ran = Callable[..., tuple[int, str, str]]


def test_a_file_is_shown_as_the_definitions_that_clients_get(ran: Ran) -> None:
    code, out, err = ran("convert", "crafts.py")
    assert (code, err) == (0, "")
    plane, saw = json.loads(out)
    assert (plane["name"], saw["name"]) == ("plane", "saw")
    assert saw["description"] == "Saws a board."
    assert saw["inputSchema"]["properties"]["length"] == {
        "type": "number",
        "description": "In metres.",
    }
    assert saw["inputSchema"]["properties"]["grain"]["enum"] == ["along", "across"]
    assert saw["outputSchema"]["required"] == ["result"]
    assert saw["annotations"]["readOnlyHint"] is True


def test_resources_and_prompts_are_shown_as_clients_get_them(ran: Ran, work: Path) -> None:
    (work / "garden.py").write_text(
        "from tools.authoring import prompt, resource\n"
        "@resource('garden://{bed}')\n"
        "def bed(bed: str) -> str: return bed\n"
        "@prompt()\n"
        "def sow(plant: str = 'bean') -> str: return plant\n"
        "@resource('garden://{wrong}')\n"
        "def other(bed: str) -> str: return bed\n"
    )
    code, out, err = ran("convert", "garden.py")
    bed, sow = json.loads(out)
    assert (bed["uriTemplate"], bed["name"]) == ("garden://{bed}", "bed")
    assert sow["arguments"] == [{"name": "plant", "required": False}]
    assert code == 1
    assert "other has no parameter for {wrong} of garden://{wrong}: it has bed." in err


def test_one_function_is_shown_alone_and_in_either_form(ran: Ran) -> None:
    code, out, _ = ran("convert", "crafts.py:saw", "--form", "function-calling")
    definition: dict[str, Any] = json.loads(out)
    assert (code, definition["type"]) == (0, "function")
    assert definition["function"]["parameters"]["required"] == ["length"]
    code, _, err = ran("convert", "crafts.py:sew")
    assert code == 1
    assert err == "Error: crafts.py has no tool called 'sew'.\nDid you mean: saw\n"


def test_what_cannot_be_converted_is_told_with_its_place(ran: Ran, work: Path) -> None:
    path = work / "crafts.py"
    path.write_text("def saw(x: int) -> int:\n    return x\n\ndef glue(x):\n    return x\n")
    code, out, err = ran("convert", "crafts.py")
    assert code == 1
    assert [each["name"] for each in json.loads(out)] == ["saw"]
    assert err.startswith(f"{path}:4: glue is not a tool because it has no type for x")
    assert ran("convert", "crafts.py:saw")[0] == 0
    path.write_text("def saw(x: int) -> int:\n    retrun x")
    code, out, err = ran("convert", "crafts.py")
    assert (code, out) == (1, "")
    assert err == f"{path}:2:12: SyntaxError: invalid syntax\n"
    path.write_text("from os import getcwd\n")
    code, out, err = ran("convert", "crafts.py")
    assert (code, out) == (1, "")
    assert "crafts.py has no public function" in err


def test_a_path_that_is_no_python_file_is_refused(ran: Ran) -> None:
    code, _, err = ran("convert", "missing.py")
    assert code == 2
    assert "'missing.py' does not exist." in err
    code, _, err = ran("convert", "notes")
    assert code == 1


def test_tools_lists_function_files_and_what_is_wrong_with_them(ran: Ran, work: Path) -> None:
    code, out, err = ran("tools", "--functions", "crafts.py")
    assert (code, err) == (0, "")
    assert "Saws a board." in out
    (work / "crafts.py").write_text("def (")
    code, out, err = ran("tools", "--functions", "crafts.py")
    assert code == 0
    assert err.startswith(f"{work / 'crafts.py'}:1:5: SyntaxError")
    assert "query" in out


def test_call_runs_a_function_of_a_file(ran: Ran) -> None:
    code, out, err = ran("call", "saw", "length=3", "--functions", "crafts.py")
    assert (code, out) == (0, "1.5\n")
    assert err == "crafts.py: sawing\n"


def test_a_directory_that_holds_the_root_is_refused(ran: Ran, work: Path) -> None:
    code, _, err = ran("tools", "--functions", ".")
    assert code == 1
    assert f"'{work}' contains the root" in err
    assert "name a separate directory" in err
