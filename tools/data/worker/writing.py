"""Writes rows as Data-Juicer does, with the types that their columns had."""

from __future__ import annotations

from typing import Any

from .reading import Columns


def write(columns: Columns, features: Any, config: dict[str, Any]) -> None:
    """Writes the rows to the recipe's `export_path`, without what was computed on the way.

    Args:
        columns: The rows.
        features: The types of the columns that were read.
        config: The recipe.
    """
    from data_juicer.core.data import NestedDataset
    from data_juicer.core.exporter import Exporter
    from data_juicer.utils.constant import Fields, HashKeys

    own = set()
    if not config.get("keep_stats_in_res_ds"):
        own |= {Fields.stats, Fields.meta}
    if not config.get("keep_hashes_in_res_ds"):
        own |= {HashKeys.hash, HashKeys.minhash, HashKeys.simhash}
        own |= {HashKeys.imagehash, HashKeys.videohash}
    kept = {name: values for name, values in columns.items() if name not in own}
    exporter = Exporter(
        config["export_path"],
        config.get("export_type"),
        export_stats=False,
        keep_stats_in_res_ds=True,
        keep_hashes_in_res_ds=True,
    )
    exporter.export(NestedDataset(_table(kept, features)))


def _table(columns: Columns, features: Any) -> Any:
    import datasets
    import pyarrow as pa

    schema = features.arrow_schema
    arrays = {}
    for name, values in columns.items():
        index = schema.get_field_index(name)
        try:
            arrays[name] = pa.array(values, type=schema.field(index).type if index >= 0 else None)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # an operator made something else of it
            arrays[name] = pa.array(values)
    return datasets.Dataset(pa.table(arrays))
