"""The first pass: an import is found roughly by its meaning before its vectors are made."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity, SearchFilter

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")

TEXTS = {
    "heron": "The grey heron wades through shallow water and spears small fish.",
    "loaf": "Knead the dough, let it rise overnight and bake the bread in a hot oven.",
    "gearbox": "The engine's transmission shifts gears by a hydraulic clutch.",
    "鹭": "苍鹭在浅水中涉水，捕食小鱼。",  # noqa: RUF001  # as it is written
}


def _import(library: Library, world: ModuleType, identity: Identity = ANN) -> None:
    library.importing = True
    for name, text in TEXTS.items():
        library.shelf(identity).add(world.new_document(name, text, title=""))
    library.importing = False


def _rough(library: Library) -> int:
    with library.database.read() as connection:
        return int(connection.execute("SELECT count(*) FROM rough_vectors").fetchone()[0])


def _finds(library: Library, query: str, identity: Identity = ANN) -> list[tuple[str, float]]:
    hits = library.engine.search(identity, query, SearchFilter(), 10).hits
    return [(hit.context.raw_id, hit.dense) for hit in hits if hit.dense is not None]


def test_an_import_is_found_by_its_meaning_before_it_has_vectors(
    library_of: Callable[..., Library], minilm: MiniLMEmbedder, world: ModuleType
) -> None:
    library = library_of(minilm)
    _import(library, world)
    assert library.indexer.step()
    status = library.shelf(ANN).index_status()
    assert (status.total, status.embedded, status.rough) == (4, 0, 3)  # none of the Chinese text
    best, near = _finds(library, "cooking pastry")[0]
    assert best == "loaf"
    assert minilm.floor < near < 1
    assert _finds(library, "cooking pastry", BOB) == []
    world.drain(library)
    status = library.shelf(ANN).index_status()
    assert (status.embedded, status.rough, _rough(library)) == (4, 0, 0)
    assert _finds(library, "cooking pastry")[0][0] == "loaf"


def test_rough_and_own_vectors_stand_in_one_order(
    library_of: Callable[..., Library], minilm: MiniLMEmbedder, world: ModuleType
) -> None:
    library = library_of(minilm)
    _import(library, world)
    library.indexer.step()
    library.shelf(ANN).add(world.new_document("pie", "Roll out the pastry and fill the pie."))
    library.indexer.step()
    status = library.shelf(ANN).index_status()
    assert status.embedded >= 1
    found = [name for name, _ in _finds(library, "recipes for the oven")]
    assert set(found[:2]) == {"loaf", "pie"}


def test_what_is_deleted_or_replaced_leaves_no_rough_vector(
    library: Library, world: ModuleType
) -> None:
    _import(library, world)
    library.indexer.step()
    assert _rough(library) == 3
    library.shelf(ANN).delete_document("text", "heron")
    assert _rough(library) == 2
    library.shelf(ANN).add(world.new_document("loaf", "Something else."))
    assert _rough(library) == 1


def test_a_change_of_the_model_leaves_no_rough_vector(
    library_of: Callable[..., Library], tmp_path: Path, world: ModuleType
) -> None:
    library = library_of(world.HashEmbedder(), tmp_path / "data")
    _import(library, world)
    library.indexer.step()
    library.close()
    again = library_of(world.HashEmbedder("other"), tmp_path / "data")
    world.drain(again)
    status = again.shelf(ANN).index_status()
    assert (status.embedded, status.next_embedded, _rough(again)) == (4, None, 0)


def test_without_the_static_model_an_import_is_embedded_all_the_same(
    library: Library, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, texts: list[str]) -> Any:
        raise StorageUnavailableError("The bundled table is damaged.")

    monkeypatch.setattr("storage.index.embedders.bundled.StaticEmbedder.embed_passages", fail)
    _import(library, world)
    world.drain(library)
    assert library.shelf(ANN).index_status().embedded == 4
