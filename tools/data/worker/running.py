"""Runs a recipe: by calling its operators directly, or where it needs more by `dj-process`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .entries import SKIPS_ROWS
from .failures import RecipeError
from .keeping import Keeper, Kept, kept_in
from .media import Media, files_in
from .program import Report, run_program
from .reading import NUMBER, Columns, Source, compress_rows, read, rows_of, table_source
from .steps import (
    NO_TEXT,
    UNREADABLE,
    Outcome,
    as_step,
    can_run,
    load_own_operators,
    make_operators,
    run_operator,
)
from .texts import fields_of, joined, text_keys_of
from .writing import Changes, array_of, write

_DIRECT = {
    *("dataset_path", "export_path", "export_type", "suffixes", "process", "np", "project_name"),
    *("text_keys", "image_key", "image_bytes_key", "audio_key", "video_key", "executor_type"),
    *("keep_stats_in_res_ds", "keep_hashes_in_res_ds", "skip_op_error", "turbo", "open_monitor"),
    *("use_cache", "work_dir", "load_jsonl_lenient", "load_dataset_kwargs"),
    "custom_operator_paths",
}
"""Keys of a configuration that a direct run heeds, or that change no row."""

_OF_OPERATORS = {
    "image_key": "images",
    "image_bytes_key": "image_bytes",
    "audio_key": "audios",
    "video_key": "videos",
    "turbo": False,
    "skip_op_error": True,
}
"""Keys of a configuration that each operator is given, with Data-Juicer's defaults."""

_BESIDES = 3  # steps that are no operators: copying, which the server reports, reading and writing

_FIRST = 100  # rows that show early whether `dj-process` can read the texts

_CHARACTERS = 160  # of a text that are shown


def run(message: dict[str, Any], report: Report) -> dict[str, Any]:
    """Runs the recipe that a message holds.

    Args:
        message: `config` as Data-Juicer's, with absolute paths; `directory` for what is kept on the
            way; `sample`, how many rows are shown of each kind; `limit`, how many are read, or
            None; `keep_after`, the seconds of work that are worth keeping, or None; `kept`, where
            an earlier run has left what it did, or None.
        report: Takes progress: how much is done, of how much, and what.
    """
    config, directory = message["config"], Path(message["directory"])
    keeper = Keeper(directory / "kept", message["keep_after"])
    if not _is_read_here(config):
        return run_program(config, directory, report)
    operators = _direct_operators(config)
    total = len(config["process"]) + _BESIDES
    report(1, total, "Reading")
    if operators is None:
        _check_texts(read(config, directory, _FIRST), config)
    source = read(config, directory, message["limit"])
    if operators is None:
        return _run_program(config, source, directory, report)
    progress = Progress(config, source)
    kept = kept_in(message["kept"])
    went_on = {"went_on_after": kept.last} if kept and progress.resume(kept) else {}
    media = Media(message.get("files") or {}, directory, Path(config["export_path"]))
    progress.columns = media.place(progress.columns, config)
    for operator in operators[progress.done :]:
        report(progress.done + 2, total, f"{operator._name}: {rows_of(progress.columns)} rows")
        progress.take(run_operator(operator, progress.columns))
        if keeper.is_due:
            changes = progress.changes
            changed = {**changes.values, NUMBER: progress.columns[NUMBER]}
            keeper.keep(changed, progress.summary(changes))
    report(total - 1, total, "Writing")
    progress.columns = media.restore(progress.columns)
    return {**progress.write(message["sample"]), **went_on}


def name_files(message: dict[str, Any]) -> dict[str, Any]:
    """Returns the files that rows name which a recipe reads."""
    config = message["config"]
    if _direct_operators(config) is None:
        raise RecipeError(
            "Files that rows name are read only where each operator is called directly, and this"
            " recipe needs dj-process: it has several sources, a key besides the usual, or an"
            " operator that groups, aggregates or needs a GPU.",
            "Leave that out.",
        )
    source = read(config, Path(message["directory"]), message["limit"])
    return {"files": files_in(source.columns, config)[: message["most"]]}


def _direct_operators(config: dict[str, Any]) -> list[Any] | None:
    """Returns the operators; None where they cannot be called directly, but by `dj-process`."""
    if not (config.keys() <= _DIRECT and _is_read_here(config)):
        return None
    if own := config.get("custom_operator_paths"):
        load_own_operators(own)
    common = {
        "text_key": text_keys_of(config)[0],
        "work_dir": str(Path(config["export_path"]).parent),
        **{key: config.get(key, default) for key, default in _OF_OPERATORS.items()},
    }
    operators = make_operators(config["process"], common)
    return operators if all(map(can_run, operators)) else None


