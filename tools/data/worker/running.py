"""Runs a recipe: by calling its operators directly, or where it needs more by `dj-process`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .channel import Call
from .course import Course, text_keys
from .entries import SEPARATORS, SKIPS_ROWS, form_of
from .failures import RecipeError
from .keeping import Keeper, Kept, kept_in
from .media import Media, files_in
from .program import run_program
from .reading import Columns, Source, Table, read, rows_of
from .steps import NUMBER, can_run, make_operators, run_operator
from .texts import JOIN
from .writing import Changes, array_of, write

_DIRECT = {
    *("dataset_path", "export_path", "export_type", "suffixes", "process", "np", "project_name"),
    *("text_keys", "image_key", "image_bytes_key", "audio_key", "video_key", "executor_type"),
    *("keep_stats_in_res_ds", "keep_hashes_in_res_ds", "skip_op_error", "turbo", "open_monitor"),
    *("use_cache", "work_dir", "load_jsonl_lenient", "load_dataset_kwargs"),
}
"""Keys of a configuration that a direct run heeds, or that change no row."""

_BESIDES = 3
"""Steps of a run that are no operators: copying, which the server tells, reading and writing."""


def run(message: dict[str, Any], call: Call) -> dict[str, Any]:
    """Runs the recipe that a message holds.

    Args:
        message: `config` as Data-Juicer's, with absolute paths; `directory` for what is kept on the
            way; `sample`, how many rows are shown of each kind; `limit`, how many are read, or
            None; `keep_after`, the seconds of work that are worth keeping, or None; `kept`, where
            an earlier run has left what it did, or None.
        call: Hears how far it is.
    """
    config: dict[str, Any] = message["config"]
    directory = Path(message["directory"])
    keeper = Keeper(directory / "kept", message["keep_after"])
    kept = kept_in(message["kept"])
    operators = _operators(config)
    total = len(config["process"]) + _BESIDES
    if not _is_read_here(config):
        return run_program(config, directory, keeper, kept, call)
    call.report(1, total, "Reading")
    source = read(config, directory, message["limit"], lenient=_is_lenient(config))
    if operators is None:
        return _run_program(config, source, directory, (keeper, kept), call)
    media = Media(message.get("files") or {}, directory, Path(config["export_path"]))
    course = Course(config, source)
    went_on = course.resume(kept)
    course.columns = media.place(course.columns, config)
    _operate(course, operators, keeper, call)
    call.report(len(operators) + 2, total, "Writing")
    answer = course.write(message["sample"], media.told(course.columns))
    return {**answer, "went_on_after": kept.last} if kept and went_on else answer


def name_files(message: dict[str, Any], _call: Call) -> dict[str, Any]:
    """Returns the files that rows name which a recipe reads."""
    if _operators(message["config"]) is None:
        raise RecipeError(
            "Files that rows name are read only where each operator is called directly, and this"
            " recipe needs dj-process: it has several sources, a key besides the usual, or an"
            " operator that groups, aggregates, needs a GPU or is your own.",
            "Leave that out.",
        )
    config, directory = message["config"], Path(message["directory"])
    source = read(config, directory, message["limit"], lenient=_is_lenient(config))
    files = files_in(source.columns, config)
    return {"files": files[: message["most"]]}


def _operators(config: dict[str, Any]) -> list[Any] | None:
    """The operators, where they can be called directly; None where `dj-process` is needed."""
    if not (config.keys() <= _DIRECT and _is_read_here(config)):
        return None
    operators = make_operators(config["process"], _common(config))
    return operators if all(map(can_run, operators)) else None


def _is_read_here(config: dict[str, Any]) -> bool:
    """Whether there is one place of data, and no option that only Data-Juicer's readers know.

    A cluster reads by itself: its data may not fit in memory here.
    """
    is_here = config.get("executor_type", "default") == "default" and "dataset_path" in config
    return is_here and config.get("load_dataset_kwargs") in (None, SKIPS_ROWS)


def _is_lenient(config: dict[str, Any]) -> bool:
    """Whether what is not a row is left out, of a data set of this form."""
    if form_of(config["dataset_path"]) in SEPARATORS:
        return config.get("load_dataset_kwargs") == SKIPS_ROWS
    return bool(config.get("load_jsonl_lenient"))


def _run_program(
    config: dict[str, Any],
    source: Source,
    directory: Path,
    keeping: tuple[Keeper, Kept | None],
    call: Call,
) -> dict[str, Any]:
    """Has `dj-process` run a recipe on rows that were read here, and are written here.

    It reads Parquet, so that it infers no types, and each row keeps its number.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if any(JOIN in key and key not in source.columns for key in text_keys(config)):
        raise RecipeError(
            f"text_keys: {', '.join(text_keys(config))} are several fields, and this recipe needs"
            " dj-process, whose operators read one.",
            "Name one field.",
        )
    course = Course(config, source)
    for key in text_keys(config):
        kinds = set(map(type, source.columns.get(key, ()))) - {str, type(None)}
        if kinds:
            raise RecipeError(
                f"text_keys: {key!r} holds other values than texts ({kinds.pop().__name__}), and"
                " this recipe needs dj-process, which reads texts alone.",
                "Leave out what needs dj-process, or name a field of texts.",
            )
    columns = {name: array_of(values) for name, values in course.columns.items()}
    given = directory / "rows.parquet"
    pq.write_table(pa.table(columns), given)
    is_whole = not config.get("export_shard_size")
    made = directory / "made.parquet"
    changed = {"dataset_path": str(given), "suffixes": None, "load_jsonl_lenient": None}
    if is_whole:
        changed |= {"export_path": str(made), "export_type": "parquet"}
    more = {key: value for key, value in {**config, **changed}.items() if value is not None}
    more.pop("load_dataset_kwargs", None)
    answer = run_program(more, directory, *keeping, call)
    if is_whole:
        _write_made(pq.ParquetFile(made).read(), source, columns, config)
    steps = [*course.steps, *answer["steps"]]
    return {**answer, "rows_in": len(source.numbers) + len(source.broken), "steps": steps}


def _write_made(made: Any, source: Source, given: dict[str, Any], config: dict[str, Any]) -> None:
    """Writes what `dj-process` has made; rows that have their numbers still, as they were read."""
    numbers = made[NUMBER].to_pylist() if NUMBER in made.column_names else []
    if not all(isinstance(number, int) for number in numbers) or len(numbers) < made.num_rows:
        names = [name for name in made.column_names if name != NUMBER]
        source = Table(made.select(names), None)
        write(Changes(source, source.columns, source.numbers), config)
        return
    places = {number: at for at, number in enumerate(given[NUMBER].to_pylist())}
    columns: Columns = {}
    for name in (each for each in made.column_names if each != NUMBER):
        values = made[name].to_pylist()
        if name in source.columns:
            before, read_values = given[name].to_pylist(), source.pick(name, numbers)
            values = [
                own if value == before[places[number]] else value
                for number, value, own in zip(numbers, values, read_values, strict=True)
            ]
        columns[name] = values
    write(Changes(source, columns, numbers), config)


def _operate(course: Course, operators: list[Any], keeper: Keeper, call: Call) -> None:
    """Runs the operators that have not run."""
    for operator in operators[course.done :]:
        name = operator._name
        message = f"{name}: {rows_of(course.columns)} rows"
        call.report(course.done + 2, len(operators) + _BESIDES, message)
        course.take(name, run_operator(operator, course.columns, call))
        if keeper.is_due:
            changes = course.changes
            changed = {**changes.values, NUMBER: course.columns[NUMBER]}
            keeper.keep(changed, course.told(changes))


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
