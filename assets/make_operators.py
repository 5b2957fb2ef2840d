"""Makes what Toolcrib knows of Data-Juicer without it: `tools/data/catalogue/*.json*`.

    python assets/make_operators.py [--wheel FILE]

The release's source is read as it lies in its wheel, which is downloaded from PyPI unless it is
given; nothing of it is installed or run. The same wheel gives the same bytes always.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.conversion.callables.docstrings import read_docstring
from tools.data.catalogue.fields import terms_of
from tools.data.release import VERSION

WHEEL_SHA256 = "de77979969b574e841f947d2171028b5e15a4eeea2b2802c528b5ef1758e9c8f"
TARGET = Path(__file__).parents[1] / "tools/data/catalogue"

CONSTANTS = {"sys.maxsize": sys.maxsize}
"""Defaults that are no literals, by how they are written."""

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

NUMBERS: Mapping[str, dict[str, Any]] = {
    "PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "NonNegativeInt": {"type": "integer", "minimum": 0},
    "PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "NonNegativeFloat": {"type": "number", "minimum": 0},
    "ClosedUnitInterval": {"type": "number", "minimum": 0, "maximum": 1},
}
NAMES: Mapping[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "dict": {"type": "object"},
    "Dict": {"type": "object"},
    "list": {"type": "array"},
    "List": {"type": "array"},
    "Sequence": {"type": "array"},
    "tuple": {"type": "array"},
    "None": {"type": "null"},
    **NUMBERS,
}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def main() -> None:
    """Makes the files."""
    parser = argparse.ArgumentParser(description="Makes the catalogue of operators.")
    parser.add_argument("--wheel", type=Path, help=f"py-data-juicer {VERSION}, if it is at hand")
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as folder:
        sources = _sources(wheel or _download(Path(folder)))
    for name, text in made(sources).items():
        TARGET.joinpath(name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(text.encode())} bytes\n")


def made(sources: Mapping[str, str]) -> dict[str, str]:
    """The files, from the release's sources by their paths in the wheel."""
    classes = Classes(sources)
    operators = sorted(_operators(classes), key=lambda each: str(each["name"]))
    release = {
        "version": VERSION,
        "common": _common(classes),
        "options": list(_options(sources["data_juicer/config/config.py"])),
        "formatters": list(_formatters(classes)),
        "strategies": list(_strategies(sources["data_juicer/core/data/load_strategy.py"])),
        "export_types": {
            "default": _routed(sources["data_juicer/core/exporter.py"]),
            "ray": _supported(sources["data_juicer/core/ray_exporter.py"]),
        },
        "validators": [
            str(_value(call.args[0], {})[0])
            for call in _calls(sources["data_juicer/core/data/data_validator.py"], "register")
        ],
    }
    counts = [terms_of(each) for each in operators]
    terms = sorted({term for each in counts for term in each})
    index = {
        "lengths": [sum(each.values()) for each in counts],
        "terms": {
            term: {place: each[term] for place, each in enumerate(counts) if term in each}
            for term in terms
        },
    }
    return {
        "operators.jsonl": "".join(f"{_json(each)}\n" for each in operators),
        "release.json": f"{_json(release)}\n",
        "terms.json": f"{_json(index)}\n",
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _download(folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder))
    subprocess.run([*pip, f"py-data-juicer=={VERSION}"], check=True)  # noqa: S603  # constants
    return next(folder.glob("*.whl"))


def _sources(wheel: Path) -> dict[str, str]:
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"{wheel} has the SHA-256 {found}, not {WHEEL_SHA256}.")
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name).decode()
            for name in archive.namelist()
            if name.startswith("data_juicer/") and name.endswith(".py")
        }


@dataclass(frozen=True)
class Class:
    """A class as it is written.

    Attributes:
        path: The file that it is in.
        node: Its syntax.
        module: The constants of its file.
    """

    path: str
    node: ast.ClassDef
    module: Mapping[str, ast.expr]

    @property
    def source(self) -> str:
        """The class as text."""
        return ast.unparse(self.node)

    @property
    def bases(self) -> list[str]:
        """The names of what it is derived from."""
        return [ast.unparse(base).rpartition(".")[2] for base in self.node.bases]

    @property
    def constants(self) -> dict[str, ast.expr]:
        """What is assigned in its body, and in its file."""
        return {**self.module, **_assigned(self.node.body)}

    def registered(self, registry: str) -> str | None:
        """The name under which a registry has it; None where it has it not."""
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call) and (
                ast.unparse(decorator.func) == f"{registry}.register_module"
            ):
                args = decorator.args
                return str(_value(args[0], self.module)[0]) if args else self.node.name
        return None

    def method(self, name: str) -> ast.FunctionDef | None:
        """A method of its own."""
        found = (each for each in self.node.body if isinstance(each, ast.FunctionDef))
        return next((each for each in found if each.name == name), None)


