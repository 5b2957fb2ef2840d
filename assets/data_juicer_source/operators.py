"""Operators: what they do, what they work on, and their parameters."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data_juicer_source.classes import Class, Classes, assigned, first_of, value_of
from data_juicer_source.schemas import or_null, schema_of
from tools.conversion.callables.docstrings import read_docstring

__all__ = ["common_parameters", "described", "operators_of", "parameters_of"]

MODALITIES = ("text", "image", "audio", "video")
MODEL_TAGS = {
    "api": "api",
    "vllm": "vllm",
    "huggingface": "hf",
    "diffusion": "hf",
    "simple_aesthetics": "hf",
    "video_blip": "hf",
}
"""As the release's own `op_search` derives tags from the kind of a model."""


def operators_of(classes: Classes) -> Iterator[dict[str, Any]]:
    """All that are registered, as records of the catalogue."""
    for cls in classes:
        name = cls.registered("OPERATORS")
        if name is not None:
            line = list(classes.line(cls))
            said = described(cls)
            yield {
                "name": name,
                "type": _kind(line),
                "tags": _tags(name, line),
                "modes": first_of(line, "_supported_exec_modes") or ["default"],
                "description": said,
                "parameters": list(parameters_of(line)),
            }


def common_parameters(classes: Classes) -> dict[str, list[dict[str, Any]]]:
    """The parameters that all operators of a kind have: those of `op`, and more of some kinds."""
    found = {}
    for cls in classes:
        init = cls.method("__init__")
        if "base_op" not in cls.path or init is None:
            continue
        texts = read_docstring(ast.get_docstring(init)).parameters
        declared = assigned(cls.node.body).get("_BASE_PARAMS")
        if isinstance(declared, ast.Dict):
            found[cls.node.name.lower()] = [
                _base_parameter(name.value, pair, texts, cls.constants)
                for name, pair in zip(declared.keys, declared.values, strict=True)
                if isinstance(name, ast.Constant) and isinstance(pair, ast.Tuple)
            ]
    return found


def _base_parameter(
    name: object, pair: ast.Tuple, texts: Mapping[str, str], constants: Mapping[str, ast.expr]
) -> dict[str, Any]:
    kind, default = pair.elts
    annotation = None if isinstance(kind, ast.Constant) else kind
    text = texts.get(str(name), "")
    return parameter_of(ast.arg(str(name), annotation), default, text, constants)


def described(cls: Class) -> str:
    """The docstring, its lines joined to paragraphs and items."""
    text = inspect.cleandoc(ast.get_docstring(cls.node) or "")
    said = read_docstring(text).description
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", said)
    return "\n".join(filter(None, (" ".join(each.split()) for each in paragraphs)))


def _kind(line: Sequence[Class]) -> str:
    kinds = {"Mapper", "Filter", "Deduplicator", "Selector", "Grouper", "Aggregator", "Pipeline"}
    return next(name for cls in line for name in cls.bases if name in kinds).lower()


def _tags(name: str, line: Sequence[Class]) -> list[str]:
    """What it works on, needs and asks, as the release derives it, down to its own bases."""
    own = [cls for cls in line if "base_op" not in cls.path]
    accelerator = first_of(own, "_accelerator")
    kinds = (re.findall(r"model_type=['\"](\w+)['\"]", cls.source) for cls in own)
    models = next((found for found in kinds if set(found) & set(MODEL_TAGS)), [])
    worked = (
        [
            each
            for each in MODALITIES
            if f"self.{each}_key" in cls.source or name.startswith(f"{each}_")
        ]
        for cls in own
    )
    modalities = next(filter(None, worked), [])
    return [
        *modalities,
        *(["multimodal"] if len(modalities) > 1 else []),
        "gpu" if accelerator == "cuda" else "cpu",
        *dict.fromkeys(MODEL_TAGS[each] for each in models if each in MODEL_TAGS),
    ]


def parameters_of(line: Sequence[Class]) -> Iterator[dict[str, Any]]:
    """Those of the constructor, and as far as it passes others on, those of the ones above."""
    seen = {"self"}
    for cls in line:
        init = cls.method("__init__")
        if "base_op" in cls.path or init is None:
            continue
        texts = read_docstring(ast.get_docstring(init)).parameters
        for arg, default in _arguments(init):
            if arg.arg not in seen:
                yield parameter_of(arg, default, texts.get(arg.arg, ""), cls.constants)
        seen |= {arg.arg for arg, _ in _arguments(init)} | _passed(init)
        if init.args.kwarg is None:
            return


def _arguments(init: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    args = init.args
    plain = [*args.posonlyargs, *args.args]
    lacking = [None] * (len(plain) - len(args.defaults))
    yield from zip(plain, [*lacking, *args.defaults], strict=True)
    yield from zip(args.kwonlyargs, args.kw_defaults, strict=True)


def _passed(init: ast.FunctionDef) -> set[str]:
    """What it gives to the constructor above, so that nobody else may."""
    calls = (node for node in ast.walk(init) if isinstance(node, ast.Call))
    return {
        word.arg
        for call in calls
        if ast.unparse(call.func).endswith(".__init__")
        for word in call.keywords
        if word.arg
    }


def parameter_of(
    arg: ast.arg, default: ast.expr | None, text: str, constants: Mapping[str, ast.expr]
) -> dict[str, Any]:
    schema = schema_of(arg.annotation)
    told: dict[str, Any] = {"name": arg.arg}
    if arg.annotation is not None:
        told["type"] = ast.unparse(arg.annotation)
    if default is not None:
        value, is_sure = value_of(default, constants)
        told["default" if is_sure else "computed"] = value
        if value is None and schema:
            schema = or_null(schema)
    return {**told, "schema": schema, "description": " ".join(text.split())}
