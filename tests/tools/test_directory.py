"""The tools on any directory, asked by a real client about one that the settings map."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
import pytest

from storage.directory.reading import read_records
from tests.tools.conftest import Open
from tools.answers.directory import counted

PARTS = {
    "noun": "machine part",
    "description": "Spare parts of the workshop",
    "name_field": "designation",
    "key": "part_no",
    "groups": {"machine": ["also_fits"]},
    "texts": ["use"],
    "facts": ["part_no", "material"],
    "items": ["repairs"],
    "link": "sheet",
    "aliases": "also_called",
}
ROWS = [
    {
        "part_no": "A-1",
        "designation": "Ball bearing 608",
        "machine": "Lathe",
        "also_fits": ["Mill"],
        "material": "steel",
        "use": "Carries the main spindle and keeps it from wobbling.",
        "repairs": [
            {"title": "Replaced after a squeal", "year": 2022},
            {"title": "Greased", "year": 2024},
        ],
        "sheet": "https://example.com/a-1",
    },
    {
        "part_no": "A-2",
        "designation": "V-belt",
        "also_called": ["Fan belt"],
        "machine": "Mill",
        "material": "rubber",
        "use": "Drives the feed of the table.",
        "repairs": [{"title": "Tensioned, it slipped", "year": 2024}],
    },
    {"part_no": "A-3", "designation": "Coolant pump", "machine": "Mill", "use": "Cools the tool."},
]


@pytest.fixture
async def crib(open_crib: Open) -> AsyncIterator[Any]:
    async with open_crib(directories={"parts": PARTS}) as crib:
        directory = crib.app.settings.collections.directory("parts")
        records = read_records(json.dumps(ROWS).encode(), directory)
        shelf = crib.app.library.shelf(crib.app.identity)
        await anyio.to_thread.run_sync(shelf.directories.add, directory, records)
        await crib.embed()
        yield crib


def names(answer: dict[str, Any]) -> list[str]:
    return [each["entry"]["name"] for each in answer["records"]]


async def test_things_are_found_by_name_topic_and_query(crib: Any) -> None:
    answer = await crib.call("directory_search", directory="parts", name="bearing, ball")
    assert names(answer)[0] == "Ball bearing 608"
    answer = await crib.call("directory_search", directory="parts", topic="something that cools")
    assert names(answer)[0] == "Coolant pump"
    answer = await crib.call("directory_search", directory="parts", query="v-belt")
    assert (answer["taken_for"], names(answer)[0]) == ("name", "V-belt")


async def test_fields_keep_the_names_of_the_mapping(crib: Any) -> None:
    answer = await crib.call("directory_search", directory="parts", name="Ball bearing 608")
    entry = answer["records"][0]["entry"]
    assert entry["facts"] == {"part_no": "A-1", "material": "steel"}
    assert entry["groups"] == {"machine": ["Lathe"], "also_fits": ["Mill"]}
    assert entry["link"] == "https://example.com/a-1"
    text = await crib.text("directory_search", directory="parts", name="Ball bearing 608", top_k=1)
    assert text.startswith("1 machine part, by name.")
    assert "part no: A-1; material: steel; machine: Lathe; also fits: Mill" in text


async def test_groups_are_listed_and_filtered_by(crib: Any) -> None:
    asked = {"directory": "parts", "field": "machine"}
    answer = await crib.call("directory_filter", **asked, value="list")
    assert {each["value"]: each["count"] for each in answer["groups"]} == {"Lathe": 1, "Mill": 2}
    answer = await crib.call("directory_filter", **asked, value="mil")
    members = [(each["entry"]["name"], each["associated"]) for each in answer["members"]]
    assert members == [("Coolant pump", False), ("V-belt", False), ("Ball bearing 608", True)]


async def test_items_are_found_with_whose_they_are(crib: Any) -> None:
    asked = {"directory": "parts", "items": "repairs"}
    answer = await crib.call("directory_items", **asked, topic="noise", year=2022)
    assert [each["title"] for each in answer["found"]] == ["Replaced after a squeal"]
    answer = await crib.call("directory_items", **asked, year=2024)
    owners = {each["title"]: each["owners"][0]["name"] for each in answer["found"]}
    assert owners == {"Greased": "Ball bearing 608", "Tensioned, it slipped": "V-belt"}


async def test_the_tools_name_the_directories_and_fields_that_there_are(crib: Any) -> None:
    described = await crib.call("describe_tool", name="directory_filter")
    assert "parts (Spare parts of the workshop)" in described["description"]
    properties = described["input_schema"]["properties"]
    assert properties["directory"]["enum"] == ["researchers", "parts"]
    assert properties["field"]["enum"] == ["department", "program", "machine"]
    described = await crib.call("describe_tool", name="directory_items")
    items = described["input_schema"]["properties"]["items"]
    assert items["enum"] == ["publications", "grants", "repairs"]
    for wish, name in (
        ("spare parts of the workshop", "directory_"),
        ("staff directory", "directory_search"),
        ("look up a professor by name", "researcher_search"),
    ):
        found = await crib.call("search_tools", query=wish)
        assert found["tools"][0]["name"].startswith(name)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("directory_search", {"directory": "part", "name": "x"}, "Did you mean: parts"),
        ("directory_search", {"directory": "parts"}, "exactly one of name, topic, query"),
        (
            "directory_filter",
            {"directory": "parts", "field": "department", "value": "list"},
            "machine",
        ),
        (
            "directory_items",
            {"directory": "parts", "items": "publications", "year": 2024},
            "repairs",
        ),
        ("directory_items", {"directory": "parts", "items": "repairs"}, "Send a topic, a year"),
        ("directory_search", {"directory": "x" * 64, "name": "x"}, "Give an existing name"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_what_would(
    crib: Any, tool: str, arguments: dict[str, Any], told: str
) -> None:
    kind, text = await crib.failure(tool, **arguments)
    assert kind == "invalid_arguments"
    assert told in text


async def test_what_is_found_by_an_alias_tells_what_it_is_about(crib: Any) -> None:
    told = await crib.text("directory_search", directory="parts", name="fan belt")
    assert "V-belt (alias 1.00)" in told
    assert "also: Fan belt" in told
    assert "- use: Drives the feed of the table." in told
    assert told.count("Fan belt") == 1


async def test_a_page_past_the_end_says_so(crib: Any) -> None:
    given = {"directory": "parts", "field": "machine", "value": "Mill", "offset": 9}
    assert "3 machine parts, none from 10 on" in await crib.text("directory_filter", **given)


async def test_an_empty_directory_names_the_command_that_fills_it(crib: Any) -> None:
    kind, text = await crib.failure("directory_search", directory="researchers", name="Ada")
    assert kind == "not_found"
    assert "`toolcrib import researchers FILE`" in text
    kind, text = await crib.failure(
        "directory_search", directory="parts", name="V-belt", user_id="bob"
    )
    assert kind == "not_found"
    assert "`toolcrib import parts FILE`" in text
    assert "--sample" not in text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "researcher", "1 researcher"),
        (0, "machine part", "0 machine parts"),
        (2, "company", "2 companies"),
        (2, "key", "2 keys"),
        (3, "lens", "3 lenses"),
    ],
)
def test_nouns_are_counted(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text
