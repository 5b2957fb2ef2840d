import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.index.embedders import e5
from storage.index.embedders.bundled import (
    MODEL_FILE,
    STATIC_TOKENIZER_FILE,
    TABLE_FILE,
    TOKENIZER_FILE,
)

ROOT = Path(__file__).parents[2]
FLOORS = ("server", "tools", "storage")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built of this checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    build = ["build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run([sys.executable, "-m", "hatchling", *build], cwd=ROOT, check=True)
    [wheel] = directory.glob("toolcrib-*.whl")
    return wheel


@pytest.fixture(scope="module")
def contents(wheel: Path) -> set[str]:
    """The names in the wheel."""
    return set(zipfile.ZipFile(wheel).namelist())


def test_pypi_takes_a_wheel_of_this_size(wheel: Path) -> None:
    assert wheel.stat().st_size <= 100 * 1024**2


def test_a_wheel_holds_the_three_packages_and_their_data_and_nothing_else(
    contents: set[str],
) -> None:
    packaged = {name for name in contents if ".dist-info/" not in name}
    assert packaged == {*_sources(), *_docs()}


def test_a_wheel_holds_types_model_files_and_licences(contents: set[str]) -> None:
    assert contents >= {f"{floor}/py.typed" for floor in FLOORS}
    assert any(name.startswith("storage/migrations/") for name in contents)
    files = [MODEL_FILE, TOKENIZER_FILE, TABLE_FILE, STATIC_TOKENIZER_FILE]
    files += [e5.MODEL_FILE, e5.TOKENIZER_FILE]
    assert contents >= {f"storage/index/embedders/{name}" for name in files}
    assert "storage/retrieval/crossencoder.onnx" in contents
    assert {name.rpartition("/")[2] for name in contents} >= {
        "LICENSE",
        "NOTICE",
        "entry_points.txt",
    }


def _sources() -> Iterator[str]:
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


def _docs() -> Iterator[str]:
    for path in (ROOT / "docs").rglob("*"):
        if path.is_file():
            yield f"server/docs/{path.relative_to(ROOT / 'docs').as_posix()}"
