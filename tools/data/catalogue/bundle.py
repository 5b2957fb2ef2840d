"""The catalogue and the index that come with the product, read on first use."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a start needs neither
    from tools.data.catalogue.catalogue import Catalogue
    from tools.data.catalogue.search import Index


@cache
def bundled() -> Catalogue:
    """The catalogue of the release that is pinned."""
    from tools.data.catalogue.catalogue import Catalogue

    return Catalogue(_text("operators.jsonl").splitlines(), _text("release.json"))


@cache
def bundled_index() -> Index:
    """The index of its operators."""
    from tools.data.catalogue.search import Index

    return Index(list(bundled().operators.values()), **json.loads(_text("terms.json")))


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
