"""An agent in a git worktree is given nothing of the root, whatever tool it calls."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.agent.test_delegation import answer, delegated, small
from tests.tools.conftest import Open
from tools.core.spec import ToolSpec
from tools.core.toolset import OFF_ROOT, ToolSet

pytestmark = [pytest.mark.slow, pytest.mark.boundary]


MARKER = "quagga-4711"
FUNCTIONS = """
from tools.authoring import RequestContext, tool

@tool
def slurp(context: RequestContext, path: str) -> str:
    '''Reads a file.'''
    return context.sandbox.read(path, max_bytes=99).data.decode()

@tool
def slurp_freely(path: str) -> str:
    '''Reads a file.'''
    return open(path).read()
"""
PLAN = """# Cleans
# approval_required: false
dataset_path: marker.jsonl
export_path: made.jsonl
process:
- text_length_filter: {min_len: 1}
"""


def repository(path: Path) -> Path:
    root = path / "root"
    root.mkdir()
    (root / "file").write_text("committed\n", encoding="utf-8")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)  # noqa: S607  # of the machine
    skill = root / ".claude" / "skills" / "quagga"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: quagga\ndescription: About {MARKER}\n---\n{MARKER}\n", encoding="utf-8"
    )
    (root / "marker.jsonl").write_text(f'{{"text": "{MARKER}"}}\n', encoding="utf-8")
    (root / "plan.yaml").write_text(PLAN, encoding="utf-8")
    return root


def values(name: str, schema: Mapping[str, Any], root: Path) -> Iterator[Any]:
    """What an argument may be that leads to the marker."""
    if "enum" in schema:
        yield schema["enum"][0]
        return
    match schema.get("type"):
        case "string":
            if "plan" in name:
                yield "plan.yaml"
            if name in {"command", "code"}:
                read = "cat marker.jsonl" if name == "command" else "open('marker.jsonl').read()"
                yield f"{read}; echo x > made.jsonl" if name == "command" else read
            if "output" in name or "export" in name:
                yield "made.jsonl"
            if name in {"name", "skill", "skill_name"}:
                yield "quagga"
            yield from ("marker.jsonl", str(root / "marker.jsonl"), ".", "quagga")
        case "boolean":
            yield True
        case "integer" | "number":
            yield 1
        case "array":
            inner = values(name, schema.get("items", {}), root)
            yield from ([each] for each in inner)
        case _:
            yield {"dataset_path": "marker.jsonl", "export_path": "made.jsonl"}


def attempts(spec: ToolSpec, root: Path) -> Iterator[dict[str, Any]]:
    """Arguments of a tool, in which each in its turn leads to the marker."""
    known = spec.input_schema.get("properties", {})
    first = {
        name: next(values(name, known[name], root))
        for name in known
        if name in spec.input_schema.get("required", ())
    }
    yield first
    for name, schema in known.items():
        for value in values(name, schema, root):
            yield {**first, name: value}


async def reached(crib: Any, context: Any, names: Sequence[str]) -> set[str]:
    """The tools through which a caller saw the marker or changed something beside it."""
    found, root = set(), crib.root
    before = sorted(root.rglob("[!.]*"))
    for name in names:
        spec = crib.app.registry.get(name)
        for arguments in attempts(spec, root):
            result = await crib.app.manager.execute(spec.name, arguments, context)
            if MARKER in result.text or sorted(root.rglob("[!.]*")) != before:
                found.add(spec.name)
                for each in set(root.rglob("[!.]*")) - set(before):
                    shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)
                break
    return found


async def test_no_tool_that_there_is_reaches_the_root(open_crib: Open, tmp_path: Path) -> None:
    root = repository(tmp_path)
    functions = tmp_path / "functions.py"
    functions.write_text(FUNCTIONS, encoding="utf-8")
    settings: dict[str, Any] = {"functions__paths": [functions], "policy__allow": ("*",)}
    settings["skills__discover"] = True
    async with open_crib(root=root, **settings) as crib:
        await crib.app.functions.loaded()
        own = crib.app.context
        tool_set = ToolSet("agent x", (), (OFF_ROOT,))
        inside = replace(own, origin=replace(own.origin, tool_set=tool_set, session_id="x"))
        # It asks engines of the web, whatever it is given.
        every = {each.name for each in crib.app.registry.specs()} - {"web_search"}
        assert await reached(crib, inside, sorted(every)) == set()
        known = {"read_file", "load_skill", "grep", "bash", "slurp"}
        assert await reached(crib, own, sorted(known)) == known  # so the attempts are real


async def test_an_agent_in_a_worktree_passes_it_on_to_one_without(
    open_crib: Open, tmp_path: Path
) -> None:
    root = repository(tmp_path)
    agents = {"outer": small(worktree=True), "inner": small()}
    allowed = {"policy__allow": ("delegate_to_agent",)}
    async with open_crib(root=root, agents=agents, **allowed) as crib:
        nested = '{"target_agent": "inner", "subtask": "write made.txt"}'
        report = await delegated(crib, f"call delegate_to_agent {nested}", "outer")
        reading = {"target_agent": "inner", "subtask": 'call add_document {"path": "marker.jsonl"}'}
        said = await answer(crib, f"call delegate_to_agent {json.dumps(reading)}", "outer")
    assert "written" in report["answer"]
    assert not (root / "made.txt").exists()
    assert (Path(report["worktree"]["path"]) / "made.txt").read_text() == "by the agent\n"
    assert "no access to the root" in said


async def test_a_function_that_the_settings_name_is_offered_to_an_agent_in_a_worktree() -> None:
    from tools.core.toolset import ToolOffer

    function = ToolOffer(name="count", source="function:count.py")
    server = ToolOffer(name="disk__read", source="upstream:disk")
    unnamed, named = ToolSet("a", (), (OFF_ROOT,)), ToolSet("b", ("count",), (OFF_ROOT,))
    assert (unnamed.admits(function), unnamed.admits(server)) == (False, False)
    assert (named.admits(function), named.admits(server)) == (True, False)
    assert (unnamed.admits_server("disk"), named.admits_server("disk")) == (False, False)
