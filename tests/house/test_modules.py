"""What holds for every module of the three floors; each failure says what to change."""

import ast
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENEATH = {
    "server": {"server", "tools", "storage"},
    "tools": {"tools", "storage"},
    "storage": {"storage"},
}
"""What each floor may import of this repository."""

OURS = {*BENEATH, "tests", "benchmarks"}
MODULES = sorted(path for floor in BENEATH for path in (ROOT / floor).rglob("*.py"))
FOR_AUTHORS = {
    *("server.own", "tools.authoring", "tools.conversion.function_to_mcp", "tools.core.context"),
    *("tools.core.errors", "tools.core.spec"),
}
"""What authors of tools and servers import from."""

MOST_LINES = 400
MOST_ENTRIES = 20
SETTINGS_READERS = (
    "server/app.py",
    "server/cli/",
    "server/composition/current.py",  # reads the file again when it changes
    "server/settings/sources.py",
)
TELEMETRY = "storage/outbound.py"
"""Sets variables for libraries, and reads none."""

BESIDES_PACKAGES = {"mcp", "mcp_types", "pydantic", "rich", "uvicorn", "numpy", "chromadb"}
"""What a package's `__init__` must not load, the standard library and the small aside."""

EXCEPTION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|fmt:|ruff:|mypy:|pyright:)")
REASONED = re.compile(
    r"# (noqa: [A-Z]+\d+(, [A-Z]+\d+)*|type: ignore\[[a-z-]+(, ?[a-z-]+)*\])  # \S.{7,}"
)


def test_the_floors_are_there() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(BENEATH)


def test_arrows_run_downwards_only() -> None:
    wrong = [
        f"{_shown(path)}:{line} imports {name}: the floor {_floor(path)} may import only "
        f"{sorted(BENEATH[_floor(path)])} of this repository. Move what both need downwards, or "
        "hand it over as an argument."
        for path in MODULES
        for line, name in imports(path.read_text(encoding="utf-8"), _package(path))
        if name.split(".")[0] in OURS - BENEATH[_floor(path)]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        *("import server.app", "import os, server.app as app", "from server.app import build"),
        *("from server import app", "from ...server import app"),
        "def first_use():\n    import server.app",
        "if TYPE_CHECKING:\n    from server.app import App",
        "try:\n    import server.app\nexcept ImportError:\n    pass",
        *("import_module('server.app')", "importlib.import_module('server.app')"),
        "__import__('server.app')",
    ],
)
def test_an_import_in_any_form_is_seen(source: str) -> None:
    assert any(name.split(".")[0] == "server" for _, name in imports(source, "tools.core"))


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {_module(path): path for path in MODULES}
    imported = {
        module: {
            each
            for _, name in imports(path.read_text(encoding="utf-8"), _package(path))
            for each in (name, name.rpartition(".")[0])
            if each in modules and each != module
        }
        for module, path in modules.items()
    }
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        circle = " imports ".join(reversed(error.args[1]))
        pytest.fail(
            f"{circle}: move what both ends need to a module of its own. An import under "
            "TYPE_CHECKING counts too."
        )


def test_no_module_is_too_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    wrong = [
        f"{_shown(path)} has {lines} lines, {MOST_LINES} are allowed: it holds more than one noun. "
        "Give the other one a module."
        for path, lines in lengths.items()
        if lines > MOST_LINES
    ]
    assert not wrong, "\n".join(wrong)


def test_no_folder_is_crowded() -> None:
    folders = {path.parent for path in MODULES}
    entries = {folder: [each for each in folder.iterdir() if _is_entry(each)] for folder in folders}
    wrong = [
        f"{_shown(folder)} has {len(found)} entries, {MOST_ENTRIES} are allowed: give those that "
        "belong together a room, or merge the smallest."
        for folder, found in entries.items()
        if len(found) > MOST_ENTRIES
    ]
    assert not wrong, "\n".join(wrong)


