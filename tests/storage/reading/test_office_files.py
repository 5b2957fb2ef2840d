"""Tables, columns, forms and scanned pages of a PDF are read."""

import sys
from io import BytesIO

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Frame, Paragraph, SimpleDocTemplate, Table

from storage.errors import UnreadableDocumentError
from storage.reading import office_files
from storage.reading.parse import parse, parse_isolated

STYLE = getSampleStyleSheet()["Normal"]


def built(*flowables: object) -> str:
    data = BytesIO()
    SimpleDocTemplate(data, pagesize=A4).build(list(flowables))
    return parse(data.getvalue(), name="offer.pdf").text


def test_each_row_of_a_table_is_one_line() -> None:
    rows = [["Item", "Count", "Price"], ["Copper pipe", "12", "4.50"], ["Ball valve", "3", "11.20"]]
    text = built(Paragraph("We offer: " * 30, STYLE), Table(rows), Paragraph("Net prices.", STYLE))
    assert text.splitlines()[-4:] == [
        "Item | Count | Price",
        "Copper pipe | 12 | 4.50",
        "Ball valve | 3 | 11.20",
        "Net prices.",
    ]


def test_a_cell_of_several_lines_stays_in_its_row() -> None:
    found = "The bollards are rusty and two of the five ladders are missing steps"
    rows = [["North pier", found, "poor"], ["South pier", "Freshly painted", "good"]]
    cells = [[Paragraph(cell, STYLE) for cell in row] for row in rows]
    assert built(Table(cells, colWidths=[80, 160, 60])).splitlines() == [
        f"North pier | {found} | poor",
        "South pier | Freshly painted | good",
    ]


def test_columns_of_text_are_read_one_after_the_other() -> None:
    data = BytesIO()
    canvas = Canvas(data, pagesize=A4)
    sides = {40: "The left column speaks of harbours. ", 310: "The right one is about bread. "}
    for x, said in sides.items():
        Frame(x, 100, 240, 650).addFromList([Paragraph(said * 12, STYLE)], canvas)
    canvas.save()
    text = parse(data.getvalue(), name="columns.pdf").text
    left, right = (text.replace("\n", " ").count(said.strip()) for said in sides.values())
    assert (left, right, "|" in text) == (12, 12, False)


def scan(*pages: str, last: str = "A page of letters.") -> bytes:
    """A PDF whose pages are pictures of text, but for the last one, which is text."""
    data = BytesIO()
    canvas = Canvas(data, pagesize=A4)
    for page in pages:
        picture = Image.new("L", (1240, 1754), "white")
        ImageDraw.Draw(picture).text(
            (150, 300), page, font=ImageFont.load_default(40), fill="black"
        )
        canvas.drawImage(ImageReader(picture), 0, 0, *A4)
        canvas.showPage()
    canvas.drawString(72, 700, last)
    canvas.save()
    return data.getvalue()


@pytest.mark.slow
async def test_pages_that_are_pictures_are_recognized_within_the_limits_of_a_reader() -> None:
    data = scan("The north pier is closed in May.", "Fees rise by forty euros.")
    parsed = await parse_isolated(data, name="scan.pdf", timeout=120)
    assert "north pier is closed in May" in parsed.text
    assert "Fees rise by forty euros" in parsed.text
    assert parsed.text.endswith("A page of letters.")
    assert parsed.notes == ()


@pytest.mark.slow
def test_pages_for_which_no_time_is_left_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office_files, "OCR_SECONDS", -1)
    parsed = parse(scan("The north pier."), name="scan.pdf")
    assert parsed.text == "A page of letters."
    assert parsed.notes == ("1 of its 2 pages are pictures that were not read.",)


def test_a_scan_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(UnreadableDocumentError, match="pictures but no text") as caught:
        parse(scan("The north pier.", last=""), name="scan.pdf")
    assert "toolcrib[ocr]" in caught.value.suggestions[0]


def test_the_values_of_a_form_are_read() -> None:
    data = BytesIO()
    canvas = Canvas(data)
    canvas.drawString(72, 800, "Berth application")
    canvas.acroForm.textfield(name="boat", tooltip="Name of the boat", value="Seagull", x=72, y=700)
    canvas.acroForm.textfield(name="empty", x=72, y=600)
    canvas.acroForm.checkbox(name="winter", checked=True, x=72, y=500)
    canvas.save()
    text = parse(data.getvalue(), name="form.pdf").text
    assert text == "Berth application\n\nName of the boat: Seagull\nwinter: Yes"
