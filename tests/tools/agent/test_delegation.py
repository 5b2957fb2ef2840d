"""Delegation: agents get a task and a Toolcrib, and are held to what their caller may."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.boundary]

AGENT = Path(__file__).with_name("small_agent.py")
ALLOWED = {"policy__allow": ("delegate_to_agent",)}


def agent(**more: Any) -> dict[str, Any]:
    """The settings of the small agent."""
    return {
        "command": [sys.executable, str(AGENT)],
        "answer": "said.answer",
        "cost": "usd",
        "session": "id",
        "readable": [str(AGENT.parent)],
        "description": "Does small things",
        **more,
    }


@pytest.fixture
async def crib(open_crib: Callable[..., Any]) -> AsyncIterator[Any]:
    async with open_crib(agents={"small": agent()}, **ALLOWED) as crib:
        yield crib


async def delegated(crib: Any, task: str, to: str = "small") -> dict[str, Any]:
    found: dict[str, Any] = await crib.call("delegate_to_agent", target_agent=to, subtask=task)
    return found


async def test_an_agent_does_a_task_with_the_toolcrib_that_it_is_given(crib: Any) -> None:
    (crib.root / "hello.txt").write_text("hello from the root\n")
    report = await delegated(crib, 'call read_file {"file_path": "hello.txt"}')
    assert "hello from the root" in report["answer"]
    assert (report["cost"], report["agent_session"]) == (0.25, "s-1")
    assert report["sandbox"] == "bubblewrap"
