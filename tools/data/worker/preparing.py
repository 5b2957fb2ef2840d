"""Loads Data-Juicer, which here installs nothing; nothing of it is changed on the disk."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from .failures import MissingPackageError


def prepare() -> None:
    """Loads what recipes need, so that the first is as fast as the next."""
    switch_off()
    read_in_order()
    write_json_whole()
    import datasets

    for module in ("core.data", "core.exporter", "core.preflight", "format.load"):
        import_module(f"data_juicer.{module}")
    from loguru import logger

    logger.remove()  # it says much at each step
    datasets.disable_progress_bars()
    datasets.disable_caching()


def switch_off() -> None:
    """Loads the operators, and switches off what does not belong here."""
    from data_juicer.utils.lazy_loader import LazyLoader

    LazyLoader._install_package = classmethod(_refuse)
    from data_juicer.ops import base_op

    if find_spec("torch") is None:  # whose memory it would free after each operator
        base_op.free_models = _free_nothing


def read_in_order() -> None:
    """Has the files of a directory read in the order of their names, not in that of the disk."""
    from data_juicer.format import formatter

    find = formatter.find_files_with_suffix

    def find_in_order(*arguments: Any, **options: Any) -> dict[str, list[str]]:
        found = find(*arguments, **options)
        return {suffix: sorted(found[suffix]) for suffix in sorted(found)}

    formatter.find_files_with_suffix = find_in_order


def write_json_whole() -> None:
    """Has an array of JSON written in one batch; else none of more than 1,000 rows is written."""
    from data_juicer.core.exporter import Exporter

    Exporter.to_json = staticmethod(_to_json)


def _to_json(dataset: Any, export_path: str, **_options: object) -> None:
    rows = max(len(dataset), 1)
    dataset.to_json(export_path, force_ascii=False, lines=False, batch_size=rows)


def _refuse(_loader: type, package: str, _options: object = None) -> NoReturn:
    raise MissingPackageError(package)


def _free_nothing(clear_model_zoo: bool = True) -> None:  # its signature
    del clear_model_zoo
