"""What the scripts that make the bundled models share: BERT's graph, written anew, and quantised.

The graph is for one text a run: it has no mask, and one product for query, key and value. Table
rows of words have a scale each. The products are quantised by `quantize_dynamic`, each output
channel with its own scale, in 7 bits: x86 processors without VNNI add pairs of products of 8 by 8
bits in 16 bits, which saturate; 2 * 255 * 64 never does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from pinned import report

HEADS, HEAD, HIDDEN = 12, 32, 384
EPSILON = 1e-12
OPSET, IR_VERSION = 20, 10  # what onnxruntime 1.20 reads


def write(model: onnx.ModelProto, target: Path) -> None:
    """Quantises a model, and prints the SHA-256 of the file."""
    with tempfile.TemporaryDirectory() as folder:
        exact = Path(folder, "exact.onnx")
        onnx.save(model, exact)
        quantize_dynamic(
            exact,
            target,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
    report(target)


class Bert:
    """The network of some weights, from the tokens of one text to a vector for each: no mask.

    Args:
        name: What the graph is called.
        weights: By the names that they have in `transformers`.
        layers: How many there are.
    """

    inputs: tuple[str, ...] = ("input_ids",)

    def __init__(self, name: str, weights: dict[str, np.ndarray], layers: int) -> None:
        self._name = name
        self._weights = weights
        self._layers = layers
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        """The whole; it is made once."""
        shape = ["texts", "tokens"]
        states = self._embeddings()
        for layer in range(self._layers):
            states = self._layer(states, f"encoder.layer.{layer}.")
        output, width = self._output(states)
        inputs = [
            helper.make_tensor_value_info(each, TensorProto.INT64, shape) for each in self.inputs
        ]
        output = helper.make_tensor_value_info(output, TensorProto.FLOAT, width)
        graph = helper.make_graph(
            self._nodes, self._name, inputs, [output], list(self._constants.values())
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)

    def _output(self, states: str) -> tuple[str, list[str | int]]:
        """What comes out, and its shape."""
        return self._node("Identity", [states], "states"), ["texts", "tokens", HIDDEN]

    def _embeddings(self) -> str:
        pre = "embeddings."
        rows = self._word_vectors()
        rows, positions = self._typed(rows, self._weights[f"{pre}position_embeddings.weight"])
        count = self._node("Shape", ["input_ids"], "count", start=1, end=2)
        start = self._constant("start", np.zeros(1, dtype=np.int64))
        places = self._node(
            "Slice", [self._constant("positions", positions), start, count], "position_vectors"
        )
        return self._norm(self._node("Add", [rows, places], "embedded"), f"{pre}LayerNorm")

    def _word_vectors(self) -> str:
        words = self._weights["embeddings.word_embeddings.weight"]
        scales = np.abs(words).max(axis=1, keepdims=True) / np.float32(127)
        scales[scales == 0] = 1
        table = self._constant("words", np.rint(words / scales).astype(np.int8))
        rows = self._node("Gather", [table, "input_ids"], "word_rows")
        rows = self._node("Cast", [rows], "word_floats", to=TensorProto.FLOAT)
        scales = self._node(
            "Gather", [self._constant("word_scales", scales), "input_ids"], "word_scales_of_rows"
        )
        return self._node("Mul", [rows, scales], "word_vectors")

    def _typed(self, rows: str, positions: np.ndarray) -> tuple[str, np.ndarray]:
        """The vectors of words and positions, with that of the token's type in one of them."""
        return rows, positions + self._weights["embeddings.token_type_embeddings.weight"][0]

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
