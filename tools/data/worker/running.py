"""Runs a recipe: by calling its operators directly, or where it needs more by `dj-process`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from .channel import Call
from .program import run_program
from .reading import Columns, Read, read, rows_of
from .steps import NUMBER, Outcome, can_run, make_operators, run_operator
from .writing import write

__all__ = ["run"]

_DIRECT = {
    *("dataset_path", "export_path", "export_type", "suffixes", "process", "np", "project_name"),
    *("text_keys", "image_key", "image_bytes_key", "audio_key", "video_key", "executor_type"),
    *("keep_stats_in_res_ds", "keep_hashes_in_res_ds", "skip_op_error", "turbo", "open_monitor"),
    *("use_cache", "work_dir"),
}
"""Keys of a configuration that a direct run heeds, or that change no row."""

_NO_TEXT = "(no text)"
"""What stands for the reader, which leaves rows without a text out."""

_BESIDES = 3
"""Steps of a run that are no operators: copying, which the server tells, reading and writing."""

_CHARACTERS = 160
"""Of a text that is shown."""


def run(message: dict[str, Any], call: Call) -> dict[str, Any]:
    """Runs the recipe that a message holds.

    Args:
        message: `config` as Data-Juicer's, with absolute paths; `directory` for what is kept on the
            way; `sample`, how many rows are shown of each kind; `limit`, how many are read, or
            None.
        call: Hears how far it is.

    Raises:
        RecipeError: If the recipe or its data is wrong.
        OperatorError: If an operator fails.
        CancelledError: If nobody waits for it any more.
    """
    config: dict[str, Any] = message["config"]
    directory = Path(message["directory"])
    operators = None
    if config.keys() <= _DIRECT:
        operators = make_operators(config["process"], _common(config))
    if operators is None or not all(map(can_run, operators)):
        return run_program(config, directory, call)
    call.report(1, len(operators) + _BESIDES, "Reading")
    names = [next(iter(each)) for each in config["process"]]
    source = read(
        config["dataset_path"],
        str(directory / "cache"),
        config.get("suffixes"),
        add_suffix="suffix_filter" in names,
    )
    return _run(config, operators, _limited(source, message["limit"]), message["sample"], call)


def _run(
    config: dict[str, Any], operators: list[Any], source: Read, sample: int, call: Call
) -> dict[str, Any]:
    texts = _texts(source.columns, config)
    columns = {**source.columns, NUMBER: list(range(rows_of(source.columns)))}
    steps: list[dict[str, Any]] = []
    gone: dict[int, str] = {}
    columns = _with_text(columns, config, steps, gone)
    for done, operator in enumerate(operators, 2):
        name = operator._name
        call.report(done, len(operators) + _BESIDES, f"{name}: {rows_of(columns)} rows")
        before = rows_of(columns)
        outcome = run_operator(operator, columns, call)
        columns = outcome.columns
        steps.append(_step(name, before, outcome))
        gone.update(dict.fromkeys(outcome.dropped, name))
    call.report(len(operators) + 2, len(operators) + _BESIDES, "Writing")
    numbers = columns.pop(NUMBER)
    write(columns, source.features, config)
    return {
        "engine": "direct",
        "rows_in": rows_of(source.columns),
        "rows_out": len(numbers),
        "steps": steps,
        "kept": [_shown(number, texts) for number in _first(numbers, sample)],
        "dropped": [
            {**_shown(number, texts), "operator": gone[number]} for number in _spread(gone, sample)
        ],
    }


def _common(config: dict[str, Any]) -> dict[str, Any]:
    """What every operator is told that does not say otherwise, as Data-Juicer does."""
    keys = {"image_key": "images", "image_bytes_key": "image_bytes"} | {
        "audio_key": "audios",
        "video_key": "videos",
        "turbo": False,
        "skip_op_error": True,
    }
    return {
        "text_key": _text_keys(config)[0],
        "work_dir": str(Path(config["export_path"]).parent),
        **{key: config.get(key, default) for key, default in keys.items()},
    }


def _text_keys(config: dict[str, Any]) -> list[str]:
    keys = config.get("text_keys") or ["text"]
    return [keys] if isinstance(keys, str) else list(keys)


def _limited(source: Read, limit: int | None) -> Read:
    if limit is None:
        return source
    columns = {name: values[:limit] for name, values in source.columns.items()}
    return Read(columns, source.features)


def _with_text(
    columns: Columns, config: dict[str, Any], steps: list[dict[str, Any]], gone: dict[int, str]
) -> Columns:
    """The rows that have each of their texts; Data-Juicer reads no others.

    Raises:
        RecipeError: If there is no such column.
    """
    from .failures import RecipeError

    keys = _text_keys(config)
    for key in keys:
        if key not in columns:
            known = ", ".join(repr(name) for name in columns if name != NUMBER)
            raise RecipeError(f"text_keys: the rows have no field {key!r}; they have {known}.")
    before = rows_of(columns)
    keep = [all(columns[key][at] is not None for key in keys) for at in range(before)]
    if all(keep):
        return columns
    outcome = Outcome(
        {
            name: [value for value, kept in zip(values, keep, strict=True) if kept]
            for name, values in columns.items()
        }
    )
    outcome.dropped = [
        number for number, kept in zip(columns[NUMBER], keep, strict=True) if not kept
    ]
    steps.append(_step(_NO_TEXT, before, outcome))
    gone.update(dict.fromkeys(outcome.dropped, _NO_TEXT))
    return outcome.columns


def _step(name: str, before: int, outcome: Outcome) -> dict[str, Any]:
    return {
        "operator": name,
        "rows_in": before,
        "rows_out": rows_of(outcome.columns),
        "seconds": round(outcome.seconds, 3),
        "failed": outcome.failed,
        "errors": outcome.errors,
    }


def _texts(columns: Columns, config: dict[str, Any]) -> list[Any]:
    """The text of each row as it was read."""
    return list(columns.get(_text_keys(config)[0], []))


def _shown(number: int, texts: list[Any]) -> dict[str, Any]:
    text = texts[number]
    return {"row": number + 1, "text": "" if text is None else str(text)[:_CHARACTERS]}


def _first(numbers: list[int], sample: int) -> list[int]:
    return list(dict.fromkeys(numbers[: sample * 2]))[:sample]


def _spread(gone: dict[int, str], sample: int) -> list[int]:
    """The first rows that each operator dropped, as many of each."""
    share = max(sample // max(len(set(gone.values())), 1), 1)
    taken: Counter[str] = Counter()
    shown = []
    for number, operator in sorted(gone.items()):
        taken[operator] += 1
        if taken[operator] <= share:
            shown.append(number)
    return shown[:sample]
