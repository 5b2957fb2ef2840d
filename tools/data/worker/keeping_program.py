"""What `dj-process` keeps between two operators, and how it goes on from there.

Its own checkpoints (`use_checkpoint`) are not written when the process is killed.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from .keeping import Keeper

GOES_ON = "toolcrib goes on from what was kept"

_KEPT = re.compile(r"toolcrib kept the rows after (\d+) operators")

_BATCH = 1_000  # rows that are written at once

# Keys of recipes whose operators have to be run as a whole.
_WHOLE = ("op_fusion", "open_insight_mining", "adaptive_batch_size", "use_checkpoint")


def can_keep(config: dict[str, Any]) -> bool:
    """Returns whether a recipe can go on after an operator of its."""
    on_cluster = config.get("executor_type", "default") != "default"
    return not on_cluster and not any(config.get(key) for key in _WHOLE)


def kept_by(line: str) -> int | None:
    """Returns after how many operators it has kept the rows, where a line of its says so."""
    found = _KEPT.search(line)
    return None if found is None else int(found[1])


def keep_between(directory: str, after: float | None, rows: str | None, done: int) -> None:
    """Has Data-Juicer keep in a directory what its operators leave, in this process.

    It is kept after so many seconds of work (None keeps nothing). `rows` is the file that an
    earlier run has kept after `done` operators, or None.
    """
    from data_juicer.core.data import NestedDataset
    from data_juicer.core.data.dataset_builder import DatasetBuilder
    from loguru import logger

    keeper = Keeper(Path(directory), after)
    load, process = DatasetBuilder.load_dataset, NestedDataset.process
    left = 0

    def load_kept(builder: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal left
        found = None if rows is None else _dataset(rows)
        if found is None:
            return load(builder, *arguments, **options)
        left = done
        logger.info(GOES_ON)
        return found

    def process_each(dataset: Any, operators: list[Any], **options: Any) -> Any:
        for number, operator in enumerate(operators[left:], left + 1):
            # In the directory of its work it sums up what happened, once in the end.
            more = options if number == len(operators) else {**options, "work_dir": None}
            dataset = process(dataset, [operator], **more)
            if keeper.keep_rows(number, partial(_write, dataset)):
                logger.info(f"toolcrib kept the rows after {number} operators")
        return dataset

    DatasetBuilder.load_dataset, NestedDataset.process = load_kept, process_each


def _dataset(rows: str) -> Any:
    """The rows of a file; None where they cannot be read."""
    import datasets
    from data_juicer.core.data import NestedDataset

    try:
        return NestedDataset(datasets.Dataset.from_file(rows))
    except Exception:  # noqa: BLE001  # whatever is wrong with it, it begins anew
        return None


def _write(dataset: Any, path: Path) -> None:
    import datasets
    import pyarrow as pa

    schema = dataset.features.arrow_schema  # with what `datasets` knows of the types
    tables = datasets.Dataset.with_format(dataset, "arrow")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for start in range(0, len(dataset), _BATCH):
            table = datasets.Dataset.__getitem__(tables, slice(start, start + _BATCH))
            stream.write_table(table.cast(schema))
