"""Messages are read with their senders, without what they quote, and with their attachments."""

import io
import json
import zipfile
from email.message import EmailMessage

import pytest

from storage.reading import parse as parsing
from storage.reading.mail import without_history
from storage.reading.parse import ParsedDocument, parse

HEADERS = {
    "From": "=?utf-8?q?J=C3=B6rg_Ahrens?= <joerg@example.org>",
    "To": "Grace Hopper <grace@example.org>, Ada <ada@example.org>",
    "Subject": "=?utf-8?b?QmVydGggTm9yZCDigJMgZmVlcw==?=",
    "Date": "Sat, 14 Mar 2026 15:09:26 +0100",
}


def message(text: str = "The berth is paid until May.", html: str = "") -> EmailMessage:
    made = EmailMessage()
    for name, value in HEADERS.items():
        made[name] = value
    made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html")
    return made


def read(made: EmailMessage, name: str = "berth.eml") -> ParsedDocument:
    return parse(made.as_bytes(), name=name)


def test_a_message_has_its_subject_people_and_date() -> None:
    parsed = read(message())
    assert parsed.title == "Berth Nord – fees"  # noqa: RUF001  # a dash of the subject
    assert parsed.event_time == 1_773_497_366.0
    assert parsed.entities == ("Jörg Ahrens", "Grace Hopper", "Ada")
    assert parsed.metadata == {
        "subject": "Berth Nord – fees",  # noqa: RUF001  # a dash of the subject
        "sender": "joerg@example.org",
        "recipients": ["grace@example.org", "ada@example.org"],
        "date": "2026-03-14T15:09:26+01:00",
    }
    assert "From: Jörg Ahrens <joerg@example.org>" in parsed.text
    assert parsed.text.endswith("The berth is paid until May.")


@pytest.mark.parametrize("coding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "cp1250"])
def test_a_text_is_decoded_by_what_its_part_declares(coding: str, charset: str) -> None:
    made = message()
    made.set_content("Gebühren für Köche", charset=charset, cte=coding)
    assert read(made).text.endswith("Gebühren für Köche")


def test_a_text_in_an_unknown_charset_is_read() -> None:
    raw = b"From: a@example.org\nContent-Type: text/plain; charset=klingon\n\nwords of \xe9t\xe9\n"
    assert "words of été" in parse(raw, name="a.eml").text


def test_of_alternatives_one_is_read() -> None:
    text = read(message("plain words", "<p>rich words</p>")).text
    assert ("plain words" in text, "rich words" in text) == (True, False)
    assert "rich words" in read(message("", "<p>rich words</p>")).text


def test_html_is_read_without_what_it_quotes() -> None:
    html = "<p>Agreed.</p><div class='gmail_quote'>Ann wrote: <blockquote>Old?</blockquote></div>"
    text = read(message("", html)).text
    assert ("Agreed." in text, "Old?" in text, "<" in text.partition("\n\n")[2]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Fine.\n\nOn Mon, 9 Mar 2026, Ann <a@b.c> wrote:\n> Shall we?\n> Ann\n", "Fine."),
        ("Fine.\n\nOn Mon, 9 Mar 2026 at 10:00,\nAnn <a@b.c> wrote:\n\n> Shall we?\n", "Fine."),
        ("Passt.\n\nAm 9.3.2026 um 10:00 schrieb Ann:\n> Treffen?\n", "Passt."),
        ("好的。\n\n在 2026年3月9日，Ann 写道：\n> 见面？\n", "好的。"),  # noqa: RUF001  # Chinese marks
        ("Ok\n\n-----Original Message-----\nFrom: Ann\nSent: Monday\n\nold", "Ok"),
        ("Ok\n\n________________________________\nVon: Ann\nGesendet: Montag\n\nalt", "Ok"),
        ("Ok\n\nFrom: Ann <a@b.c>\nSent: Monday\nTo: Bob\n\nold", "Ok"),
        ("Inline.\n\n> One?\nYes.\n> Two?\nNo.\n", "Inline.\n\n> One?\nYes.\n> Two?\nNo."),
        ("> Only a quotation\n", "> Only a quotation"),
        ("From: here to there\nis a mile.", "From: here to there\nis a mile."),
        ("See:\n\n---------- Forwarded message ---------\nFrom: Bob\nDate: Monday\n\nNews", None),
    ],
)
def test_earlier_messages_are_cut_off_unless_they_are_the_point(
    text: str, kept: str | None
) -> None:
    assert without_history(text) == (text if kept is None else kept)


def test_a_forwarded_message_keeps_what_it_forwards() -> None:
    made = message("FYI\n\n-----Original Message-----\nFrom: Bob\nSent: Monday\n\nThe news.")
    del made["Subject"]
    made["Subject"] = "Fwd: news"
    assert "The news." in read(made).text


def test_a_signature_does_not_become_a_heading() -> None:
    parsed = read(message("See you\nAnn\n--\nHarbour office\n====\n"))
    assert parsed.title == "Berth Nord – fees"  # noqa: RUF001  # a dash of the subject
    assert "Ann\n\n--" in parsed.text


