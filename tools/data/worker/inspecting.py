"""Looks at files that only Data-Juicer's environment can read."""

from __future__ import annotations

from typing import Any

from .agreed import AGAIN
from .channel import Call
from .failures import UnreadableError


def look(message: dict[str, Any], call: Call) -> dict[str, Any]:
    """Reads the first rows of a Parquet file.

    Args:
        message: `path`, `source`, what the user calls it, and `sample`, how many rows.
        call: Is told when nobody waits any more.

    Raises:
        UnreadableError: If it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    call.check()
    try:
        file = pq.ParquetFile(message["path"])
        batch = next(file.iter_batches(batch_size=message["sample"]), None)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(str(error), AGAIN) from error
    rows = [] if batch is None else batch.to_pylist()
    return {
        "rows": file.metadata.num_rows,
        "sample": [{name: _shown(value) for name, value in row.items()} for row in rows],
        "types": {field.name: str(field.type) for field in file.schema_arrow},
    }


def _shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
