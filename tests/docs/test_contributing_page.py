"""The page for contributors: its example is a tool, and what it names is there."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.following import broken_links
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.spec import ToolSpec

ROOT = Path(__file__).parents[2]
TOP = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
ROOMS = [
    each for floor in ("server", "tools", "storage") for each in ROOT.glob(f"{floor}/**/README.md")
]
PAGES = [*sorted((ROOT / "docs").glob("**/*.md")), *TOP, *sorted(ROOMS)]
EXAMPLES = {"tools/words.py", "tests/tools/test_words.py"}
METHODS = {"server/discover", "tools/call", "tools/list"}


@pytest.fixture
def spec() -> ToolSpec:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    source = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert source is not None
    module = ModuleType("words")
    exec(source[1], module.__dict__)  # noqa: S102  # the page's own code
    return FunctionToMCP.convert(module.count_words)


def test_the_example_says_all_that_a_tool_must_say(spec: ToolSpec) -> None:
    assert spec.description
    assert spec.effects
    assert spec.tags
    assert spec.capabilities
    assert spec.output_schema
    assert all(each["description"] for each in spec.input_schema["properties"].values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:server|tools|storage|tests)/[\w./-]*)`", page.read_text("utf-8"))
    files = set(named) - EXAMPLES - METHODS
    assert {name for name in files if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken_links(page.read_text(encoding="utf-8"), page.parent) == []
