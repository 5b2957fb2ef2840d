"""What runs in WebAssembly, which has no threads, no sockets and few compiled modules.

Functions run in the event loop's thread. Modules that only load with compiled parts are stand-ins
as far as something imports them; a shape that uses one, or needs a second thread, is not run.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import anyio.from_thread
import anyio.to_thread

SHAPES = "benchmarks.function_shapes"
FUTURE = "from __future__ import annotations\n"
UNUSED = {"cryptography", "httpx2_jsfetch"}
"""What the SDK imports for servers of other kinds than those in memory."""
COMPILED = {"numpy", "pandas", "PIL"}

lacking: set[str] = set()
"""What the running shape needs and is not here."""


def main() -> None:
    """Prints, as JSON, what Toolcrib misses of each shape, and what could not run for want of what.

    Modules with postponed annotations are read a second time without, as Python 3.14 allows.
    """
    _prepare()
    from benchmarks.function_shapes import catalogue
    from benchmarks.function_shapes.systems import opened

    with opened("Toolcrib") as system:
        report = {
            "python": sys.version.split()[0],
            "as_written": _examined(system, catalogue.SHAPES),
            "without_future": _examined(system, list(_without_future())),
        }
    print(json.dumps(report))


def _examined(system: Any, shapes: Sequence[Any]) -> list[dict[str, Any]]:  # noqa: ANN401  # types load after the stand-ins
    from benchmarks.function_shapes.examination import examine

    rows = []
    for shape in shapes:
        lacking.clear()
        with redirect_stdout(StringIO()):  # a shape prints
            misses = examine(system, shape)
        wants = sorted(lacking) if misses else []
        rows.append({"title": shape.title, "misses": misses, "lacks": wants})
    return rows


def _without_future() -> Iterator[Any]:
    from benchmarks.function_shapes.shape import Theme

    folder = Path(importlib.import_module(SHAPES).__path__[0])
    for file in sorted(folder.glob("*.py")):
        source = file.read_text(encoding="utf-8")
        if FUTURE not in source or ".shape(" not in source or file.stem == "shape":
            continue
        module = ModuleType(f"{SHAPES}.{file.stem}_without_future")
        sys.modules[module.__name__] = module
        exec(compile(source.replace(FUTURE, ""), str(file), "exec"), vars(module))  # noqa: S102  # our own file
        for value in vars(module).values():
            if isinstance(value, Theme):
                yield from value.shapes


def _prepare() -> None:
    asyncio.events._set_running_loop(None)  # noqa: SLF001  # that of JavaScript runs already
    asyncio.events.new_event_loop = _Loop
    anyio.to_thread.run_sync = _inline  # type: ignore[assignment]
    anyio.from_thread.run = anyio.from_thread.run_sync = _no_thread  # type: ignore[assignment]
    anyio.from_thread.check_cancelled = _no_thread
    sys.meta_path.insert(0, _StandIns())
    sys.modules["rpds"] = _rpds()
    from benchmarks.function_shapes.shape import Theme

    scientific: Any = ModuleType(f"{SHAPES}.scientific")  # it is all numpy and pandas
    scientific.SCIENTIFIC, scientific.SCIENTIFIC_TEXTS = Theme("types"), Theme("texts")
    sys.modules[scientific.__name__] = scientific


class _Loop(asyncio.BaseEventLoop):
    """An event loop without sockets."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self

    def select(self, timeout: float | None) -> list[object]:
        time.sleep(timeout or 0)
        return []

    def _process_events(self, events: list[object]) -> None: ...

    def _write_to_self(self) -> None: ...


async def _inline(function: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:  # noqa: ANN401  # as anyio has it
    await anyio.lowlevel.checkpoint()
    return function(*arguments)


def _no_thread(*_arguments: object) -> NoReturn:
    lacking.add("threads")
    raise RuntimeError("There are no threads here.")


class _StandIns(MetaPathFinder, Loader):
    def find_spec(self, name: str, *_rest: object) -> ModuleSpec | None:
        package = name.partition(".")[0]
        if package in COMPILED:
            lacking.add(package)
            raise ModuleNotFoundError(f"{package} is not here.", name=package)
        return ModuleSpec(name, self, is_package=True) if package in UNUSED else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = _stand_in


def _stand_in(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (Exception,), {})


def _rpds() -> ModuleType:  # noqa: C901  # three small classes
    """The persistent collections that `referencing` uses, made of Python's own."""

    class Map(dict[Any, Any]):
        @classmethod
        def convert(cls, value: Any) -> Map:  # noqa: ANN401  # a mapping or one of these
            return cls(value)

        def insert(self, key: Any, value: Any) -> Map:  # noqa: ANN401  # any key and value
            return Map({**self, key: value})

        def update(self, *others: Any) -> Map:  # type: ignore[override]  # noqa: ANN401  # as rpds has it
            return Map({**self, **dict(*others)})

        def remove(self, key: Any) -> Map:  # noqa: ANN401  # any key
            return Map({each: value for each, value in self.items() if each != key})

    class Set(frozenset[Any]):
        def insert(self, value: Any) -> Set:  # noqa: ANN401  # any value
            return Set(self | {value})

        def update(self, *others: Any) -> Set:  # noqa: ANN401  # as rpds has it
            return Set(self.union(*others))

        def remove(self, value: Any) -> Set:  # noqa: ANN401  # any value
            return Set(self - {value})

    class List(tuple[Any, ...]):
        __slots__ = ()

        def push_front(self, value: Any) -> List:  # noqa: ANN401  # any value
            return List((value, *self))

        def drop_first(self) -> List:
            return List(self[1:])

        @property
        def first(self) -> Any:  # noqa: ANN401  # any value
            return self[0]

    module: Any = ModuleType("rpds")
    module.HashTrieMap, module.HashTrieSet, module.List = Map, Set, List
    return module  # type: ignore[no-any-return]
