"""The real embedder, loaded once, and libraries and processes on a data directory of their own."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.database import Database
from storage.index.embedders.base import Embedder
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.index.embedding_models import Models
from storage.library import Library, Shelf
from storage.models import Identity

_SCRIPT = Path(__file__).with_name("other_process.py")


class OtherProcess:
    """A process on a data directory that does what it is told and answers."""

    def __init__(self, directory: Path, *embedder: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), str(directory), *map(str, embedder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "ready"

    def tell(self, command: str, *given: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([command, *given]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, command: str, *given: object) -> Any:
        self.tell(command, *given)
        return self.answer()

    def kill(self) -> list[Any]:
        """Ends it with SIGKILL; what it had still said whole."""
        self.process.kill()
        assert self.process.stdout is not None
        said = self.process.stdout.readlines()
        self.end()
        return [json.loads(line) for line in said if line.endswith("\n")]

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="session")
def world() -> ModuleType:
    """What the other process is made of: HashEmbedder, new_document, add_many, drain, lost."""
    spec = importlib.util.spec_from_file_location("other_process", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def other_process() -> Iterator[Callable[..., OtherProcess]]:
    """Starts another process on a directory, with a HashEmbedder of these arguments."""
    with ExitStack() as stack:

        def start(directory: Path, *embedder: object) -> OtherProcess:
            process = OtherProcess(directory, *embedder)
            stack.callback(process.end)
            stack.callback(process.process.kill)
            return process

        yield start


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The bundled embedder, loaded once."""
    return MiniLMEmbedder()


@pytest.fixture
def database(tmp_path: Path, world: ModuleType) -> Iterator[Database]:
    database = Database(tmp_path / "data" / "toolcrib.db")
    Models(database, world.HashEmbedder(), lambda _: None)
    yield database
    database.close()


@pytest.fixture
def library_of(tmp_path: Path) -> Iterator[Callable[..., Library]]:
    """Opens a library on an embedder, by default in one directory."""
    with ExitStack() as stack:

        def make(
            embedder: Embedder, directory: Path = tmp_path / "data", **options: Any
        ) -> Library:
            library = Library(directory, embedder, **options)
            stack.callback(library.close)
            return library

        yield make


@pytest.fixture
def library(library_of: Callable[..., Library], world: ModuleType) -> Library:
    """A library whose vectors are cheap."""
    return library_of(world.HashEmbedder())


@pytest.fixture
def shelf(library: Library) -> Shelf:
    """What ann has in the library."""
    return library.shelf(Identity("ann"))
