"""Looks at what only Data-Juicer's environment can: files, and operators with their parameters."""

from __future__ import annotations

import json
from typing import Any

from .agreed import AGAIN
from .failures import MissingPackageError, OperatorError, RecipeError, UnreadableError
from .reading import NUMBER
from .steps import can_run, make_operators, run_operator
from .writing import as_json

_SAMPLES = ["One short text, <b>two</b> sentences. See https://example.org/a.", "\\section{A} 汉语"]
_LACKS = "it needs the package "


def look(message: dict[str, Any]) -> dict[str, Any]:
    """Reads the first `sample` rows of the Parquet file at `path`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(message["path"])
        batch = next(file.iter_batches(batch_size=message["sample"]), None)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(str(error), AGAIN) from error
    rows = [] if batch is None else batch.to_pylist()
    return {
        "rows": file.metadata.num_rows,
        "sample": [json.loads(as_json(row)) for row in rows],
        "types": {field.name: str(field.type) for field in file.schema_arrow},
    }


def make(message: dict[str, Any]) -> dict[str, Any]:
    """Makes the operators in the `process` of `config`, and uses those in `probe` on samples.

    Returns `faults`: of each that fails the `operator`, the `parameter` if it is known, `why`, and
    whether it `lacks` a package.
    """
    faults = []
    for each in message["config"]["process"]:
        [(name, given)] = each.items()
        params, is_tried = given or {}, name in message["probe"]
        if why := _fault(name, params, is_tried=is_tried):
            without = ({other: params[other] for other in params if other != key} for key in params)
            mended = [not _fault(name, rest, is_tried=is_tried) for rest in without]
            blamed = [key for key, helps in zip(params, mended, strict=True) if helps]
            parameter = blamed[0] if len(blamed) == 1 else None
            fault = {"operator": name, "parameter": parameter, "why": why}
            faults.append({**fault, "lacks": why.startswith(_LACKS)})
    return {"faults": faults}


def _fault(name: str, params: dict[str, Any], *, is_tried: bool) -> str:
    """Returns why an operator cannot be made, or used on samples; empty where it can."""
    common = {"text_key": "text", "skip_op_error": False}
    try:
        [operator] = make_operators([{name: params}], common)
    except OperatorError as error:
        return _as_sentence(error.cause)
    except RecipeError as error:
        return _as_sentence(error)
    if why := _empty_range(operator, is_of_text=is_tried):
        return why
    if not is_tried or not can_run(operator):
        return ""
    rows = {"text": [*_SAMPLES], NUMBER: [*range(len(_SAMPLES))]}
    try:
        run_operator(operator, rows)
    except OperatorError as error:  # of its parameters, unless it fails without them
        if params and not _fault(name, {}, is_tried=True):
            return _as_sentence(error.cause)
    return ""


def _empty_range(operator: Any, *, is_of_text: bool) -> str:
    """Returns which bounds of an operator no value meets; empty where there are none."""
    values = vars(operator)
    for low, least in values.items():
        most = values.get(low.replace("min_", "max_", 1))
        if not low.startswith("min_") or not isinstance(least, int | float):
            continue
        if isinstance(most, int | float) and least > most:
            return f"{low} is {least}, which is more than {low.replace('min', 'max', 1)}: {most}."
        if is_of_text and low == "min_ratio" and least > 1:
            return f"{low} is {least}, and a ratio of characters or words is at most 1."
    return ""


def _as_sentence(error: BaseException) -> str:
    if isinstance(error, MissingPackageError):
        return f"{_LACKS}{error}, which is not installed here."
    text = " ".join(str(error).split()).rstrip(".")[:500]
    return f"{text or type(error).__name__}."
