"""Long texts that programs wrote are told from what people write, whatever their names."""

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.reading.machine_text import LEAST_CHARS, is_machine_written
from storage.reading.parse import parse

DICE = random.Random(40)  # noqa: S311  # the same texts each time
WORDS = (  # noqa: SIM905  # words read best as text
    "the harbour berth is paid until May and nobody asked whether tides or fees were meant when"
    " they came back from the long pier with wet ropes in both hands"
).split()


def number() -> int:
    return DICE.randrange(10**6)


def log() -> str:
    lines = (
        f"2026-03-14T15:{n % 60:02}:09Z INFO worker-{number()} request {number()} took {n} ms"
        for n in range(1500)
    )
    return "\n".join(lines)


def access_log() -> str:
    line = '10.0.{}.1 - - [14/Mar/2026:15:09:26 +0100] "GET /a/{} HTTP/1.1" 200 {}'
    return "\n".join(line.format(n % 256, number(), number()) for n in range(1500))


def table() -> str:
    out = io.StringIO()
    csv.writer(out).writerows(
        [n, DICE.choice(WORDS), DICE.choice(WORDS), number()] for n in range(5000)
    )
    return out.getvalue()


def lock_file() -> str:
    packages = (
        f'[[package]]\nname = "p{n}"\nversion = "{n}.0"\nhash = "sha256:{number():064x}"\n'
        for n in range(1500)
    )
    return "\n".join(packages)


def records() -> str:
    return json.dumps([{"id": n, "value": number(), "tags": ["a", "b"]} for n in range(3000)])


def minified() -> str:
    return ";".join(f"function a{n}(b,c){{return b[{n}]+c.d({number()})}}" for n in range(2500))


def prose() -> str:
    sentences = (" ".join(DICE.choices(WORDS, k=12)).capitalize() + "." for _ in range(1200))
    return "\n\n".join(sentences)


def chinese() -> str:
    return "".join(DICE.choices("今天天气很好我们去公园散步", k=LEAST_CHARS))


def chat() -> str:
    said = (" ".join(DICE.choices(WORDS, k=DICE.randrange(1, 14))) for _ in range(1500))
    return "\n".join(f"14/03/2026, 15:{n % 60:02} - Ada: {text}" for n, text in enumerate(said))


def indented() -> str:
    return "".join(f"    {line}\n" for line in prose().split("\n") if line)


def table_of_remarks() -> str:
    out = io.StringIO()
    csv.writer(out).writerows([n, " ".join(DICE.choices(WORDS, k=20))] for n in range(700))
    return out.getvalue()


@pytest.mark.parametrize("made", [log, access_log, lock_file, records, minified])
def test_what_programs_wrote_is_recognized(made: Callable[[], str]) -> None:
    text = made()
    assert len(text) > LEAST_CHARS
    assert is_machine_written(text)
    assert not is_machine_written(text[: LEAST_CHARS - 1])


@pytest.mark.parametrize("made", [prose, chinese, chat, indented, table_of_remarks])
def test_what_people_wrote_is_not(made: Callable[[], str]) -> None:
    assert len(made()) >= LEAST_CHARS
    assert not is_machine_written(made(), is_table=True)


def test_source_code_is_not() -> None:
    room = Path(__file__).parents[3] / "storage" / "index"
    source = "\n".join(file.read_text() for file in sorted(room.glob("*.py")))
    assert len(source) > LEAST_CHARS
    assert not is_machine_written(source)


@pytest.mark.parametrize(
    ("name", "is_data"), [("rows.csv", True), ("rows.tsv", True), ("rows.md", False)]
)
def test_a_table_is_data_by_its_name(name: str, is_data: bool) -> None:
    assert parse(table().encode(), name=name).machine_written is is_data
