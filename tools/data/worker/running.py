"""Runs a recipe: by calling its operators directly, or where it needs more by `dj-process`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from .channel import Call
from .failures import RecipeError
from .lines import naming_line
from .program import run_program
from .reading import JSONL, UNREADABLE, Columns, Read, read, rows_of
from .steps import MOST_ERRORS, NUMBER, Outcome, can_run, make_operators, run_operator
from .writing import write

__all__ = ["run"]

_DIRECT = {
    *("dataset_path", "export_path", "export_type", "suffixes", "process", "np", "project_name"),
    *("text_keys", "image_key", "image_bytes_key", "audio_key", "video_key", "executor_type"),
    *("keep_stats_in_res_ds", "keep_hashes_in_res_ds", "skip_op_error", "turbo", "open_monitor"),
    *("use_cache", "work_dir", "load_jsonl_lenient"),
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
    names = [next(iter(each)) for each in config["process"]]
    is_here = config.get("executor_type", "default") == "default"
    if is_here and config.keys() <= _DIRECT and _is_read_here(config):
        operators = make_operators(config["process"], _common(config))
    if operators is None or not all(map(can_run, operators)):
        return _run_program(config, directory, call)
    call.report(1, len(operators) + _BESIDES, "Reading")
    source = read(
        config["dataset_path"],
        str(directory / "cache"),
        config.get("suffixes"),
        add_suffix="suffix_filter" in names,
        lenient=bool(config.get("load_jsonl_lenient")),
    )
    return _run(config, operators, source.first(message["limit"]), message["sample"], call)


def _is_read_here(config: dict[str, Any]) -> bool:
    """Whether lines that hold no row, where they are to be left out, can be found here."""
    path = Path(config["dataset_path"])
    is_compressed = JSONL in path.suffixes[:-1]
    return not config.get("load_jsonl_lenient") or (path.is_file() and not is_compressed)


def _run_program(config: dict[str, Any], directory: Path, call: Call) -> dict[str, Any]:
    try:
        return run_program(config, directory, call)
    except RecipeError as error:
        path = config.get("dataset_path", "")
        if config.get("load_jsonl_lenient") or not path.endswith(JSONL):
            raise
        raise naming_line(error, Path(path)) from error


def _run(
    config: dict[str, Any], operators: list[Any], source: Read, sample: int, call: Call
) -> dict[str, Any]:
    texts = _texts(source, config)
    columns = {**source.columns, NUMBER: source.numbers}
    steps: list[dict[str, Any]] = []
    gone = {line.number: UNREADABLE for line in source.broken}
    if source.broken:
        steps.append(_broken_step(source))
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
        "rows_in": len(source.numbers) + len(source.broken),
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


def _with_text(
    columns: Columns, config: dict[str, Any], steps: list[dict[str, Any]], gone: dict[int, str]
) -> Columns:
    """The rows that have each of their texts; Data-Juicer reads no others.

    Raises:
        RecipeError: If there is no such column.
    """
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


def _broken_step(source: Read) -> dict[str, Any]:
    """The lines that were left out, with what was wrong with the first."""
    outcome = Outcome(source.columns)
    outcome.failed = len(source.broken)
    outcome.errors = [
        f"line {each.number + 1}: {each.fault}" for each in source.broken[:MOST_ERRORS]
    ]
    return _step(UNREADABLE, len(source.numbers) + len(source.broken), outcome)


def _texts(source: Read, config: dict[str, Any]) -> dict[int, Any]:
    """The text of each row as it was read, and what could not be read, by their numbers."""
    texts = source.columns.get(_text_keys(config)[0], [])
    return {
        **dict(zip(source.numbers, texts, strict=bool(texts))),
        **{line.number: line.text for line in source.broken},
    }


def _shown(number: int, texts: dict[int, Any]) -> dict[str, Any]:
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
