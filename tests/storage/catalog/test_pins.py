"""Pins of upstream tools in the record."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from storage.catalog.pins import Pins
from storage.database import Database

READ = ("aa", '{"name": "read", "description": "Reads."}')
READ_ALL = ("bb", '{"name": "read", "description": "Reads all."}')


def test_a_pin_is_found_after_a_restart(database: Database) -> None:
    before = time.time()
    Pins(database).trust("files", {"read": READ})
    with closing(Database(database.path)) as reopened:
        pins = Pins(reopened)
        pin = pins.of("files")["read"]
        assert pins.definition("files", "read") == {"name": "read", "description": "Reads."}
    assert (pin.server, pin.tool, pin.sha256, pin.approved) == ("files", "read", "aa", False)
    assert before <= pin.pinned_at <= time.time()


def test_each_server_has_its_own_pins(database: Database) -> None:
    pins = Pins(database)
    pins.trust("files", {"read": READ})
    pins.trust("other", {"read": READ_ALL, "Read": READ})
    assert {tool: pin.sha256 for tool, pin in pins.of("other").items()} == {
        "read": "bb",
        "Read": "aa",
    }
    assert pins.of("files")["read"].sha256 == "aa"
    assert pins.of("none") == {}
    assert pins.definition("files", "none") is None


def test_the_first_definition_stays(database: Database) -> None:
    pins = Pins(database)
    assert pins.trust("files", {"read": READ})["read"].sha256 == "aa"
    assert pins.trust("files", {"read": READ_ALL})["read"].sha256 == "aa"


def test_a_person_replaces_it(database: Database) -> None:
    pins = Pins(database)
    pins.trust("files", {"read": READ})
    assert pins.approvals() == 0
    pins.approve("files", "read", *READ_ALL)
    assert pins.approvals() == 1
    pin = pins.of("files")["read"]
    assert (pin.sha256, pin.approved) == ("bb", True)
    assert pins.trust("files", {"read": READ})["read"] == pin


def test_another_process_sees_an_approval(database: Database) -> None:
    with closing(Database(database.path)) as other:
        Pins(other).approve("files", "read", *READ)
        assert Pins(database).approvals() == 1
        assert Pins(database).of("files")["read"].approved


def test_of_processes_that_see_a_tool_first_at_once_one_pins_it(database: Database) -> None:
    with closing(Database(database.path)) as other, ThreadPoolExecutor(2) as threads:
        tools = [f"t{number}" for number in range(200)]
        first = threads.submit(Pins(database).trust, "s", dict.fromkeys(tools, READ))
        second = threads.submit(Pins(other).trust, "s", dict.fromkeys(tools, READ_ALL))
        assert first.result() == second.result() == Pins(database).of("s")


def test_thousands_of_tools_are_pinned_together(database: Database) -> None:
    definitions = {f"t{number}": READ for number in range(4_500)}
    assert Pins(database).trust("many", definitions).keys() == definitions.keys()
