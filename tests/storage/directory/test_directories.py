import pytest

from storage.directory.directories import Directories
from storage.directory.models import RESEARCHERS, Item, Record
from storage.errors import InvalidSourceError
from storage.library import Library
from storage.models import Identity

HERONS = Item(text="Boyle T, Ray B. Herons of the delta. Birds. 2020.", title="Herons", year=2020)
RECORDS = [
    Record(
        key="boyle",
        name="Theresa M. Boyle",
        aliases=("Tess Boyle",),
        groups={"department": ("Department of Ornithology",), "program": ("Wetlands",)},
        texts={"overview": "How wading birds share a marsh.", "interests": "reeds; tides"},
        facts={"degrees": "PhD", "title": "Professor"},
        items={
            "publications": (HERONS, Item(text="Boyle T. Tides. 2018.", year=2018)),
            "grants": (Item(text="Marsh fund 2019", year=2019),),
        },
        link="https://people.example/boyle",
    ),
    Record(
        key="ray",
        name="Bob Ray",
        groups={"department": ("Botany",), "associated_departments": ("Ornithology",)},
        texts={"overview": "Boyle Boyle Boyle: quotes Theresa Boyle on the growth of reeds."},
        items={"publications": (HERONS,)},
    ),
    Record(
        key="zhang",
        name="Wei Zhang",
        groups={"department": ("Plant Genetics",), "program": ("Crops",)},
        texts={"overview": "Drought in wheat."},
        items={"publications": (Item(text="Wheat. 2021.", year=2021), Item(text="Undated wheat."))},
    ),
    Record(key="mueller", name="Jürgen Müller", groups={"department": ("Radiation Ornithology",)}),
]


@pytest.fixture
def directories(library: Library) -> Directories:
    directories = library.shelf(Identity("ann")).directories
    directories.add(RESEARCHERS, RECORDS)
    return directories


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("Theresa M. Boyle", "exact"),
        ("Tess Boyle", "alias"),
        ("boyle, theresa m", "folded"),
        ("Dr. Boyle", "partial"),
        ("who is dr boyle?", "partial"),
        ("Boyle TM", "partial"),
        ("Theresa Boyel", "fuzzy"),
    ],
)
def test_a_name_is_first_however_it_is_asked_for(
    directories: Directories, asked: str, how: str
) -> None:
    found = directories.search_names(RESEARCHERS, asked, 5)
    assert found.kind == "name"
    first = found.records[0]
    assert (first.entry.key, first.how) == ("boyle", how)
    assert first.snippets[0].field == "name"
    assert [each.entry.key for each in found.records] == ["boyle"]  # however others quote her


def test_a_record_is_answered_with_all_that_is_known(directories: Directories) -> None:
    (found,) = directories.search_names(RESEARCHERS, "Tess Boyle", 5).records
    entry, record = found.entry, RECORDS[0]
    assert entry.texts == record.texts
    assert entry.facts == record.facts
    assert entry.groups == record.groups
    assert (entry.link, entry.aliases) == (record.link, record.aliases)


def test_a_name_that_nobody_has_is_looked_for_in_the_texts(directories: Directories) -> None:
    found = directories.search_names(RESEARCHERS, "Delta", 5)
    assert {each.entry.key for each in found.records} == {"boyle", "ray"}
    assert {each.how for each in found.records} == {None}


def test_a_topic_finds_those_who_say_it_and_those_who_wrote_of_it(directories: Directories) -> None:
    found = directories.search_topics(RESEARCHERS, "herons", 5)
    assert {each.entry.key for each in found.records} == {"boyle", "ray"}
    (snippet,) = found.records[0].snippets
    assert (snippet.field, snippet.title, snippet.year) == ("publications", "Herons", 2020)
    assert snippet.text == HERONS.text
    (wheat,) = directories.search_topics(RESEARCHERS, "drought", 5).records
    assert [(each.field, each.text) for each in wheat.snippets] == [
        ("overview", "Drought in wheat.")
    ]
    assert 0 < wheat.score <= 1


def test_who_says_it_twice_comes_first(directories: Directories) -> None:
    found = directories.search_topics(RESEARCHERS, "wheat", 5).records
    assert len(found[0].snippets) == 3
    scores = [each.score for each in found[0].snippets]
    assert scores == sorted(scores, reverse=True)


def test_what_nobody_says_finds_nobody(directories: Directories) -> None:
    assert directories.search_topics(RESEARCHERS, "zirconium", 5).records == ()
    assert directories.search_names(RESEARCHERS, "Quince", 5).records == ()


