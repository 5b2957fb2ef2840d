from datetime import UTC, datetime

import pytest

from storage.directory.models import Item
from storage.directory.values import item_of, year_in

NEXT = datetime.now(UTC).year + 1


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Boyle T. Cells. Nature 2020;15(3):1987-1999.", 2020),
        ("Boyle (2019). A look back at 2001.", 2019),
        ("Doe J. A study of the flu of 1918. J Virol. 2005", 2005),
        ("doi 10.1000/2019.12, printed 2003", 2003),
        ("Smith, 2020; pp. 1999", 2020),
        ("National grant, 2018-2022", 2022),
        ("published 2020-05-01", 2020),
        ("R01 CA2020 (PI: Boyle), 2018 to 2021", 2021),
        ("Bericht\uff082017\uff09", 2017),
        (f"in press, {NEXT}", NEXT),
        (f"a plan for {NEXT + 1}", None),
        ("1899 and 12020", None),
        ("no year", None),
    ],
)
def test_the_year_of_a_citation_is_no_page(text: str, year: int | None) -> None:
    assert year_in(text) == year


def test_an_object_is_cited_as_its_parts() -> None:
    item = item_of(
        {
            "title": "Of herons",
            "authors": ["Boyle T", {"name": "Ann Lee"}],
            "journal": "Birds",
            "year": "2020",
            "doi": "10.1/x",
        }
    )
    assert item == Item(
        text="Boyle T, Ann Lee. Of herons. Birds. 2020.",
        title="Of herons",
        year=2020,
        details={"authors": "Boyle T, Ann Lee", "journal": "Birds", "doi": "10.1/x"},
    )


def test_an_object_may_bring_its_citation_and_its_date() -> None:
    item = item_of({"citation": "Boyle, Herons", "date": "2011-03-02", "title": "Herons"})
    assert item == Item(
        text="Boyle, Herons", title="Herons", year=2011, details={"date": "2011-03-02"}
    )


def test_a_year_in_words_is_no_year() -> None:
    item = item_of({"title": "Herons", "year": "in press"})
    assert item is not None
    assert (item.year, item.text) == (None, "Herons. in press.")


@pytest.mark.parametrize("year", [1753, "1753", 1753.0, "1753-05-01"])
def test_a_year_that_is_named_as_one_may_be_older_than_those_that_are_read(year: object) -> None:
    item = item_of({"title": "Species plantarum", "year": year})
    assert item is not None
    assert item.year == 1753


def test_what_says_nothing_is_no_item() -> None:
    assert [item_of(value) for value in (None, "", "  ", {}, {"title": ""})] == [None] * 5