def test_only_modules_that_others_import_from_list_their_names() -> None:
    found = {
        _module(path): names
        for path in MODULES
        if path.name != "__init__.py"
        and (names := _public_names(ast.parse(path.read_text(encoding="utf-8")))) is not None
    }
    assert set(found) == FOR_AUTHORS
    for module, names in found.items():
        assert names == sorted(names, key=_place), module


def test_importing_a_package_loads_nothing_heavy() -> None:
    packages = [_package(path) for path in MODULES if path.name == "__init__.py"]
    packages.remove("server.settings")  # which is the model that it exports
    probe = (
        "import importlib, json, sys\n"
        f"for name in {packages!r}: importlib.import_module(name)\n"
        "print(json.dumps(list(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    loaded = {name.split(".")[0] for name in json.loads(printed)} & BESIDES_PACKAGES
    assert not loaded, (
        f"The __init__ files of {', '.join(packages)} load {sorted(loaded)}: import modules where "
        "they are used, not in __init__."
    )


def test_settings_are_read_by_the_composition_root_and_the_command_line_only() -> None:
    wrong = [
        f"{_shown(path)}:{line} imports {name}: take what it needs as an argument from "
        "server/app.py or server/cli."
        for path in MODULES
        if not _shown(path).startswith(SETTINGS_READERS)
        for line, name in imports(path.read_text(encoding="utf-8"), _package(path))
        if name.startswith("server.settings.sources")
    ]
    assert not wrong, "\n".join(wrong)


def test_the_environment_is_read_as_settings_only() -> None:
    wrong = [
        f"{_shown(path)}:{node.lineno} reads the environment: make it a setting "
        "(server/settings/settings.py) and hand it down."
        for path in MODULES
        if not _shown(path).startswith((*SETTINGS_READERS, TELEMETRY))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}
    ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_to_a_check_has_its_reason_on_the_line() -> None:
    wrong = []
    for path in MODULES:
        with tokenize.open(path) as source:
            comments = [
                token
                for token in tokenize.generate_tokens(source.readline)
                if token.type == tokenize.COMMENT
            ]
        wrong += [
            f"{_shown(path)}:{token.start[0]}: {token.string!r} wants the form "
            "'# noqa: CODE  # the reason' or '# type: ignore[code]  # the reason'."
            for token in comments
            if EXCEPTION.search(token.string) and not REASONED.match(token.string)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: S101", "# type: ignore[misc]  # why"])
def test_an_exception_without_code_or_reason_is_seen(comment: str) -> None:
    assert EXCEPTION.search(comment)
    assert not REASONED.match(comment)


def test_no_other_distribution_owns_our_package_names() -> None:
    owners = packages_distributions()
    wrong = [
        f"{other} installs a package called {floor!r} as well: one hides the other. Install "
        "Toolcrib in an environment without it."
        for floor in BENEATH
        for other in set(owners.get(floor, ())) - {"toolcrib"}
    ]
    assert not wrong, "\n".join(wrong)


def imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Every line that imports, and what it imports, as a dotted name from the top."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                start = ".".join([*(above if node.level else ()), *filter(None, [node.module])])
                names = (".".join(filter(None, [start, alias.name])) for alias in node.names)
                yield from ((node.lineno, name) for name in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module")
                | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def _public_names(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                names: list[str] = ast.literal_eval(value)
                return names
    return None


def _place(name: str) -> tuple[int, str]:
    """Where ruff's RUF022 sorts a name: constants, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _is_entry(path: Path) -> bool:
    """Whether a folder shows this; the tools themselves are a list, beside their engines."""
    if path.is_dir():
        return (path / "__init__.py").exists()
    is_tool = path.parent == ROOT / "tools"
    return path.suffix == ".py" and path.name != "__init__.py" and not is_tool


def _floor(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def _package(path: Path) -> str:
    return ".".join(path.parent.relative_to(ROOT).parts)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
