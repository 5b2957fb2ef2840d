"""Runs a recipe: by calling its operators directly, or where it needs more by `dj-process`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .channel import Call
from .course import Course, broken_step, text_keys
from .entries import SEPARATORS, SKIPS_ROWS
from .failures import RecipeError
from .keeping import Keeper, Kept, kept_in
from .media import Media, files_in
from .program import run_program
from .reading import JSONL, Read, fitting_rows, named, read, rows_of
from .steps import can_run, make_operators, run_operator

_DIRECT = {
    *("dataset_path", "export_path", "export_type", "suffixes", "process", "np", "project_name"),
    *("text_keys", "image_key", "image_bytes_key", "audio_key", "video_key", "executor_type"),
    *("keep_stats_in_res_ds", "keep_hashes_in_res_ds", "skip_op_error", "turbo", "open_monitor"),
    *("use_cache", "work_dir", "load_jsonl_lenient"),
}
"""Keys of a configuration that a direct run heeds, or that change no row."""

_LENIENT = "load_dataset_kwargs"
"""A key that a direct run heeds where it is `SKIPS_ROWS`, for a table."""

_BESIDES = 3
"""Steps of a run that are no operators: copying, which the server tells, reading and writing."""


def run(message: dict[str, Any], call: Call) -> dict[str, Any]:
    """Runs the recipe that a message holds.

    Args:
        message: `config` as Data-Juicer's, with absolute paths; `directory` for what is kept on the
            way; `sample`, how many rows are shown of each kind; `limit`, how many are read, or
            None; `keep_after`, the seconds of work that are worth keeping, or None; `kept`, where
            that is what an earlier run has left, or None.
        call: Hears how far it is.

    Raises:
        RecipeError: If the recipe or its data is wrong.
        OperatorError: If an operator fails.
        CancelledError: If nobody waits for it any more.
    """
    config: dict[str, Any] = message["config"]
    directory = Path(message["directory"])
    keeper = Keeper(directory / "kept", message["keep_after"])
    kept = kept_in(message["kept"])
    operators = _operators(config)
    if operators is None:
        return _run_program(config, directory, keeper, kept, call)
    call.report(1, len(operators) + _BESIDES, "Reading")
    source = _source(message)
    media = Media(message.get("files") or {}, directory, Path(config["export_path"]))
    source.columns = media.place(source.columns, config)
    course = Course(config, source)
    went_on = course.go_on(kept)
    _operate(course, operators, keeper, call)
    call.report(len(operators) + 2, len(operators) + _BESIDES, "Writing")
    course.columns = media.told(course.columns)
    answer = course.written(message["sample"])
    return {**answer, "went_on_after": kept.last} if kept and went_on else answer


def name_files(message: dict[str, Any], _call: Call) -> dict[str, Any]:
    """Returns the files that rows name which a recipe reads.

    Args:
        message: As for `run`, and `most`, of how many it is to know.

    Raises:
        RecipeError: If the recipe or its data is wrong, or needs `dj-process`, which is given none.
        OperatorError: If an operator cannot be made.
    """
    if _operators(message["config"]) is None:
        raise RecipeError(
            "Files that rows name are read only where each operator is called directly, and this"
            " recipe needs dj-process: it has several sources, a key besides the usual, or an"
            " operator that groups, aggregates, needs a GPU or is your own.",
            "Leave that out.",
        )
    files = files_in(_source(message).columns, message["config"])
    return {"files": files[: message["most"]]}


def _operators(config: dict[str, Any]) -> list[Any] | None:
    """The operators, where they can be called directly; None where `dj-process` is needed.

    Raises:
        RecipeError: If one is unknown, or has wrong parameters.
        OperatorError: If one cannot be made.
    """
    is_here = config.get("executor_type", "default") == "default"
    if not (is_here and config.keys() <= _DIRECT | {_LENIENT} and _is_read_here(config)):
        return None
    operators = make_operators(config["process"], _common(config))
    return operators if all(map(can_run, operators)) else None


def _source(message: dict[str, Any]) -> Read:
    """The rows that are read."""
    config: dict[str, Any] = message["config"]
    names = [next(iter(each)) for each in config["process"]]
    source = read(
        config["dataset_path"],
        str(Path(message["directory"]) / "cache"),
        config.get("suffixes"),
        add_suffix="suffix_filter" in names,
        lenient=_is_lenient(config),
    )
    return source.first(message["limit"])


def _is_read_here(config: dict[str, Any]) -> bool:
    """Whether lines that hold no row, where they are to be left out, can be found here."""
    path = Path(config["dataset_path"])
    is_compressed = JSONL in path.suffixes[:-1]
    if (options := config.get(_LENIENT)) and (
        options != SKIPS_ROWS or path.suffix not in SEPARATORS
    ):
        return False
    return not config.get("load_jsonl_lenient") or (path.is_file() and not is_compressed)


def _is_lenient(config: dict[str, Any]) -> bool:
    """Whether what holds no row is left out, of a data set of this form."""
    if Path(config["dataset_path"]).suffix in SEPARATORS:
        return dict(config.get(_LENIENT) or {}).items() >= SKIPS_ROWS.items()
    return bool(config.get("load_jsonl_lenient"))


def _run_program(
    config: dict[str, Any], directory: Path, keeper: Keeper, kept: Kept | None, call: Call
) -> dict[str, Any]:
    path = config.get("dataset_path")
    if path is None:
        return run_program(config, directory, keeper, kept, call)
    copied = fitting_rows(Path(path), directory, lenient=_is_lenient(config))
    if copied is not None:
        config = {**config, "dataset_path": str(copied[0])}
    try:
        answer = run_program(config, directory, keeper, kept, call)
    except RecipeError as error:
        if config.get("load_jsonl_lenient"):
            raise
        raise named(error, Path(path)) from error
    if copied is None:
        return answer
    _, numbers, broken = copied
    step = broken_step(broken, len(numbers))
    return {**answer, "rows_in": step["rows_in"], "steps": [step, *answer["steps"]]}


def _operate(course: Course, operators: list[Any], keeper: Keeper, call: Call) -> None:
    """Runs the operators that have not run."""
    for operator in operators[course.done :]:
        name = operator._name
        message = f"{name}: {rows_of(course.columns)} rows"
        call.report(course.done + 2, len(operators) + _BESIDES, message)
        course.take(name, run_operator(operator, course.columns, call))
        keeper.keep(course.columns, course.told)


def _common(config: dict[str, Any]) -> dict[str, Any]:
    """What every operator is told that does not say otherwise, as Data-Juicer does."""
    keys = {"image_key": "images", "image_bytes_key": "image_bytes"} | {
        "audio_key": "audios",
        "video_key": "videos",
        "turbo": False,
        "skip_op_error": True,
    }
    return {
        "text_key": text_keys(config)[0],
        "work_dir": str(Path(config["export_path"]).parent),
        **{key: config.get(key, default) for key, default in keys.items()},
    }
