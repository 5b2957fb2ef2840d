# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy==2.4.6",
#     "pip",
#     "safetensors==0.8.0",
# ]
# ///
"""Makes the bundled static embeddings, the same bytes always: a table and its tokenizer.

    uv run assets/make_static.py [--wheel FILE]

They are WordLlama's (MIT), out of a wheel on PyPI. The table is quantised to 8 bits, each row
with its own scale, and the tokenizer loses the blanks between its words.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from pinned import read_pinned, report
from safetensors.numpy import load

WHEEL = "wordllama==0.4.0.post1"
WHEEL_SHA256 = "42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97"
PLATFORM = (
    *("--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11"),
    *("--platform", "manylinux2014_x86_64"),
)
WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
FOLDER = Path(__file__).parents[1] / "storage/index/embedders"


def main() -> None:
    """Makes the files."""
    weights, tokenizer = read_pinned(WHEEL, WHEEL_SHA256, WEIGHTS, TOKENIZER, options=PLATFORM)
    np.save(FOLDER / "static_table.npy", _quantised(load(weights)["embedding.weight"]))
    small = json.dumps(json.loads(tokenizer), ensure_ascii=False, separators=(",", ":"))
    (FOLDER / "static_tokenizer.json").write_bytes(small.encode())
    for name in ("static_table.npy", "static_tokenizer.json"):
        report(FOLDER / name)


def _quantised(table: np.ndarray) -> np.ndarray:
    """Returns rows of a scale and the 8-bit steps that it multiplies."""
    exact = table.astype(np.float32)
    scales = np.abs(exact).max(axis=1) / np.float32(127)
    rows = np.empty(len(table), [("scale", "<f4"), ("steps", "i1", table.shape[1])])
    rows["scale"] = scales
    rows["steps"] = np.rint(exact / np.where(scales, scales, 1)[:, None])
    return rows


if __name__ == "__main__":
    main()
