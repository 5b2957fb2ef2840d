"""Imports a function file, and returns its offers or the reasons against them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.public import (
    common_options,
    offered_by,
    options_of,
    public_functions,
    to_call,
)
from tools.core.errors import ToolDefinitionError
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.functions.workers.messages import Problem
from tools.functions.workers.offers import Key, Offer, key_of

OURS = Path(__file__).parents[3]  # the parent directory of our packages
OUR_PACKAGES = ("tools", "storage")


class FileImport:
    """The import of one file.

    The author's packages come before ours of the same name. A file in a package is imported as part
    of it, so that its relative imports work.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name, self._beside = _place(path)
        self._finder = _FreshFinder(self._beside)

    @property
    def files(self) -> list[str]:
        """Returns the files in its directory that it imports, existing or not."""
        return sorted(self._finder.sought)

    def run(self, source: str, given: Mapping[str, object]) -> ModuleType:
        """Imports the file from its text, which may be older than the file."""
        sys.argv = [str(self._path)]
        sys.path.insert(0, str(self._beside))
        _give_way(self._beside, self._path)
        sys.meta_path.insert(0, self._finder)
        name = self._name
        package = name.rpartition(".")[0]
        if package:
            importlib.import_module(package)
        elif name in sys.modules or name in sys.stdlib_module_names:
            name = f"function_file_{name}"
        spec = importlib.util.spec_from_file_location(name, self._path)
        if spec is None:
            raise ImportError(f"{self._path.name} is not a Python file")
        code = compile(source, self._path, "exec", dont_inherit=True)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        vars(module).update(given)
        exec(code, vars(module))  # noqa: S102  # this process is there to run it
        return module


def _place(path: Path) -> tuple[str, Path]:
    """Returns the module's name, and the directory searched first for its imports."""
    parts, directory = [path.stem.replace(".", "_")], path.parent
    while (directory / "__init__.py").exists() and directory.name.isidentifier():
        parts.insert(0, directory.name)
        directory = directory.parent
    return ".".join(parts), directory


def _give_way(beside: Path, path: Path) -> None:
    """Lets the author have a package called `tools` or `storage`; ours stay where they are in use.

    Without such a package, imports get ours, the version running here. The file itself does not
    count as one, since it does not import itself.
    """
    for package in OUR_PACKAGES:
        own = PathFinder.find_spec(package, [str(beside)])
        if own and own.origin == str(path):
            continue
        found = own or PathFinder.find_spec(package, sys.path)
        if found is None or str(OURS / package) in (found.submodule_search_locations or ()):
            continue
        for name in [each for each in sys.modules if each.split(".")[0] == package]:
            del sys.modules[name]
        if (
            own and own.origin is None
        ):  # a plain directory would lose to a package later in the path
            sys.modules[package] = importlib.util.module_from_spec(own)


class _FreshLoader(SourceFileLoader):
    """Compiles on each import: bytecode is cached by second and size, but files change faster."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _FreshFinder:
    """Finds the author's own modules, always in their latest version."""

    def __init__(self, beside: Path) -> None:
        self.sought: set[str] = set()  # their files, including missing and broken ones
        self._beside = beside

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path)
        if found is None:
            self._seek(name, path)
            return None
        if not isinstance(found.loader, SourceFileLoader):
            return None
        if not _is_authored(found.loader.path, self._beside):
            return None
        self.sought.add(found.loader.path)
        found.loader = _FreshLoader(name, found.loader.path)
        return found

    def _seek(self, name: str, path: Sequence[str] | None) -> None:
        """Records the file that would be found if its author created it."""
        for directory in [str(self._beside)] if path is None else path:
            file = str(Path(directory, f"{name.rpartition('.')[2]}.py"))
            if name not in sys.builtin_module_names and _is_authored(file, self._beside):
                self.sought.add(file)


def _is_authored(file: str, beside: Path) -> bool:
    """Returns whether the author wrote the file, rather than installed it there."""
    path = Path(file)
    installed = "site-packages" in path.parts or path.is_relative_to(sys.prefix)
    return path.is_relative_to(beside) and not installed


