from __future__ import annotations

import time
from contextlib import closing

from storage.catalog.catalog import Listings
from storage.database import Database

OFFERED = {"tools": [{"name": "read", "inputSchema": {}}], "instructions": "Lies zuerst: größe"}


def test_a_listing_is_found_after_a_restart(database: Database) -> None:
    before = time.time()
    Listings(database).put("files", "f1", OFFERED)
    with closing(Database(database.path)) as reopened:
        listing = Listings(reopened).get("files", "f1")
    assert listing is not None
    assert listing.server == "files"
    assert listing.offered == OFFERED
    assert before <= listing.listed_at <= time.time()


def test_a_server_under_other_settings_was_never_asked(database: Database) -> None:
    listings = Listings(database)
    assert listings.get("files", "f1") is None
    listings.put("files", "f1", OFFERED)
    assert listings.get("files", "f2") is None
    assert listings.get("other", "f1") is None


def test_a_server_has_one_listing(database: Database) -> None:
    listings = Listings(database)
    listings.put("files", "f1", OFFERED)
    listings.put("files", "f2", {"tools": []})
    assert listings.get("files", "f1") is None
    listing = listings.get("files", "f2")
    assert listing is not None
    assert listing.offered == {"tools": []}


def test_listings_of_servers_that_are_named_no_more_go(database: Database) -> None:
    listings = Listings(database)
    for name in ("a", "b", "c"):
        listings.put(name, "f", OFFERED)
    listings.keep(["a", "c", "new"])
    assert [name for name in ("a", "b", "c") if listings.get(name, "f")] == ["a", "c"]
    listings.keep([])
    assert listings.get("a", "f") is None