class Classes:
    """All classes of the release.

    Args:
        sources: Its files by their paths.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._found: dict[str, Class] = {}
        for path, text in sorted(sources.items()):
            if path.startswith(("data_juicer/ops/", "data_juicer/format/")):
                tree = ast.parse(text)
                module = _assigned(tree.body)
                for node in tree.body:
                    if isinstance(node, ast.ClassDef):
                        self._found[node.name] = Class(path, node, module)

    def __iter__(self) -> Iterator[Class]:
        return iter(self._found.values())

    def line(self, cls: Class) -> Iterator[Class]:
        """The class, then what it is derived from, the nearest first."""
        yield cls
        for base in cls.bases:
            if base in self._found:
                yield from self.line(self._found[base])


def _assigned(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _value(node: ast.expr, constants: Mapping[str, ast.expr]) -> tuple[Any, bool]:
    """What an expression stands for, and whether that is sure; else how it is written."""
    match node:
        case ast.Name(id=name) if name in constants:
            return _value(constants[name], constants)
        case ast.JoinedStr(values=parts):
            texts = [
                str(
                    _value(each.value if isinstance(each, ast.FormattedValue) else each, constants)[
                        0
                    ]
                )
                for each in parts
            ]
            return "".join(texts), True
    try:
        value = ast.literal_eval(node)
        json.dumps(value)
    except (ValueError, TypeError):
        written = ast.unparse(node)
        return CONSTANTS.get(written, written), written in CONSTANTS
    return value, True


def _operators(classes: Classes) -> Iterator[dict[str, Any]]:
    for cls in classes:
        name = cls.registered("OPERATORS")
        if name is not None:
            line = list(classes.line(cls))
            said = _described(cls)
            yield {
                "name": name,
                "type": _kind(line),
                "tags": _tags(name, line),
                "modes": _first(line, "_supported_exec_modes") or ["default"],
                "description": said,
                "parameters": list(_parameters(line)),
            }


def _common(classes: Classes) -> dict[str, list[dict[str, Any]]]:
    """The parameters that all operators of a kind have: those of `op`, and more of some kinds."""
    found = {}
    for cls in classes:
        init = cls.method("__init__")
        if "base_op" not in cls.path or init is None:
            continue
        texts = read_docstring(ast.get_docstring(init)).parameters
        declared = _assigned(cls.node.body).get("_BASE_PARAMS")
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
    return _parameter(ast.arg(str(name), annotation), default, text, constants)


def _options(source: str) -> Iterator[dict[str, Any]]:
    """The keys of a configuration, as its parser is told them."""
    for call in _calls(source, "add_argument"):
        words = {each.arg: each.value for each in call.keywords}
        name = str(_value(call.args[0], {})[0]).removeprefix("--").replace("-", "_")
        if "action" in words and name != "debug":  # they begin a command line
            continue
        told: dict[str, Any] = {"name": name}
        kind = words.get("type")
        if kind is not None:
            told["type"] = ast.unparse(kind)
        schema = {"type": "boolean"} if name == "debug" else _schema(kind)
        if "nargs" in words:
            schema = {"type": "array", "items": {"type": "string"}}
        if "choices" in words:
            schema = {"enum": _value(words["choices"], {})[0]}
        default = words.get("default", ast.Constant(False if name == "debug" else None))
        value, is_sure = _value(default, {})
        told["default" if is_sure else "computed"] = value
        if value is None and schema:
            schema = _or_null(schema)
        text = str(_value(words["help"], {})[0]) if "help" in words else ""
        yield {**told, "schema": schema, "description": " ".join(text.split())}


def _calls(source: str, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ):
            yield node


def _formatters(classes: Classes) -> Iterator[dict[str, Any]]:
    for cls in classes:
        name = cls.registered("FORMATTERS")
        if name is not None:
            line = list(classes.line(cls))
            yield {
                "name": name,
                "description": _described(cls),
                "suffixes": _first(line, "SUFFIXES") or [],
                "parameters": list(_parameters(line)),
            }


def _strategies(source: str) -> Iterator[dict[str, Any]]:
    """How data is loaded, by executor, kind and source."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = Class("", node, {})
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
                ".register"
            ):
                executor, kind, place = (_value(each, {})[0] for each in decorator.args)
                rules = _rules(cls)
                read = re.findall(r"self\.ds_config(?:\.get\(|\[)'(\w+)'", cls.source)
                required = rules.get("required_fields", [])
                optional = [*rules.get("optional_fields", []), *read]
                yield {
                    "executor_type": executor,
                    "type": kind,
                    "source": place,
                    "description": _described(cls),
                    "required": required,
                    "optional": [each for each in dict.fromkeys(optional) if each not in required],
                    "is_implemented": not _only_raises(cls.method("load_data")),
                }


def _routed(source: str) -> list[str]:
    """The formats that the exporter has a method for."""
    routers = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "_router"
    )
    returned = next(each for each in ast.walk(next(routers)) if isinstance(each, ast.Return))
    keys = returned.value.keys if isinstance(returned.value, ast.Dict) else ()
    return [str(_value(key, {})[0]) for key in keys if key is not None]


def _supported(source: str) -> list[str]:
    """The formats that the exporter on Ray names."""
    classes = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    named = (_assigned(each.body).get("_SUPPORTED_FORMATS") for each in classes)
    return sorted(ast.literal_eval(next(each for each in named if each is not None)))