def _is_read_here(config: dict[str, Any]) -> bool:
    """Returns whether there is one place of data, and no option of Data-Juicer's readers.

    A cluster reads by itself: its data may not fit in memory here.
    """
    is_here = config.get("executor_type", "default") == "default" and "dataset_path" in config
    return is_here and config.get("load_dataset_kwargs") in (None, SKIPS_ROWS)


class Progress:
    """The state of a run: the rows that are left, and where the others went."""

    def __init__(self, config: dict[str, Any], source: Source) -> None:
        from data_juicer.utils.constant import Fields

        self._config = config
        self._source = source
        self.steps: list[dict[str, Any]] = []
        self.gone = dict.fromkeys(source.broken, UNREADABLE)
        self.done = 0
        self.rows_in = len(source.numbers) + len(source.broken)
        if broken := list(source.broken.values()):
            rows, many = len(source.numbers), len(broken)
            step = as_step(UNREADABLE, self.rows_in, rows, failed=many, errors=broken)
            self.steps.append(step)
        names = [name for step in config["process"] for name in step]
        self._seen = [
            name
            for name in source.columns
            # Filters would take what an earlier run computed for their own.
            if name != Fields.stats or not any(each.endswith("_filter") for each in names)
        ]
        columns = {name: source.copy(name, source.numbers) for name in self._seen}
        self.columns = self._with_text({**columns, NUMBER: list(source.numbers)})

    @property
    def changes(self) -> Changes:
        """Returns the differences to the rows as they were read."""
        columns = {name: values for name, values in self.columns.items() if name != NUMBER}
        changes = Changes(self._source, columns, self.columns[NUMBER])
        changes.gone = [name for name in changes.gone if name in self._seen]
        return changes

    def resume(self, kept: Kept) -> bool:
        """Continues after what an earlier run has kept; returns whether it is of these rows."""
        numbers = kept.columns.get(NUMBER, [None])
        if not {*self._source.numbers, *self._source.broken}.issuperset([*numbers, *kept.gone]):
            return False
        carried = [name for name in self._seen if name not in kept.removed]
        copies = {name: self._source.copy(name, numbers) for name in carried}
        self.columns = {**copies, **kept.columns}
        self.done, self.steps, self.gone = kept.done, kept.steps, kept.gone
        return True

    def take(self, outcome: Outcome) -> None:
        """Takes what an operator has left."""
        self.steps.append(outcome.step)
        self.gone.update(dict.fromkeys(outcome.dropped, outcome.step["operator"]))
        self.columns = outcome.columns
        self.done += 1

    def summary(self, changes: Changes) -> dict[str, Any]:
        """Returns what another run has to know of the operators before."""
        gone: dict[str, list[int]] = {}
        for number, name in self.gone.items():
            gone.setdefault(name, []).append(number)
        return {"done": self.done, "steps": self.steps, "gone": gone, "removed": changes.gone}

    def write(self, sample: int) -> dict[str, Any]:
        """Writes the result, and returns the report of the run with some of its rows."""
        changes, numbers = self.changes, self.columns[NUMBER]
        kept = [
            self._row(number, self.columns, numbers.index(number))
            for number in list(dict.fromkeys(numbers[: sample * 2]))[:sample]
        ]
        dropped = [
            {
                **self._row(number, self._source.columns, self._source.index.get(number, 0)),
                "operator": self.gone[number],
            }
            for number in _spread(self.gone, sample)
        ]
        write(changes, self._config)
        return {
            "engine": "direct",
            "rows_in": self.rows_in,
            "rows_out": len(numbers),
            "steps": self.steps,
            "kept": kept,
            "dropped": dropped,
        }

    def _row(self, number: int, columns: Columns, at: int) -> dict[str, Any]:
        if number in self._source.broken:
            text = self._source.broken[number].text
        else:
            fields = fields_of(text_keys_of(self._config)[0], columns) or []
            text = joined([columns[name][at] for name in fields])
        return {"row": number + 1, "text": text[:_CHARACTERS]}

    def _with_text(self, columns: Columns) -> Columns:
        """Returns the rows that have each of their texts; Data-Juicer reads no others."""
        keep = [True] * rows_of(columns)
        for key in text_keys_of(self._config):
            fields = fields_of(key, columns)
            if fields is None:
                known = ", ".join(repr(name) for name in columns if name != NUMBER)
                raise RecipeError(
                    f"text_keys: the rows have no field {key!r}; they have {known}.",
                    "Name one of these fields.",
                )
            for row, values in enumerate(zip(*(columns[name] for name in fields), strict=True)):
                keep[row] = keep[row] and any(value is not None for value in values)
        if all(keep):
            return columns
        self.steps.append(as_step(NO_TEXT, len(keep), sum(keep)))
        numbers = zip(columns[NUMBER], keep, strict=True)
        self.gone.update((number, NO_TEXT) for number, kept in numbers if not kept)
        return compress_rows(columns, keep)


