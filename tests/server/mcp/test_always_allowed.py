"""What a person allows for good stands in the settings file, and counts from then on."""

import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, ElicitResult

from server.app import App, build
from server.settings.sources import load
from tests.conftest import told
from tests.people import Person, answered, round_of

pytestmark = pytest.mark.slow


BEFORE = '[policy]\n# what may run\nprofile = "cautious"\nallow = ["bash(seq 1)"]\n'
LINE = {"command": "seq 1 && seq 2"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(BEFORE)
    return file


def _app(config: Path, **flags: Any) -> App:
    place = config.parent
    (place / "root").mkdir(exist_ok=True)
    flags = {"data_dir": place / "data", "root": place / "root", **flags}
    return build(load(flags, config_file=config, environ={}))


@asynccontextmanager
async def _visited(config: Path, mode: str, person: Person, **flags: Any) -> AsyncIterator[Client]:
    app = _app(config, **flags)
    async with app.running(), Client(app.server, mode=mode, elicitation_callback=person) as client:
        yield client


def _allowed(config: Path) -> Sequence[str]:
    rules: list[str] = tomllib.loads(config.read_text())["policy"]["allow"]
    return rules


def _text(config: Path) -> str:
    return config.read_text()


def _write(config: Path, text: str) -> None:
    config.write_text(text)


def _choices(asked: Any) -> dict[str, str]:
    answer = asked.requested_schema["properties"]["answer"]
    return dict(zip(answer["enum"], answer["enumNames"], strict=True))


async def test_the_second_line_says_what_is_not_covered_and_a_choice_which_rule_would_cover_it(
    config: Path, mode: str
) -> None:
    person = Person("no")
    async with _visited(config, mode, person) as client:
        await client.call_tool("bash", LINE)
    (asked,) = person.asked
    first, second = asked.message.splitlines()[:2]
    assert first == "mcp wants to call bash: seq 1 && seq 2"
    assert second == "Not covered by a rule: `seq 2`. It runs programs."
    assert _choices(asked)["always"] == "Always allow bash(seq 2)"
    assert _text(config) == BEFORE


@pytest.mark.boundary
async def test_what_is_always_allowed_is_not_asked_about_again_here_or_elsewhere_or_later(
    config: Path, mode: str
) -> None:
    person = Person("always")
    async with _visited(config, mode, person) as client, _visited(config, mode, person) as other:
        result = await client.call_tool("bash", LINE)
        assert "1\n1\n2" in told(result)
        assert _allowed(config) == ["bash(seq 1)", "bash(seq 2)"]
        assert _text(config).startswith("[policy]\n# what may run\n")
        for each in (client, other):
            assert not (await each.call_tool("bash", LINE)).is_error
    async with _visited(config, mode, person) as later:
        assert not (await later.call_tool("bash", {"command": "seq 2"})).is_error
    assert len(person.asked) == 1


async def test_the_wider_rule_is_written_where_it_is_chosen(config: Path, mode: str) -> None:
    person = Person("always_wider")
    async with _visited(config, mode, person) as client:
        await client.call_tool("bash", {"command": "ls"})
        assert not (await client.call_tool("bash", {"command": "ls -l"})).is_error
    assert _choices(person.asked[0])["always_wider"] == "Always allow bash(ls *)"
    assert _allowed(config) == ["bash(seq 1)", "bash(ls *)"]


@pytest.mark.parametrize("answer", ["always_wider", None, "Always", "for_ever"])
async def test_what_was_not_offered_or_not_said_is_neither_written_nor_run(
    config: Path, mode: str, answer: Any
) -> None:
    person = Person(answer)
    async with _visited(config, mode, person) as client:
        result = await client.call_tool("bash", {"command": "seq 2"})
    assert "always_wider" not in _choices(person.asked[0])
    assert told(result).startswith("approval_required: ")
    assert _text(config) == BEFORE


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_python_code", {"code": "print(1)"}),
        ("bash", {"command": "seq $HOME"}),
        ("bash", {"command": "git clean -fd"}),
        ("bash", {"command": "printf hi"}),
    ],
)
async def test_nothing_is_offered_for_code_for_deletions_and_for_what_the_settings_ask_about(
    config: Path, mode: str, tool: str, arguments: dict[str, Any]
) -> None:
    person = Person("always")
    async with _visited(config, mode, person, **{"policy.ask": ("bash(printf *)",)}) as client:
        result = await client.call_tool(tool, arguments)
    assert not {"always", "always_wider"} & set(_choices(person.asked[0]))
    assert told(result).startswith("approval_required: ")
    assert _text(config) == BEFORE


async def test_nothing_is_offered_where_the_file_would_not_count(config: Path, mode: str) -> None:
    person = Person("no")
    async with _visited(config, mode, person, **{"policy.allow": ("bash(seq 1)",)}) as client:
        await client.call_tool("bash", LINE)
    assert "always" not in _choices(person.asked[0])


async def test_a_call_runs_once_where_its_rule_cannot_be_written(
    config: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    person = Person("always", "no")
    async with _visited(config, mode, person) as client:
        _write(config, "[policy\n")
        assert not (await client.call_tool("bash", LINE)).is_error
        assert (await client.call_tool("bash", LINE)).is_error
    assert "bash(seq 2) is not in the settings" in caplog.text
    assert _text(config) == "[policy\n"


async def test_an_answer_means_the_rules_that_were_shown_whatever_else_is_asked_by_now(
    config: Path,
) -> None:
    async with _visited(config, "2026-07-28", Person()) as client:
        first = await round_of(client, "bash", LINE)
        _write(config, BEFORE.replace('"bash(seq 1)"', ""))
        always = ElicitResult(action="accept", content={"answer": "always"})
        second = await round_of(client, "bash", LINE, **answered(first, always))
    assert isinstance(second, CallToolResult)
    assert not second.is_error
    assert _allowed(config) == ["bash(seq 2)"]


async def test_a_denial_that_is_written_while_a_call_is_asked_about_binds_it(
    config: Path, mode: str
) -> None:
    async def hesitate(context: Any, params: Any) -> ElicitResult:
        _write(config, BEFORE + 'deny = ["bash(seq *)"]\n')
        return ElicitResult(action="accept", content={"answer": "once"})

    app = _app(config)
    async with (
        app.running(),
        Client(app.server, mode=mode, elicitation_callback=hesitate) as client,
    ):
        result = await client.call_tool("bash", LINE)
    assert "The rule 'bash(seq *)' denies" in told(result)
