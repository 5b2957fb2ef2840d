"""The four tools on researchers, asked by a real client about the made-up sample."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from server.cli.data.directory_importer import SAMPLE
from storage.directory.models import RESEARCHERS
from storage.directory.reading import read_records
from storage.models import Identity
from tests.tools.conftest import Open


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Any]:
    """The product with the sample in it, which no test changes."""
    async with open_shared() as crib:
        directories = crib.app.library.shelf(crib.app.identity).directories
        directories.add(RESEARCHERS, read_records(SAMPLE, RESEARCHERS))
        await crib.embed()
        yield crib


def names(answer: dict[str, Any]) -> list[str]:
    return [each["entry"]["name"] for each in answer["records"]]


@pytest.mark.parametrize(
    ("asked", "meant", "how"),
    [
        ("Amara Okonkwo", "Amara Okonkwo", "exact"),
        ("Okonkwo, Amara", "Amara Okonkwo", "folded"),
        ("jose alvarez nunez", "José Álvarez Núñez", "folded"),
        ("Soren Kjaergaard", "Søren Kjærgaard", "folded"),
        ("Dr. Kjærgaard", "Søren Kjærgaard", "partial"),
        ("H. Tanaka", "Hiroshi Tanaka", "partial"),
        ("Ananya Krishnamurty", "Ananya Krishnamurthy", "fuzzy"),
    ],
)
async def test_a_researcher_is_found_by_a_name_in_any_spelling(
    crib: Any, asked: str, meant: str, how: str
) -> None:
    answer = await crib.call("researcher_search", researcher_name=asked)
    assert answer["taken_for"] == "name"
    first = answer["records"][0]
    assert (first["entry"]["name"], first["how"]) == (meant, how)


async def test_who_is_found_is_shown_in_one_block(crib: Any) -> None:
    text = await crib.text("researcher_search", researcher_name="Okonkwo, Amara", top_k=1)
    assert text.splitlines()[0] == "1 researcher, by name."
    assert "[1] Amara Okonkwo (folded 1.00)" in text
    assert (
        "degrees: MD, PhD; title: Professor; department: Immunology;"
        " associated departments: Microbiology; program: Immunity and Infection"
    ) in text
    assert "overview: Amara Okonkwo studies how T cells" in text
    assert text.endswith("https://example.org/made-up-researchers/amara-okonkwo")


async def test_namesakes_are_both_found(crib: Any) -> None:
    answer = await crib.call("researcher_search", researcher_name="Wei Zhang")
    found = {
        (each["entry"]["name"], *each["entry"]["groups"]["department"])
        for each in answer["records"]
    }
    assert found >= {("Wei Zhang", "Immunology"), ("Wei Zhang", "Biostatistics and Bioinformatics")}


@pytest.mark.parametrize(
    ("topic", "meant"),
    [
        ("influenza memory in the lung", "Amara Okonkwo"),
        ("coral reefs and warming seas", "Leilani Kahananui"),
        ("helping smokers quit", "Beatriz Gutiérrez-Molina"),
        ("viruses that eat bacteria", "Søren Kjærgaard"),
    ],
)
async def test_a_researcher_is_found_once_by_what_they_work_on(
    crib: Any, topic: str, meant: str
) -> None:
    answer = await crib.call("researcher_search", topic=topic, top_k=5)
    assert answer["taken_for"] == "topic"
    assert meant in names(answer)[:2]
    links = [each["entry"]["link"] for each in answer["records"]]
    assert len(links) == len(set(links))
    first = next(each for each in answer["records"] if each["entry"]["name"] == meant)
    assert first["snippets"]


@pytest.mark.parametrize(
    ("query", "taken_for", "meant"),
    [
        ("who is Dr. Tanaka?", "name", "Hiroshi Tanaka"),
        ("Nowak, Katarzyna", "name", "Katarzyna Nowak"),
        ("who studies chronic pain?", "topic", "Yael Ben-David"),
        ("microplastics in fish", "topic", "Nokuthula Dlamini"),
    ],
)
async def test_a_query_says_what_it_was_taken_for(
    crib: Any, query: str, taken_for: str, meant: str
) -> None:
    answer = await crib.call("researcher_search", query=query)
    assert (answer["taken_for"], names(answer)[0]) == (taken_for, meant)
    assert answer["reason"]
    text = await crib.text("researcher_search", query=query)
    assert f"by {taken_for} ({answer['reason']})" in text


@pytest.mark.parametrize(
    "arguments", [{}, {"researcher_name": "Tanaka", "topic": "memory"}, {"query": "  "}]
)
async def test_other_than_one_question_is_refused_with_what_to_send(
    crib: Any, arguments: dict[str, str]
) -> None:
    kind, text = await crib.failure("researcher_search", **arguments)
    assert kind == "invalid_arguments"
    assert "exactly one of researcher_name, topic, query" in text


async def test_the_departments_are_listed_with_their_sizes(crib: Any) -> None:
    answer = await crib.call("department_filter", department="list")
    sizes = {each["value"]: (each["count"], each["associated"]) for each in answer["groups"]}
    assert sizes["Immunology"] == (4, 2)
    assert answer["total"] == len(sizes) == 10
    assert sum(count for count, _ in sizes.values()) == 40
    text = await crib.text("department_filter", department="List")
    assert text.startswith("10 departments\n- ")
    assert "- Immunology: 4, and 2 associated" in text


@pytest.mark.parametrize(
    ("department", "match", "values"),
    [
        ("immunology", "exact", ["Immunology"]),
        ("Imunology", "fuzzy", ["Immunology"]),
        ("Biostatistics", "partial", ["Biostatistics and Bioinformatics"]),
        ("biology", "partial", ["Chemical Biology", "Marine Biology"]),
    ],
)
async def test_a_department_is_found_in_any_spelling_and_says_how(
    crib: Any, department: str, match: str, values: list[str]
) -> None:
    answer = await crib.call("department_filter", department=department)
    assert (answer["match"], sorted(answer["values"])) == (match, values)
    text = await crib.text("department_filter", department=department)
    assert text.startswith(f"department: {', '.join(answer['values'])} ({match} match), ")


async def test_associated_members_come_last_and_are_marked(crib: Any) -> None:
    answer = await crib.call("department_filter", department="Immunology")
    marks = [each["associated"] for each in answer["members"]]
    assert marks == [False] * 4 + [True] * 2
    text = await crib.text("department_filter", department="Immunology")
    assert "\n- Katarzyna Nowak (associated). degrees: PhD; title: Professor; department: " in text


async def test_a_long_group_is_paged(crib: Any) -> None:
    seen = []
    offset: int | None = 0
    while offset is not None:
        page = await crib.call("program_filter", program="BioEngineering", limit=3, offset=offset)
        seen += [each["entry"]["name"] for each in page["members"]]
        offset = page.get("next_offset")
    assert len(seen) == len(set(seen)) == page["total"] > 6
    text = await crib.text("program_filter", program="bioengineering", limit=3)
    assert f"{page['total']} researchers, 1 to 3\n" in text
    assert text.endswith("More with offset=3.")


async def test_the_programs_are_listed_a_page_at_a_time(crib: Any) -> None:
    page = await crib.call("program_filter", program="list", limit=5)
    assert (len(page["groups"]), page["total"], page["next_offset"]) == (5, 7, 5)
    page = await crib.call("program_filter", program="list", limit=5, offset=5)
    assert (len(page["groups"]), "next_offset" in page) == (2, False)


async def test_a_department_that_there_is_not_is_not_found(crib: Any) -> None:
    kind, text = await crib.failure("department_filter", department="Xylophone Repair")
    assert kind == "not_found"
    assert 'Send "list"' in text


async def test_publications_are_found_by_topic_and_year(crib: Any) -> None:
    answer = await crib.call("publication_search", topic="antibiotics from nature", year=2021)
    assert {each["year"] for each in answer["found"]} == {2021}
    first = answer["found"][0]
    assert first["title"] == "Termite mounds as a source of antibiotics"
    assert [owner["name"] for owner in first["owners"]] == ["Grace Mbeki"]
    assert "Fictional Microbiology Letters" in first["text"]


async def test_a_publication_of_several_is_one_with_all_its_researchers(crib: Any) -> None:
    answer = await crib.call("publication_search", topic="phages against resistant Klebsiella")
    owners = [owner["name"] for owner in answer["found"][0]["owners"]]
    assert owners == ["Grace Mbeki", "Søren Kjærgaard"]


async def test_a_year_alone_lists_its_publications(crib: Any) -> None:
    answer = await crib.call("publication_search", year=2021, top_k=100)
    assert {each["year"] for each in answer["found"]} == {2021}
    titles = [each["title"] for each in answer["found"]]
    assert len(set(titles)) == len(titles) == answer["total"] == 15
    assert any("Rare kidney tumours" in each["text"] for each in answer["found"])
    text = await crib.text("publication_search", year=2021, top_k=2)
    assert text.startswith("Publications of 2021: 2 of 15. Ask with a topic, ")


async def test_neither_topic_nor_year_is_refused(crib: Any) -> None:
    kind, text = await crib.failure("publication_search")
    assert kind == "invalid_arguments"
    assert "Send a topic, a year, or both." in text


async def test_what_nobody_wrote_is_an_empty_answer(crib: Any) -> None:
    answer = await crib.call("publication_search", topic="kelp", year=1901)
    assert answer["found"] == []
    text = await crib.text("publication_search", topic="kelp", year=1901)
    assert text == "Publications of 1901 about 'kelp': none."


async def test_an_empty_directory_says_how_to_fill_it(open_crib: Open) -> None:
    async with open_crib() as crib:
        for tool, arguments in (
            ("researcher_search", {"researcher_name": "Ada"}),
            ("researcher_search", {"query": "kelp"}),
            ("department_filter", {"department": "list"}),
            ("program_filter", {"program": "Imaging"}),
            ("publication_search", {"topic": "kelp"}),
        ):
            kind, text = await crib.failure(tool, **arguments)
            assert kind == "not_found"
            assert "`toolcrib import researchers FILE`" in text
            assert "--sample" in text


async def test_another_user_has_a_directory_of_their_own(crib: Any) -> None:
    kind, _ = await crib.failure("researcher_search", topic="kelp", user_id="bob")
    assert kind == "not_found"
    bob = crib.app.library.shelf(Identity(user_id="bob")).directories
    assert bob.count(RESEARCHERS) == 0


@pytest.mark.parametrize(
    ("need", "tool"),
    [
        ("find a researcher", "researcher_search"),
        ("who works in the immunology department", "department_filter"),
        ("papers about T cells from 2021", "publication_search"),
        ("who is in the bioengineering program", "program_filter"),
    ],
)
async def test_tool_search_finds_them_by_what_is_needed(crib: Any, need: str, tool: str) -> None:
    found = await crib.call("search_tools", query=need)
    assert tool in [card["name"] for card in found["tools"]][:2]
