"""The catalogue's part of the record, put together."""

from __future__ import annotations

from storage.catalog.analyses import Analyses
from storage.catalog.created_tools import CreatedToolStore
from storage.catalog.listings import Listings
from storage.catalog.pins import Pins
from storage.catalog.records import Records
from storage.catalog.uses import Uses
from storage.database import Database


class Catalog:
    """What is kept about tools.

    Args:
        database: The record.

    Attributes:
        analyses: What was made of the tools' texts.
        created: The tools that agents have written.
        records: The tools that files describe.
        listings: What upstream servers offered.
        uses: Which tool served which question.
        pins: The definitions of upstream tools that were accepted.
    """

    def __init__(self, database: Database) -> None:
        self.analyses = Analyses(database)
        self.created = CreatedToolStore(database)
        self.records = Records(database)
        self.listings = Listings(database)
        self.uses = Uses(database)
        self.pins = Pins(database)
