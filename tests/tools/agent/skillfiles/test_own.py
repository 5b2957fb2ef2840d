"""The skills that come with the product: what they say is tried against it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, get_args

import pytest

from tests.docs.following import Step, blocks, clean_home, follow, steps
from tools.agent.skillfiles.places import OWN
from tools.agent.skillfiles.skills import Skills
from tools.core.errors import ErrorType

NAMES = ("cleaning-data", "keeping-memory", "using-toolcrib", "writing-a-tool")
NO_TOOLS = {"dry_run", "event_time", "executor_type"}
"""Parameters that stand alone."""

MOST_CHARACTERS = 6_000
"""1,500 tokens at four characters each."""

TOOL_PAGE = (OWN / "writing-a-tool" / "SKILL.md").read_text(encoding="utf-8")
TOOL_STEPS = [step for block in blocks(TOOL_PAGE) for step in steps(block)]


def _calls(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls of a skill, each on a line of its own, in their order."""
    page = (OWN / name / "SKILL.md").read_text(encoding="utf-8")
    for block in blocks(page):
        for line in block.text.splitlines() if block.kind == "calls" else ():
            call = ast.parse(line, mode="eval").body
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Name)
            named = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            yield call.func.id, {key: value for key, value in named.items() if key}


def test_they_are_as_the_specification_wants_them_and_short(
    skills_of: Callable[..., Skills],
) -> None:
    skills = skills_of(discover=False).all()
    assert tuple(each.name for each in skills) == NAMES
    for skill in skills:
        assert skill.is_conforming, skill.problems
        assert skill.where.endswith(f"/{skill.name}")
        assert skill.frontmatter["license"] == "Apache-2.0"
        assert len(skill.text("SKILL.md")) <= MOST_CHARACTERS, skill.name


@pytest.mark.parametrize("name", ["using-toolcrib", "keeping-memory", "cleaning-data"])
async def test_every_call_in_them_works(
    open_crib: Callable[..., AbstractAsyncContextManager[Any]], name: str
) -> None:
    calls = list(_calls(name))
    assert len(calls) > 5
    async with open_crib() as crib:
        for tool, arguments in calls:
            answer = await crib.client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            for each in (answer.structured_content or {}).get("answers", ()):
                assert not each["is_error"], each


async def test_the_tools_that_they_need_are_here(
    crib: Any[..., AbstractAsyncContextManager[Any]],
) -> None:
    for name in NAMES:
        loaded = await crib.call("load_skill", name=name)
        assert loaded["tools"]
        assert not [each for each in loaded["tools"] if each.get("tool") != each["named"]]


async def test_every_tool_that_they_name_is_here(
    crib: Any[..., AbstractAsyncContextManager[Any]],
) -> None:
    for name in NAMES:
        page = (OWN / name / "SKILL.md").read_text(encoding="utf-8")
        named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)[`(]", page))
        for each in named - set(get_args(ErrorType)) - NO_TOOLS:
            assert crib.app.registry.get(each) is not None, f"{name} names {each}."


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command printed, the skill followed from its top to its end."""
    folder = tmp_path_factory.mktemp("root")
    return follow(TOOL_PAGE, folder, clean_home(tmp_path_factory.mktemp("home")))


@pytest.mark.slow
@pytest.mark.parametrize("step", TOOL_STEPS, ids=[step.command for step in TOOL_STEPS])
def test_a_command_prints_what_the_skill_shows(step: Step, printed: dict[str, str]) -> None:
    assert step.pattern.fullmatch(printed[step.command].strip()), printed[step.command]
