"""The import of a function file: as `python FILE` would, and always what was saved last."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

__all__ = ["OUR_PACKAGES", "FileImport"]

OUR_PACKAGES = ("tools", "storage")
OURS = Path(__file__).parents[2]
"""The directory that holds them."""


class FileImport:
    """The import of one file.

    The author's packages come before ours of the same name. A file of a package is imported as part
    of it, so that its relative imports work.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name, self._beside = _place(path)
        self._finder = _FreshFinder(self._beside)

    @property
    def files(self) -> list[str]:
        """What the file imports from beside it, found or not: what its author may change."""
        return sorted(self._finder.sought)

    def run(self, source: str) -> ModuleType:
        """Imports the file.

        Args:
            source: Its text, which may be older than the file.
        """
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
        exec(code, vars(module))  # noqa: S102  # this process is there to run it
        return module


def _place(path: Path) -> tuple[str, Path]:
    """The module's name, and the directory in which its imports are looked for first."""
    parts, directory = [path.stem.replace(".", "_")], path.parent
    while (directory / "__init__.py").exists() and directory.name.isidentifier():
        parts.insert(0, directory.name)
        directory = directory.parent
    return ".".join(parts), directory


def _give_way(beside: Path, path: Path) -> None:
    """Lets the author have a package called `tools` or `storage`; ours stay where they are in use.

    Without one of that name ours is there to be imported from, and is the one that runs here. The
    file itself is none: it does not import itself.
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
        if own and own.origin is None:  # a plain directory loses to a package further down the path
            sys.modules[package] = importlib.util.module_from_spec(own)


class _FreshLoader(SourceFileLoader):
    """Compiles each time: bytecode is kept by second and size, and people save twice a second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _FreshFinder:
    """Finds the author's own modules, whose last version counts.

    Attributes:
        sought: Their files, also where there is none and what is broken.
    """

    def __init__(self, beside: Path) -> None:
        self.sought: set[str] = set()
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
        """Remembers the file that would be found if its author made it."""
        for directory in [str(self._beside)] if path is None else path:
            file = str(Path(directory, f"{name.rpartition('.')[2]}.py"))
            if name not in sys.builtin_module_names and _is_authored(file, self._beside):
                self.sought.add(file)


def _is_authored(file: str, beside: Path) -> bool:
    """Whether it is the author's, and not installed in an environment that lies there too."""
    path = Path(file)
    installed = "site-packages" in path.parts or path.is_relative_to(sys.prefix)
    return path.is_relative_to(beside) and not installed
