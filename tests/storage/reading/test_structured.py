"""RTF, notebooks, calendars and contact cards become text, without embedded files."""

import json

import pytest

from storage.errors import UnreadableDocumentError
from storage.reading.parse import parse

RTF = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\info{\title Berth fees}}
{\pict\pngblip 89504e470d0a1a0a89504e470d0a1a0a}\b Geb\'fchren\b0  f\u252?r Boote.\par Second.}"""
EVENT = """BEGIN:VCALENDAR
X-WR-CALNAME:Harbour
BEGIN:VEVENT
SUMMARY:Berth meeting\\, second
DTSTART;TZID=Europe/Berlin:20260314T150926
DTEND:20260314T150926Z
RRULE:FREQ=WEEKLY
LOCATION:Pier 3
ORGANIZER;CN="Hopper, Grace":mailto:grace@example.org
DESCRIPTION:Bring the\\nplan. A line that is
  folded.
ATTACH;ENCODING=BASE64;VALUE=BINARY:iVBORw0KGgo
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
END:VCALENDAR
"""
CARD = """BEGIN:VCARD
VERSION:3.0
N:Hopper;Grace;;;
FN:Grace Hopper
item1.EMAIL;TYPE=INTERNET,WORK:grace@example.org
TEL;CELL:+49 431 1
ADR;TYPE=home:;;Quay 1;Kiel;;24103;Germany
NOTE:Likes tea\\; not coffee.
PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQSkZJRgABAQAAAQABAAD
END:VCARD
"""


def test_rtf_gives_its_words() -> None:
    parsed = parse(RTF, name="fees.rtf")
    assert parsed.text.split() == ["Gebühren", "für", "Boote.", "Second."]
    assert (parsed.title, parsed.media_type) == ("Berth fees", "application/rtf")
    assert parse(RTF, name="fees.doc").text == parsed.text


def test_a_notebook_gives_texts_code_and_printed_output() -> None:
    picture = {"image/png": "iVBORw0KGgo" * 99, "text/plain": ["<Figure>"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "![](data:image/png;base64,AAAA)"]},
        {
            "cell_type": "code",
            "source": "print('```')",
            "outputs": [
                {"output_type": "stream", "text": ["ebb\n"]},
                {"output_type": "display_data", "data": picture},
                {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    data = json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}).encode()
    parsed = parse(data, name="tides.ipynb")
    assert parsed.title == "Tides"
    assert parsed.text == (
        "# Tides\n![]()\n\n````python\nprint('```')\n````\n\n```\nebb\n```\n\n"
        "```\n<Figure>\n```\n\n"
        "```\nKeyError: 'x'\n```"
    )


def test_a_notebook_of_the_third_version_is_read() -> None:
    sheets = [{"cells": [{"cell_type": "code", "input": ["x = 1"], "outputs": []}]}]
    data = json.dumps({"worksheets": sheets, "nbformat": 3}).encode()
    assert parse(data, name="old.ipynb").text == "```python\nx = 1\n```"


def test_an_event_has_its_time_place_and_people() -> None:
    parsed = parse(EVENT.replace("\n", "\r\n").encode(), name="meeting.ics")
    assert parsed.text == (
        "## Berth meeting, second\n\nStart: 2026-03-14 15:09 Europe/Berlin  \n"
        "End: 2026-03-14 15:09 UTC  \nRepeats: FREQ=WEEKLY  \nWhere: Pier 3  \n"
        "Organizer: Hopper, Grace <grace@example.org>\n\n"
        "Bring the\nplan. A line that is folded."
    )
    assert (parsed.title, parsed.entities) == ("Harbour", ("Hopper, Grace",))
    assert parsed.event_time == 1_773_497_366.0


def test_a_calendar_that_is_cut_off_gives_what_it_has() -> None:
    assert "Berth meeting" in parse(EVENT[:200].encode(), name="a.ics").text


@pytest.mark.parametrize("start", ["20261345", "20260314T240000Z", "soon"])
def test_a_time_that_does_not_exist_is_kept_as_written(start: str) -> None:
    event = f"BEGIN:VEVENT\nSUMMARY:Berth\nDTSTART:{start}\nEND:VEVENT\n"
    text = f"BEGIN:VCALENDAR\n{event}END:VCALENDAR".encode()
    parsed = parse(text, name="a.ics")
    assert parsed.text == f"## Berth\n\nStart: {start}"
    assert parsed.event_time is None


def test_a_calendar_without_entries_is_refused() -> None:
    with pytest.raises(UnreadableDocumentError, match="contains no text"):
        parse(b"BEGIN:VCALENDAR\nEND:VCALENDAR\n", name="a.ics")


def test_a_contact_card_has_what_is_known_of_a_person() -> None:
    parsed = parse(CARD.encode(), name="grace.vcf")
    assert parsed.text == (
        "## Grace Hopper\n\nEmail (work): grace@example.org  \nPhone (cell): +49 431 1  \n"
        "Address (home): Quay 1, Kiel, 24103, Germany\n\nLikes tea; not coffee."
    )
    assert (parsed.title, parsed.entities) == ("Grace Hopper", ("Grace Hopper",))


def test_an_old_card_in_quoted_printable_is_decoded() -> None:
    card = (
        "BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:=C3=84rzte;J=C3=B6=\n"
        "rg\nTEL;HOME:1\nEND:VCARD\n"
    )
    assert parse((card * 2).encode(), name="a.vcf").entities == ("Jörg Ärzte",)


def test_base64_in_a_text_is_left_out_and_long_words_stay() -> None:
    data = "iVBORw0KGgoAAAANSUhEUgAA" * 40
    genes = "ACGT" * 300
    text = parse(f"before\n{data}\nafter\n{genes}\n".encode(), name="a.txt").text
    assert text == f"before\n[960 characters of base64]\nafter\n{genes}\n"
