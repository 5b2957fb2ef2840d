from typing import Any

from storage.models import NewEntry
from tests.tools.conftest import Open

TEA = "Ann likes her tea strong with a little milk and no sugar at all"
TEA_AGAIN = "Ann likes her tea strong, with a little milk and no sugar"
OTHER = "The kestrel nests in the church tower of Ely"


def record(crib: Any, said: str, session_id: str = "monday", **given: Any) -> int:
    new: dict[str, Any] = {
        "session_id": session_id,
        "kind": "call",
        "time": 1.7e9,
        "action": "write_file",
        "target": "a.md",
        "said": said,
    }
    number: int = crib.app.library.entries.record(crib.app.identity, NewEntry(**(new | given)))
    return number


async def test_something_is_remembered_in_one_call(crib: Any) -> None:
    added = await crib.call("remember", content=TEA)
    assert (added["outcome"], added["layer"], added["merged_into"]) == ("added", "l2", "")
    slight = await crib.call(
        "remember", content=OTHER, importance=2, title=" Birds\n of Ely ", entities=["Ely"]
    )
    assert slight["layer"] == "l4"
    assert (await crib.text("remember", content="Tyres wear")).startswith("Remembered as ")
    found = await crib.call("retrieve_knowledge_context", query="kestrel", entities=["ely"])
    assert [(hit["id"], hit["title"]) for hit in found["hits"]] == [(slight["id"], "Birds of Ely")]


async def test_what_is_nearly_the_same_is_merged_and_said_to_be(crib: Any) -> None:
    first = await crib.call("remember", content=TEA, importance=2)
    again = await crib.call("remember", content=TEA_AGAIN, importance=9)
    assert (again["outcome"], again["id"]) == ("merged", first["id"])
    assert (again["layer"], again["merge_count"]) == ("l2", 1)
    assert again["merged_into"].startswith("Ann likes her tea")
    assert again["similarity"] > 0.85
    told = await crib.text("remember", content=TEA)
    assert f"Merged into memory {first['id']} (l2)" in told


async def test_a_memory_takes_the_place_of_one_that_is_named(crib: Any) -> None:
    first = await crib.call("remember", content=TEA)
    second = await crib.call("remember", content=OTHER, replaces=first["id"])
    assert (second["outcome"], second["id"], second["former"]) == ("superseded", first["id"], TEA)
    third = await crib.call("remember", content="The kestrel left", replaces=OTHER)
    assert (third["outcome"], third["id"]) == ("superseded", first["id"])
    kind, told = await crib.failure("remember", content=TEA, replaces="cafe")
    assert kind == "not_found"
    assert "'cafe'" in told
    foreign = await crib.failure("remember", content=TEA, replaces=first["id"], user_id="bob")
    assert foreign[0] == "not_found"


async def test_what_cannot_be_remembered_is_refused(crib: Any) -> None:
    for wrong in ({"importance": 11}, {"content": " "}, {"importance": -1}):
        error_type, told = await crib.failure("remember", **({"content": TEA} | wrong))
        assert error_type == "invalid_arguments"
        assert next(iter(wrong)) in told


async def test_a_layer_is_listed_first_and_its_content_shown_on_demand(crib: Any) -> None:
    long = f"{TEA}. " * 20
    stored = await crib.call("remember", content=long, importance=8)
    await crib.call("remember", content=OTHER, importance=6)
    listed = await crib.call("browse_memory", action="list", layer="l2")
    first, second = listed["items"]
    assert (first["id"], first["importance"], first["content"]) == (stored["id"], 8.0, "")
    assert first["weight"] > second["weight"]
    assert len(first["line"]) <= 120
    assert not listed["more"]
    await crib.call("remember", content="Comes in between, and matters", importance=10)
    selected = await crib.call(
        "browse_memory",
        action="select",
        layer="l2",
        indices=[second["number"], first["number"], 10**9],
    )
    assert [each["number"] for each in selected["items"]] == [second["number"], first["number"]]
    assert selected["items"][0]["content"] == OTHER
    assert selected["items"][1]["content"] == long.strip()
    assert selected["missing"] == [10**9]
    text = await crib.text("browse_memory", action="list", layer="l2", limit=1)
    assert "There is more: raise limit." in text
    text = await crib.text("browse_memory", action="list", layer="l3")
    assert text == "Nothing in l3."
    text = await crib.text("browse_memory", action="list", layer="l3", session="none")
    assert text == "Nothing in l3 of session none: try session=all."
    text = await crib.text("browse_memory", action="select", layer="l3", indices=[9])
    assert text == "Not in l3: 9. action=list shows what there is."
    text = await crib.text("browse_memory", action="select", layer="l4", indices=[1])
    assert "Not in l4: 1." in text


async def test_layer_1_is_browsed_by_session(crib: Any) -> None:
    numbers = [record(crib, f"Wrote {n} lines.") for n in range(3)]
    record(crib, "Wrote it on Tuesday.", "tuesday", outcome="not_found")
    listed = await crib.call("browse_memory", action="list", layer="l1", session="monday")
    assert [each["number"] for each in listed["items"]] == numbers[::-1]
    assert listed["items"][0]["line"] == "write_file a.md Wrote 2 lines."
    everything = await crib.text("browse_memory", action="list", layer="l1", session="all")
    assert "write_file a.md (not_found) Wrote it on Tuesday." in everything
    this = await crib.call("browse_memory", action="list", layer="l1")
    assert {each["session"] for each in this["items"]} <= {
        each["session"] for each in this["items"][:1]
    }
    assert not {each["number"] for each in this["items"]} & set(numbers)
    selected = await crib.call("browse_memory", action="select", layer="l1", indices=numbers[:1])
    assert selected["items"][0]["content"] == "write_file a.md\nWrote 0 lines."


async def test_a_memory_is_browsed_by_the_session_it_comes_from(open_crib: Open) -> None:
    async with open_crib("legacy") as crib:
        stored = await crib.call("remember", content=TEA)
        for session, found in (("this", [stored["id"]]), ("other", []), ("all", [stored["id"]])):
            listed = await crib.call("browse_memory", action="list", layer="l2", session=session)
            assert [each["id"] for each in listed["items"]] == found, session


WRONG: list[dict[str, Any]] = [
    {"action": "select"},
    {"action": "select", "indices": []},
    {"action": "list", "indices": [1]},
    {"layer": "l5"},
    {"limit": 1001},
    {"limit": 0},
]


async def test_a_browsing_that_cannot_be_is_refused(crib: Any) -> None:
    for wrong in WRONG:
        given = {"action": "list", "layer": "l2"} | wrong
        error_type, _ = await crib.failure("browse_memory", **given)
        assert error_type == "invalid_arguments", wrong


async def test_nobody_elses_layers_are_browsed(crib: Any) -> None:
    stored = await crib.call("remember", content=TEA)
    entry = record(crib, "Wrote a line.")
    (mine,) = (await crib.call("browse_memory", action="list", layer="l2"))["items"]
    assert mine["id"] == stored["id"]
    for layer, number in (("l1", entry), ("l2", mine["number"])):
        for asked in (
            {"action": "list", "session": "all"},
            {"action": "list", "session": "monday"},
            {"action": "select", "indices": [number]},
        ):
            found = await crib.call("browse_memory", layer=layer, user_id="eve", **asked)
            assert "tea" not in str(found)
            assert number not in [each["number"] for each in found["items"]]