def test_a_name_that_nobody_has_is_nobody_by_meaning_alone(directories: Directories) -> None:
    found = directories.search_names(RESEARCHERS, "who is Dr. Thera Boole", 5)
    assert found.records == ()
    assert found.nearest[0] == RECORDS[0].name


def test_an_empty_directory_finds_nothing(library: Library) -> None:
    directories = library.shelf(Identity("bob")).directories
    assert directories.search(RESEARCHERS, "Boyle", 5).records == ()
    assert directories.groups(RESEARCHERS, "department") == []
    assert directories.members(RESEARCHERS, "department", "Botany", 5).match == "none"


@pytest.mark.parametrize(
    ("since", "until", "texts"),
    [
        (2021, 2021, {"Wheat. 2021."}),
        (None, None, {"Wheat. 2021.", "Undated wheat."}),
        (2000, None, {"Wheat. 2021."}),
        (None, 2020, set()),
        (2022, 2021, set()),
    ],
)
def test_items_are_found_by_topic_and_year(
    directories: Directories, since: int | None, until: int | None, texts: set[str]
) -> None:
    found = directories.search_items(
        RESEARCHERS, "publications", "wheat", 5, since=since, until=until
    )
    assert {each.text for each in found.items} == texts


def test_an_item_names_all_who_have_a_part_in_it(directories: Directories) -> None:
    (item,) = directories.search_items(RESEARCHERS, "publications", "herons", 1).items
    assert [(owner.name, owner.link) for owner in item.owners] == [
        ("Bob Ray", ""),
        ("Theresa M. Boyle", "https://people.example/boyle"),
    ]
    assert (item.text, item.title, item.year) == (HERONS.text, "Herons", 2020)
    assert directories.search_items(RESEARCHERS, "grants", "marsh", 5).items[0].year == 2019


def test_a_list_or_a_field_that_is_none_is_named(directories: Directories) -> None:
    with pytest.raises(InvalidSourceError, match="'patents' is not a list of items") as caught:
        directories.search_items(RESEARCHERS, "patents", "herons", 1)
    assert caught.value.candidates == ("publications", "grants")
    with pytest.raises(InvalidSourceError, match="'title' is not a group field"):
        directories.groups(RESEARCHERS, "title")
    with pytest.raises(InvalidSourceError, match="'title' is not a group field"):
        directories.members(RESEARCHERS, "title", "Professor", 1)


def test_groups_are_listed_with_their_sizes(directories: Directories) -> None:
    sizes = directories.groups(RESEARCHERS, "department")
    assert [(each.value, each.count, each.associated) for each in sizes] == [
        ("Botany", 1, 0),
        ("Department of Ornithology", 1, 0),
        ("Ornithology", 0, 1),
        ("Plant Genetics", 1, 0),
        ("Radiation Ornithology", 1, 0),
    ]


@pytest.mark.parametrize(
    ("asked", "match", "values"),
    [
        ("botany", "exact", ["Botany"]),
        ("ornithology", "exact", ["Ornithology"]),
        ("Dept. of Ornithology", "partial", ["Department of Ornithology", "Ornithology"]),
        ("genetics", "partial", ["Plant Genetics"]),
        ("Department of Plant Genetics", "partial", ["Plant Genetics"]),
        ("Botanny", "fuzzy", ["Botany"]),
        ("plant genetcs", "fuzzy", ["Plant Genetics"]),
        ("bot", "fuzzy", ["Botany"]),
        ("Astronomy", "none", []),
    ],
)
def test_a_group_is_found_exactly_then_by_words_then_by_typos(
    directories: Directories, asked: str, match: str, values: list[str]
) -> None:
    members = directories.members(RESEARCHERS, "department", asked, 10)
    assert (members.match, list(members.values)) == (match, values)
    assert bool(members.members) == bool(values)


def test_an_unknown_group_is_answered_with_the_nearest(directories: Directories) -> None:
    members = directories.members(RESEARCHERS, "department", "Botanical garden", 10)
    assert members.total == 0
    assert members.nearest[0] == "Botany"


def test_members_who_are_only_associated_come_last_and_are_marked(directories: Directories) -> None:
    members = directories.members(RESEARCHERS, "department", "Dept. of Ornithology", 10)
    assert [(each.entry.key, each.associated) for each in members.members] == [
        ("boyle", False),
        ("ray", True),
    ]
    pages = [
        directories.members(RESEARCHERS, "department", "Dept. of Ornithology", 1, offset)
        for offset in range(3)
    ]
    assert [[each.entry.key for each in page.members] for page in pages] == [["boyle"], ["ray"], []]
    assert {page.total for page in pages} == {2}