SCOPES = {ToolScope.SANDBOXED, ToolScope.SYSTEM, ToolScope.CONTEXT}
"""The scopes that a worker can serve; other servers belong to the server process."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of loading a file."""

    # Its offers, in the order of the file; None if it could not be imported.
    offers: list[Offer] | None
    problems: list[Problem]
    files: list[str]


def load(
    path: Path, source: str, no_store: str = "", given: Mapping[str, object] | None = None
) -> Found:
    """Imports a file from a text that may be older than it, and converts its functions.

    `no_store`: why its functions may not have the stored context, or "".
    """
    importing = FileImport(path)
    try:
        module = importing.run(source, given or {})
        # A created tool is the only public function of its source, and already checked.
        to_tool = partial(_tool, module, path, is_chosen=given is not None)
        offers, problems = _offers(module, path, no_store or _why_out_of_reach(), to_tool)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the author's code may raise anything
        return Found(None, [_failure(error, path)], importing.files)
    return Found(offers, problems, importing.files)


def _why_out_of_reach() -> str:
    """Returns why our lazily loaded modules cannot be imported, or ""."""
    for package in OUR_PACKAGES:
        if str(OURS / package) not in getattr(sys.modules.get(package), "__path__", ()):
            return f"{_remedy(package)}."
    return ""


def _offers(
    module: ModuleType,
    path: Path,
    no_store: str,
    to_tool: Callable[[str, Callable[..., Any]], ToolSpec],
) -> tuple[list[Offer], list[Problem]]:
    common_options(module)
    offers: dict[Key, Offer] = {}
    problems: list[Problem] = []
    for name, function in public_functions(module):
        try:
            found = offered_by(function, f"function:{path}", partial(to_tool, name, function))
        except ToolDefinitionError as error:
            problems.append(Problem(str(error), _line_of(function)))
            continue
        for key, offer in ((key_of(each), each) for each in found):
            if no_store and isinstance(offer, ToolSpec) and offer.scope is ToolScope.CONTEXT:
                text = f"{offer.name} has the scope context. {no_store}"
                problems.append(Problem(text, _line_of(function)))
            elif offers.setdefault(key, offer) is not offer:
                text = f"There is another {key[0]} {key[1]!r} in this file; change one of them."
                problems.append(Problem(text, _line_of(function)))
    return list(offers.values()), problems


def _tool(
    module: ModuleType, path: Path, name: str, function: Callable[..., Any], *, is_chosen: bool
) -> ToolSpec:
    called = to_call(module, name, function, is_chosen=is_chosen)
    options = options_of(module, name, called)
    if options["scope"] not in SCOPES:
        raise ToolDefinitionError(
            f"{name} has the scope {options['scope']}, which a function file cannot have; use "
            f"{' or '.join(sorted(SCOPES))}."
        )
    # A cancelled read would be abandoned, and its thread would run on unseen by the server.
    converting = {**options, "effects": frozenset({Effect.EXECUTE})}
    spec = FunctionToMCP.convert(called, source=f"function:{path}", **converting)
    return replace(spec, effects=options["effects"])


def _failure(error: BaseException, path: Path) -> Problem:
    if isinstance(error, ToolDefinitionError):
        return Problem(str(error))
    if isinstance(error, SyntaxError):
        text = f"{type(error).__name__}: {error.msg}"
        if error.filename == str(path):
            return Problem(text, error.lineno, error.offset)
        place = f" ({error.filename}, line {error.lineno})" if error.filename else ""
        return Problem(f"{text}{place}")
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError):
        text += f". {_remedy(error.name or '')}"
    frames = traceback.extract_tb(error.__traceback__)
    own = next((frame for frame in reversed(frames) if frame.filename == str(path)), None)
    if own is None:
        return Problem(text)
    return Problem(text, own.lineno, None if own.colno is None else own.colno + 1)


def _remedy(missing: str) -> str:
    package = missing.partition(".")[0]
    if package in OUR_PACKAGES:
        return f"Your own {package!r} hides Toolcrib's; rename yours to import both"
    return (
        f"Add it to the dependencies in the file's `# /// script` block, or install it where "
        f"{sys.executable} finds it"
    )


def _line_of(function: Callable[..., Any]) -> int | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return getattr(code, "co_firstlineno", None)