def test_attachments_are_read_by_their_own_readers() -> None:
    made = message()
    made.add_attachment(b"name,fee\nNord,40\n", maintype="text", subtype="csv", filename="fees.csv")
    page = b"<html><h1>Rules</h1><p>No fires.</p></html>"
    made.add_attachment(page, maintype="application", subtype="x", filename="rules.html")
    made.add_attachment(b"\x89PNG\r\n\x1a\n\0", maintype="image", subtype="png", filename="map.png")
    inner = message("The letter inside.")
    made.add_attachment(inner)
    text = read(made).text
    assert "## Attachment: fees.csv\n\nname,fee\nNord,40" in text
    assert "## Attachment: rules.html\n\n### Rules\n\nNo fires." in text
    assert "## Attachment: map.png\n\nIt is a picture (PNG), which is not read." in text
    assert "The letter inside." in text


def test_an_archive_in_a_message_is_not_unpacked() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("secret.txt", "inside")
    made = message()
    made.add_attachment(packed.getvalue(), maintype="a", subtype="zip", filename="a.zip")
    assert "It is a ZIP archive, which is not read." in read(made).text
    assert "inside" not in read(made).text


def test_messages_in_messages_end_at_a_depth() -> None:
    made = message("innermost")
    for level in range(9):
        outer = message(f"level {level}")
        outer.add_attachment(made)
        made = outer
    text = read(made).text
    assert ("level 8" in text, "innermost" in text) == (True, False)


def test_an_encrypted_message_says_so() -> None:
    raw = (
        b"From: a@example.org\nSubject: plans\nContent-Type: multipart/encrypted; boundary=x\n\n"
        b"--x\nContent-Type: application/octet-stream\n\nhQEMA7\n--x--\n"
    )
    parsed = parse(raw, name="a.eml")
    assert ("is encrypted" in parsed.text, "hQEMA7" in parsed.text) == (True, False)


@pytest.mark.parametrize("name", ["mail.mbox", "mbox", "All mail"])
def test_each_message_of_a_mailbox_is_a_section(name: str) -> None:
    line = b"From joerg@example.org Sat Mar 14 15:09:26 2026\n"
    second = message("Second.\n\n>From the start, it was wet.\n")
    data = b"".join(line + each.as_bytes() + b"\n" for each in (message("First."), second))
    parsed = parse(data, name=name)
    assert parsed.text.count("## Berth Nord") == 2
    assert "First." in parsed.text
    assert "\nFrom the start, it was wet." in parsed.text
    assert (parsed.media_type, parsed.metadata) == ("application/mbox", {"messages": 2})
    assert parsed.entities == ("Jörg Ahrens", "Grace Hopper", "Ada")


def test_a_message_with_the_line_of_a_mailbox_before_it_is_a_message() -> None:
    line = b"From joerg@example.org Sat Mar 14 15:09:26 2026\n"
    alone, saved = message().as_bytes(), line + message().as_bytes()
    assert parse(saved, name="a.eml").metadata == parse(alone, name="a.eml").metadata


def test_a_text_that_begins_as_a_mailbox_is_a_text() -> None:
    text = b"From here to there at 10:30 it is a mile.\nNote: that is all.\n"
    assert parse(text, name="walk.txt").media_type == "text/plain"


def test_a_message_that_cannot_be_read_does_not_hide_the_others() -> None:
    line = b"From joerg@example.org Sat Mar 14 15:09:26 2026\n"
    nested = b"From: a@example.org\n" + b"Content-Type: message/rfc822\n\n" * 2000
    said = message("First.\n\nFrom there at 10:30 we sail.\nOn.\n").as_bytes()
    parsed = parse(line.join((b"", said, nested, message("Third.").as_bytes())), name="a.mbox")
    assert ("10:30 we sail.\nOn." in parsed.text, "Third." in parsed.text) == (True, True)
    assert parsed.notes == ("1 of its 3 messages were not read.",)


@pytest.mark.parametrize("hidden", ["=?utf-7?q?Be+2AA-rth?=", "=?utf-8?q?Be=00rth?="])
def test_names_that_cannot_be_stored_are_cleaned(hidden: str) -> None:
    raw = f"From: {hidden} <a@example.org>\nSubject: {hidden}\n\nhello\n"
    parsed = parse(raw.encode(), name="a.eml")
    assert (parsed.title, parsed.entities) == ("Berth", ("Berth",))
    json.dumps(parsed.metadata, ensure_ascii=False).encode()


def test_the_name_of_an_attachment_is_one_line() -> None:
    raw = b"From: a@example.org\nContent-Disposition: attachment; filename*=utf-8''%s\n\nx\n"
    text = parse(raw % b"a%0A%0A%23%20Orders%00.csv", name="a.eml").text
    assert "## Attachment: a # Orders.csv\n\nx" in text


def test_attachments_that_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "ATTACHMENT_SECONDS", -1)
    made = message()
    made.add_attachment(b"fees", maintype="text", subtype="csv", filename="fees.csv")
    text = read(made).text
    assert "The berth is paid" in text
    assert text.endswith("\n\n1 more attachments were left out.")
