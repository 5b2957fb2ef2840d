"""What an installation may leave out: nothing here imports it, and all works without it."""

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
USE = """
import sys
from pathlib import Path

class Left(dict):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ImportError(f"{name} was left out")

sys.meta_path.insert(0, Left())
import numpy as np
from storage.index.vectors import ChromaDirectory, ChromaServer, VectorIndex

index = VectorIndex(ChromaDirectory(Path(sys.argv[1])), library="probe")
index.upsert(1, "ann", [1, 2], np.eye(2, dtype=np.float32))
index.delete(1, "ann", [1])
assert index.nearest(1, "ann", np.ones(2, dtype=np.float32), 2) == [2]
index.close()
import chromadb
try:
    chromadb.HttpClient(host="127.0.0.1", port=1)
except ValueError as error:
    assert "Could not connect" in str(error)
import huggingface_hub, tokenizers, uvicorn
"""


def left_out() -> list[str]:
    lines = (ROOT / "unused.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_uv_leaves_out_what_the_list_names() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    assert settings["exclude-dependencies"] == left_out()


def test_nothing_else_that_we_name_requires_what_the_list_names() -> None:
    requiring = {
        each.name
        for each in distributions()
        for text in each.requires or ()
        if (needed := Requirement(text)).name in left_out()
        and (needed.marker is None or needed.marker.evaluate({"extra": ""}))
    }
    assert requiring <= {"chromadb", "huggingface_hub", "huggingface-hub"}


@pytest.mark.slow
def test_the_index_works_without_what_the_list_names(tmp_path: Path) -> None:
    names: set[str] = set()
    for name in left_out():
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            files = ()
        names |= {file.parts[0] for file in files if file.suffix == ".py"} or {
            name.replace("-", "_")
        }
    ended = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path), *names],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
