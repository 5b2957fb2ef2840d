"""What else can be configured: keys, formatters, ways to load and formats to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from data_juicer_source.classes import Class, Classes, assigned, calls_of, first_of, value_of
from data_juicer_source.operators import described, parameters_of
from data_juicer_source.schemas import or_null, schema_of

__all__ = ["formatters_of", "options_of", "routed_formats", "strategies_of", "supported_formats"]


def options_of(source: str) -> Iterator[dict[str, Any]]:
    """The keys of a configuration, as its parser is told them."""
    for call in calls_of(source, "add_argument"):
        words = {each.arg: each.value for each in call.keywords}
        name = str(value_of(call.args[0], {})[0]).removeprefix("--").replace("-", "_")
        if "action" in words and name != "debug":  # they begin a command line
            continue
        told: dict[str, Any] = {"name": name}
        kind = words.get("type")
        if kind is not None:
            told["type"] = ast.unparse(kind)
        schema = {"type": "boolean"} if name == "debug" else schema_of(kind)
        if "nargs" in words:
            schema = {"type": "array", "items": {"type": "string"}}
        if "choices" in words:
            schema = {"enum": value_of(words["choices"], {})[0]}
        default = words.get("default", ast.Constant(False if name == "debug" else None))
        value, is_sure = value_of(default, {})
        told["default" if is_sure else "computed"] = value
        if value is None and schema:
            schema = or_null(schema)
        text = str(value_of(words["help"], {})[0]) if "help" in words else ""
        yield {**told, "schema": schema, "description": " ".join(text.split())}


def formatters_of(classes: Classes) -> Iterator[dict[str, Any]]:
    """What reads or makes data, with the endings of the files that it reads."""
    for cls in classes:
        name = cls.registered("FORMATTERS")
        if name is not None:
            line = list(classes.line(cls))
            yield {
                "name": name,
                "description": described(cls),
                "suffixes": first_of(line, "SUFFIXES") or [],
                "parameters": list(parameters_of(line)),
            }


def strategies_of(source: str) -> Iterator[dict[str, Any]]:
    """How data is loaded, by executor, kind and source."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = Class("", node, {})
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
                ".register"
            ):
                executor, kind, place = (value_of(each, {})[0] for each in decorator.args)
                rules = _rules(cls)
                read = re.findall(r"self\.ds_config(?:\.get\(|\[)'(\w+)'", cls.source)
                required = rules.get("required_fields", [])
                optional = [*rules.get("optional_fields", []), *read]
                yield {
                    "executor_type": executor,
                    "type": kind,
                    "source": place,
                    "description": described(cls),
                    "required": required,
                    "optional": [each for each in dict.fromkeys(optional) if each not in required],
                    "is_implemented": not _only_raises(cls.method("load_data")),
                }


def routed_formats(source: str) -> list[str]:
    """The formats that the exporter has a method for."""
    routers = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "_router"
    )
    returned = next(each for each in ast.walk(next(routers)) if isinstance(each, ast.Return))
    keys = returned.value.keys if isinstance(returned.value, ast.Dict) else ()
    return [str(value_of(key, {})[0]) for key in keys if key is not None]


def supported_formats(source: str) -> list[str]:
    """The formats that the exporter on Ray names."""
    classes = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    named = (assigned(each.body).get("_SUPPORTED_FORMATS") for each in classes)
    return sorted(ast.literal_eval(next(each for each in named if each is not None)))


def _only_raises(method: ast.FunctionDef | None) -> bool:
    body = method.body if method else []
    return any(
        isinstance(each, ast.Raise) and "NotImplemented" in ast.unparse(each) for each in body
    )


def _rules(cls: Class) -> dict[str, Any]:
    """Which keys it takes; functions among the rules are left out."""
    rules = assigned(cls.node.body).get("CONFIG_VALIDATION_RULES")
    if not isinstance(rules, ast.Dict):
        return {}
    pairs = zip(rules.keys, rules.values, strict=True)
    return {
        str(key.value): value_of(value, {})[0]
        for key, value in pairs
        if isinstance(key, ast.Constant) and isinstance(value, ast.List)
    }