def _spread(gone: dict[int, str], sample: int) -> list[int]:
    """Returns the first rows that each operator dropped, as many of each."""
    share = max(sample // max(len(set(gone.values())), 1), 1)
    taken: Counter[str] = Counter()
    shown = []
    for number, operator in sorted(gone.items()):
        taken[operator] += 1
        if taken[operator] <= share:
            shown.append(number)
    return shown[:sample]


def _check_texts(source: Source, config: dict[str, Any]) -> None:
    """Raises unless each text key names one field of texts, as `dj-process` needs it."""
    for key in text_keys_of(config):
        fields = fields_of(key, source.columns) or []
        values = (value for name in fields for value in source.columns[name])
        others = {type(value).__name__ for value in values} - {"str", "NoneType"}
        if len(fields) > 1 or others:
            why = "names several fields" if len(fields) > 1 else f"holds also {min(others)} values"
            raise RecipeError(
                "This recipe needs dj-process, which reads the texts of one field, and text key"
                f" {key!r} {why}.",
                "Leave out what needs dj-process, or name one field of texts.",
            )


def _run_program(
    config: dict[str, Any], source: Source, directory: Path, report: Report
) -> dict[str, Any]:
    """Has `dj-process` run a recipe on rows that were read here, and are written here.

    It reads Parquet, so that it infers no types, and each row keeps its number.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_texts(source, config)
    progress = Progress(config, source)
    given = {name: array_of(values) for name, values in progress.columns.items()}
    rows, made = directory / "rows.parquet", directory / "made.parquet"
    pq.write_table(pa.table(given), rows)
    is_whole = not config.get("export_shard_size")
    changed = {"dataset_path": str(rows)}
    if is_whole:
        changed |= {"export_path": str(made), "export_type": "parquet"}
    done_here = {"suffixes", "load_jsonl_lenient", "load_dataset_kwargs"}
    left = {key: config[key] for key in config if key not in done_here and config[key] is not None}
    answer = run_program({**left, **changed}, directory, report)
    if is_whole:
        write(_changes_of(pq.ParquetFile(made).read(), source, given), config)
    return {**answer, "rows_in": progress.rows_in, "steps": [*progress.steps, *answer["steps"]]}


def _changes_of(made: Any, source: Source, given: dict[str, Any]) -> Changes:
    """Returns what `dj-process` has made of rows; those without numbers are new."""
    from data_juicer.utils.constant import Fields

    numbers = made[NUMBER].to_pylist() if NUMBER in made.column_names else []
    columns = {name: made[name].to_pylist() for name in made.column_names if name != NUMBER}
    for name in {Fields.stats, Fields.meta} & (columns.keys() - given.keys()):
        # It computes them as texts of JSON.
        values = columns[name]
        columns[name] = [json.loads(each) if isinstance(each, str) else each for each in values]
    if not all(isinstance(number, int) for number in numbers) or len(numbers) < made.num_rows:
        source = table_source(made.select(list(columns)))
        return Changes(source, columns, source.numbers)
    places = {number: at for at, number in enumerate(given[NUMBER].to_pylist())}
    for name in given.keys() & columns.keys():
        before, own = given[name].to_pylist(), source.pick(name, numbers)
        columns[name] = [
            read if value == before[places[number]] else value
            for number, value, read in zip(numbers, columns[name], own, strict=True)
        ]
    hidden = {name: source.pick(name, numbers) for name in source.columns.keys() - given.keys()}
    return Changes(source, {**hidden, **columns}, numbers)