def _only_raises(method: ast.FunctionDef | None) -> bool:
    body = method.body if method else []
    return any(
        isinstance(each, ast.Raise) and "NotImplemented" in ast.unparse(each) for each in body
    )


def _rules(cls: Class) -> dict[str, Any]:
    """Which keys it takes; functions among the rules are left out."""
    rules = _assigned(cls.node.body).get("CONFIG_VALIDATION_RULES")
    if not isinstance(rules, ast.Dict):
        return {}
    pairs = zip(rules.keys, rules.values, strict=True)
    return {
        str(key.value): _value(value, {})[0]
        for key, value in pairs
        if isinstance(key, ast.Constant) and isinstance(value, ast.List)
    }


def _described(cls: Class) -> str:
    """The docstring, its lines joined to paragraphs and items."""
    text = inspect.cleandoc(ast.get_docstring(cls.node) or "")
    said = read_docstring(text).description
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", said)
    return "\n".join(filter(None, (" ".join(each.split()) for each in paragraphs)))


def _kind(line: Sequence[Class]) -> str:
    kinds = {"Mapper", "Filter", "Deduplicator", "Selector", "Grouper", "Aggregator", "Pipeline"}
    return next(name for cls in line for name in cls.bases if name in kinds).lower()


def _first(line: Iterable[Class], attribute: str) -> Any:  # noqa: ANN401  # as it is written
    for cls in line:
        if attribute in (own := _assigned(cls.node.body)):
            return _value(own[attribute], cls.constants)[0]
    return None


def _tags(name: str, line: Sequence[Class]) -> list[str]:
    """What it works on, needs and asks, as the release derives it, down to its own bases."""
    own = [cls for cls in line if "base_op" not in cls.path]
    accelerator = _first(own, "_accelerator")
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


def _parameters(line: Sequence[Class]) -> Iterator[dict[str, Any]]:
    """Those of the constructor, and as far as it passes others on, those of the ones above."""
    seen = {"self"}
    for cls in line:
        init = cls.method("__init__")
        if "base_op" in cls.path or init is None:
            continue
        texts = read_docstring(ast.get_docstring(init)).parameters
        for arg, default in _arguments(init):
            if arg.arg not in seen:
                yield _parameter(arg, default, texts.get(arg.arg, ""), cls.constants)
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


def _parameter(
    arg: ast.arg, default: ast.expr | None, text: str, constants: Mapping[str, ast.expr]
) -> dict[str, Any]:
    schema = _schema(arg.annotation)
    told: dict[str, Any] = {"name": arg.arg}
    if arg.annotation is not None:
        told["type"] = ast.unparse(arg.annotation)
    if default is not None:
        value, is_sure = _value(default, constants)
        told["default" if is_sure else "computed"] = value
        if value is None and schema:
            schema = _or_null(schema)
    return {**told, "schema": schema, "description": " ".join(text.split())}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    null = {"type": "null"}
    if null in schema.get("anyOf", ()) or schema == null:
        return schema
    return {"anyOf": [*schema.get("anyOf", [schema]), null]}


def _schema(node: ast.expr | None) -> dict[str, Any]:
    """The JSON schema of an annotation; of one that JSON does not know, the one that takes all."""
    match node:
        case ast.Constant(value=None):
            return NAMES["None"]
        case ast.Name(id=name):
            return NAMES.get(name, {})
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([left, right])
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _subscripted(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
    return {}


def _subscripted(name: str, inner: Sequence[ast.expr]) -> dict[str, Any]:  # noqa: PLR0911  # a form each
    match name:
        case "Optional":
            found = _schema(inner[0])
            return _or_null(found) if found else {}
        case "Union":
            return _any_of(inner)
        case "Literal":
            return {"enum": [ast.literal_eval(each) for each in inner]}
        case "Annotated":
            return {**_schema(inner[0]), **_bounds(inner[1])}
        case "List" | "list" | "Sequence":
            items = _schema(inner[0])
            return {"type": "array", **({"items": items} if items else {})}
        case "Tuple" | "tuple":
            items = _any_of([each for each in inner if ast.unparse(each) != "..."])
            sizes = (
                {}
                if len(inner) > 1 and ast.unparse(inner[-1]) == "..."
                else {"minItems": len(inner), "maxItems": len(inner)}
            )
            return {"type": "array", **({"items": items} if items else {}), **sizes}
        case "Dict" | "dict":
            values = _schema(inner[-1])
            return {"type": "object", **({"additionalProperties": values} if values else {})}
    return {}


def _any_of(inner: Iterable[ast.expr]) -> dict[str, Any]:
    found = [_schema(each) for each in inner]
    if not all(found):
        return {}
    flat = [each for schema in found for each in schema.get("anyOf", [schema])]
    distinct = [each for place, each in enumerate(flat) if each not in flat[:place]]
    return {"anyOf": distinct} if len(distinct) > 1 else distinct[0]


def _bounds(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call):
        return {}
    return {
        BOUNDS[word.arg]: ast.literal_eval(word.value)
        for word in node.keywords
        if word.arg in BOUNDS
    }


if __name__ == "__main__":
    main()
