import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.reading.frontmatter import MOST_NAMES, Note, read_note

NOTE = """\
---
title: "The  harbour:\tmeeting"
date: 2026-03-14
tags: [Project/Boat, sailing]
aliases:
  - Boat meeting
author: Ada
rating: 4.5
due: 2026-04-01T10:00:00Z
related: "[[Plan]]"
---

# Notes

We met [[people/Grace Hopper|Grace]] about [[Plan#Costs]] #urgent
"""


def note_of(front: str, body: str = "Words.\n") -> Note:
    return read_note(f"---\n{front}\n---\n{body}")


def test_a_note_is_taken_apart() -> None:
    note = read_note(NOTE)
    assert note.title == "The harbour: meeting"
    assert note.event_time == datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp()
    assert note.keywords == ("Project/Boat", "sailing", "urgent")
    assert note.entities == ("Boat meeting", "Grace Hopper", "Plan")
    assert note.metadata == {
        "author": "Ada",
        "rating": 4.5,
        "due": "2026-04-01T10:00:00+00:00",
        "related": "[[Plan]]",
    }
    assert note.body == NOTE.partition("---\n\n")[2]


def test_people_and_entities_are_names_and_stay_metadata() -> None:
    note = note_of('people: [Ann Lee, "[[Bob Stone|Bob]]", "Berg, Eva"]\nentities: Acme, Phoenix')
    assert note.entities == ("Ann Lee", "Bob Stone", "Berg, Eva", "Acme", "Phoenix")
    assert note.metadata["entities"] == "Acme, Phoenix"


def test_a_text_without_front_matter_is_all_body() -> None:
    for text in (
        *("Words.\n", "", "---\n", "--- \nno end: of it\n", "----\na: 1\n---\n"),
        " ---\na: 1\n---\n",
    ):
        note = read_note(text)
        assert (note.body, note.title, note.event_time, note.metadata) == (text, "", None, {})


@pytest.mark.parametrize(
    "front",
    [
        "title: a: b",
        "tags: [a",
        "\tkey: tab",
        "- a\n- list",
        "just words",
        "a: !!python/object/apply:os.system [ls]",
        "a: !!timestamp x",
        "a: !!int ''",
        "date: 2026-13-45",
        "a: " + "[" * 5000,
        "a: &a [*a]",
        "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a]\n"
        + "".join(
            f"{chr(n + 1)}: &{chr(n + 1)} [{', '.join([f'*{chr(n)}'] * 9)}]\n"
            for n in range(98, 112)
        ),
        "a: " + "x" * 70_000,
        "? [a, b]\n: c\n? {d: e}\n: f",
    ],
)
def test_front_matter_that_cannot_be_read_stays_text(front: str) -> None:
    note = note_of(front)
    assert note.body == f"---\n{front}\n---\nWords.\n"
    assert note.metadata == {}


def test_front_matter_alone_is_the_text_too() -> None:
    note = read_note("---\ntitle: Ideas\n---\n")
    assert (note.title, note.body) == ("Ideas", "---\ntitle: Ideas\n---\n")


def test_empty_front_matter_is_left_out() -> None:
    assert read_note("---\n---\nWords.").body == "Words."
    assert read_note("---\n# nothing but a remark\n...\nWords.").body == "Words."


@pytest.mark.parametrize(
    ("front", "moment"),
    [
        ("date: 2026-03-14", "2026-03-14T12:00:00+00:00"),
        ("created: 2026-03-14T15:09:26+02:00", "2026-03-14T15:09:26+02:00"),
        ("Date: 2026-03-14 15:09", "2026-03-14T15:09:00+00:00"),
        ('date: "2026-03-14"\ncreated: 2020-01-01', "2026-03-14T12:00:00+00:00"),
        ("date: Pi Day\ncreated: 2026-03-14", "2026-03-14T12:00:00+00:00"),
    ],
)
def test_the_date_is_the_time_of_the_note(front: str, moment: str) -> None:
    assert note_of(front).event_time == datetime.fromisoformat(moment).timestamp()


def test_a_date_that_is_none_is_kept_as_it_is() -> None:
    note = note_of("date: next Tuesday\ncreated: 12:30")
    assert note.event_time is None
    assert note.metadata == {"date": "next Tuesday", "created": 750}


@pytest.mark.parametrize(
    ("front", "keywords"),
    [
        ("tags: one, two words", ("one", "two words")),
        ("tags: '#one'", ("one",)),
        ("tags: 2026", ("2026",)),
        ("Tags:\n- one\n- One\n- ONE\n- null\n- true", ("one",)),
        ("tag: one\nkeywords: [two]", ("one", "two")),
        ("tags:", ()),
    ],
)
def test_tags_are_keywords_however_they_are_written(front: str, keywords: tuple[str, ...]) -> None:
    assert note_of(front).keywords == keywords


def test_a_title_that_is_no_text_is_its_text() -> None:
    assert note_of("title: 1984").title == "1984"
    assert note_of("title:").title == ""
    assert note_of("title: [First, Second]").title == "First"


def test_values_that_json_lacks_are_kept_as_text() -> None:
    note = note_of("a: .nan\nb: 2026-01-02\nc: !!set {x: null}\n3: three\nd: !!binary aGk=")
    assert note.metadata == {"a": "nan", "b": "2026-01-02", "c": ["x"], "3": "three", "d": "b'hi'"}


def test_links_and_tags_in_code_are_none() -> None:
    text = "Do `[[ -f a ]]` and ``#x`` now\n\n~~~sh\n[[b]] #c\n~~~\n\n```\n[[d]]\n"
    assert read_note(text).entities == read_note(text).keywords == ()


def test_pictures_numbers_and_anchors_are_neither_links_nor_tags() -> None:
    text = "![[boat.png]] [[#Costs]] [[]] #42 a#b https://x.org/#top # Title\n[[v1.2]] [[a.md]]"
    note = read_note(text)
    assert note.entities == ("v1.2", "a")
    assert note.keywords == ()


def test_a_table_of_contents_gives_so_many_names() -> None:
    text = " ".join(f"[[Note {number}]] #tag{number}" for number in range(5000))
    note = read_note(text)
    assert len(note.entities) == len(note.keywords) == MOST_NAMES


@given(st.text(alphabet="-\n:#[]|`~ a1{}&*!\"'.,\t?", max_size=200))
def test_any_text_is_a_note_with_metadata_that_json_has(text: str) -> None:
    note = read_note(f"---\n{text}\n---\nWords.")
    assert note.body.endswith("Words.")
    json.dumps(note.metadata, allow_nan=False)


@pytest.mark.parametrize("piece", ["[[a", "`a", "#1", "``` ", "[[a|", "---\n", "~~~\n", "` `` "])
def test_reading_takes_linear_time(piece: str) -> None:
    text = piece * 200_000
    assert read_note(text).metadata == {}
