"""Tables of a PDF keep their rows; columns of text stay one after the other."""

from io import BytesIO

from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Frame, Paragraph, SimpleDocTemplate, Table

from storage.reading.parse import parse

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
