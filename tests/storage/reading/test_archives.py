"""Office documents and books are read by their structure, however irregular they are."""

import io
import zipfile

import docx
import pytest

from storage.errors import UnreadableDocumentError
from storage.reading.parse import ParsedDocument, parse

RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def archive(files: dict[str, str | bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return packed.getvalue()


def relations(**targets: str) -> str:
    """The relations of a part, by id: `officeDocument=word/document.xml` is also its kind."""
    each = "".join(
        f'<Relationship Id="{name}" Type="{RELATION}/{name.rstrip("0123456789")}"'
        f' Target="{target}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{each}</Relationships>'


def word(body: str, **parts: str) -> bytes:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    files: dict[str, str | bytes] = {
        "_rels/.rels": relations(officeDocument="word/document.xml"),
        "word/document.xml": f"<w:document {space}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(
            image="NULL", **{name: f"{name}.xml" for name in parts}
        ),
    }
    for name, content in parts.items():
        files[f"word/{name}.xml"] = f"<w:{name} {space}>{content}</w:{name}>"
    return archive(files)


def paragraph(text: str, before: str = "") -> str:
    return f"<w:p>{before}<w:r><w:t>{text}</w:t></w:r></w:p>"


def sheet(rows: list[list[str | float]]) -> str:
    cells = ""
    for number, row in enumerate(rows, start=1):
        cells += f'<row r="{number}">'
        for column, value in zip("ABCDEF", row, strict=False):
            place = f'r="{column}{number}"'
            cells += (
                f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>'
                if isinstance(value, str)
                else f"<c {place}><v>{value}</v></c>"
            )
        cells += "</row>"
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{cells}</sheetData></worksheet>'


def workbook(**sheets: str) -> bytes:
    names = "".join(
        f'<sheet name="{name}" sheetId="{at}" r:id="worksheet{at}"/>'
        for at, name in enumerate(sheets, start=1)
    )
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    targets = {f"worksheet{at}": f"sheet{at}.xml" for at in range(1, len(sheets) + 1)}
    files: dict[str, str | bytes] = {
        "_rels/.rels": relations(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{space}" xmlns:r="{RELATION}">'
        f"<sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(**targets),
    }
    for at, content in enumerate(sheets.values(), start=1):
        files[f"xl/sheet{at}.xml"] = content
    return archive(files)


def slides(*bodies: str, notes: str = "") -> bytes:
    spaces = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
        ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
        f' xmlns:r="{RELATION}"'
    )
    listed = "".join(f'<p:sldId r:id="slide{at}"/>' for at in range(len(bodies), 0, -1))
    files: dict[str, str | bytes] = {
        "_rels/.rels": relations(officeDocument="ppt/presentation.xml"),
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{listed}</p:sldIdLst>"
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"slide{at}": f"slides/slide{at}.xml" for at in range(1, len(bodies) + 1)}
        ),
    }
    for at, body in enumerate(bodies, start=1):
        files[f"ppt/slides/slide{at}.xml"] = f"<p:sld {spaces}>{body}</p:sld>"
        files[f"ppt/slides/_rels/slide{at}.xml.rels"] = relations(
            notesSlide="../notes.xml", hyperlink="#_ftn1"
        )
    files["ppt/notes.xml"] = f"<p:notes {spaces}>{notes}</p:notes>"
    return archive(files)


def shape(text: str, kind: str = "") -> str:
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    return f"<p:sp>{place}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def open_document(kind: str, body: str, **files: str) -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "text", "table", "drawing")
    )
    content = f"<office:document {spaces}><office:body>{body}</office:body></office:document>"
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    return archive({"mimetype": media_type, "content.xml": content, **files})


def book(chapters: dict[str, str], **files: str) -> bytes:
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in chapters
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in reversed(chapters))
    metadata = (
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Tides</dc:title>'
        "<dc:creator>Ada</dc:creator></metadata>"
    )
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles>"
            '<rootfile full-path="OPS/a.opf"/></rootfiles></container>',
            "OPS/a.opf": f'<package xmlns="http://www.idpf.org/2007/opf">{metadata}'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{
                f"OPS/{name}.xhtml": f"<html><body>{body}</body></html>"
                for name, body in chapters.items()
            },
            **files,
        }
    )


def test_sheets_of_a_workbook_are_sections_and_rows_lines() -> None:
    data = workbook(
        Fees=sheet([["Berth", "Fee"], ["Nord", 40], ["Süd|West", 12.5]]),
        Empty=sheet([]),
        Notes=sheet([["", ""], ["paid until May"]]),
    )
    parsed = parse(data, name="fees.xlsx")
    assert parsed.text == (
        "## Fees\n\n| Berth | Fee |\n| Nord | 40 |\n| Süd\\|West | 12.5 |\n\n"
        "## Notes\n\n| paid until May |"
    )
    assert parsed.markdown
    assert parsed.media_type.endswith("spreadsheetml.sheet")


def test_a_workbook_of_open_document_is_read_as_one() -> None:
    cells = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'
        for text in ("Nord", "paid")
    )
    row = f'<table:table table:name="Fees"><table:table-row>{cells}</table:table-row></table:table>'
    body = f"<office:spreadsheet>{row}</office:spreadsheet>"
    data = open_document("spreadsheet", body, **{"META-INF/manifest.xml": "<m/>"})
    parsed = parse(data, name="fees.ods")
    assert parsed.text == "## Fees\n\n| Nord | paid |"
    assert parsed.media_type == "application/vnd.oasis.opendocument.spreadsheet"


def test_a_comment_of_a_workbook_is_read_once() -> None:
    data = workbook(Fees=sheet([["Nord"]]))
    unpacked = zipfile.ZipFile(io.BytesIO(data))
    files: dict[str, str | bytes] = {name: unpacked.read(name) for name in unpacked.namelist()}
    note = (
        "<comments><commentList><comment><text><t>Paid  in May</t></text></comment></commentList>"
    )
    parsed = parse(archive(files | {"xl/comments1.xml": f"{note}</comments>"}), name="a.xlsx")
    assert parsed.text == "## Fees\n\n| Nord |\n\nPaid in May"


def test_slides_are_read_in_the_order_in_which_they_are_shown() -> None:
    row = "".join(f"<a:tc><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>" for text in "ab")
    table = f"<p:graphicFrame><a:tbl><a:tr>{row}</a:tr></a:tbl></p:graphicFrame>"
    data = slides(
        shape("Last words") + shape("7", "sldNum"),
        shape("below") + shape("Harbour plan", "title") + table,
        notes=shape("Speak slowly", "body") + shape("3", "sldNum"),
    )
    parsed = parse(data, name="plan.pptx")
    assert parsed.text == (
        "## Harbour plan\n\nbelow\n| a | b |\nNotes: Speak slowly\n\n"
        "## Slide 2\n\nLast words\nNotes: Speak slowly"
    )
    assert parsed.title == "Harbour plan"


def test_a_table_that_is_irregular_does_not_cost_the_document() -> None:
    cell = "<w:tc><w:tcPr><w:vMerge/><w:gridSpan w:val='9'/></w:tcPr>{}</w:tc>"
    rows = f"<w:tr>{cell.format(paragraph('Nord'))}</w:tr><w:tr><w:tc/></w:tr><w:tr/>"
    data = word(paragraph("Before.") + f"<w:tbl>{rows}</w:tbl>" + paragraph("After."))
    assert parse(data, name="a.docx").text == "Before.\n\n| Nord |\n\nAfter."


def test_word_gives_what_is_in_controls_insertions_notes_and_comments() -> None:
    body = (
        f"<w:sdt><w:sdtContent>{paragraph('In a control.')}</w:sdtContent></w:sdt>"
        "<w:p><w:ins><w:r><w:t>Inserted.</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>Deleted.</w:delText></w:r></w:del></w:p>"
    )
    text = parse(
        word(body, footnotes=f"<w:footnote>{paragraph('A source.')}</w:footnote>"), name="a.docx"
    ).text
    assert text == "In a control.\n\nInserted.\n\n## Footnotes\n\nA source."


@pytest.mark.parametrize("kind", ["template.main", "document.macroEnabled.main"])
def test_templates_and_documents_with_macros_are_read(kind: str) -> None:
    made = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("The form.")
    document.save(made)
    with zipfile.ZipFile(made) as read:
        parts = {name: read.read(name) for name in read.namelist()}
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(
        b"document.main", kind.encode()
    )
    assert parse(archive(dict(parts)), name="a.dotx").text == "The form."


def test_open_documents_keep_headings_lists_and_tables() -> None:
    data = open_document(
        "text",
        "<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        "<text:h text:outline-level='2'>Fees</text:h><text:p>Two<text:s/>words.</text:p>"
        "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Nord</text:p>"
        "</table:table-cell><table:table-cell><text:p>40</text:p></table:table-cell>"
        "</table:table-row></table:table></office:text>",
        **{"meta.xml": "<m xmlns:dc='d'><dc:title>The fees</dc:title></m>"},
    )
    parsed = parse(data, name="fees.odt")
    assert parsed.text == "## Fees\n\nTwo words.\n\n- one\n| Nord | 40 |"
    assert parsed.title == "The fees"


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    parsed = parse(book({"b": "<h1>Two</h1>Ebb.", "a": "<h1>One</h1>Flood."}), name="tides.epub")
    assert parsed.text == "# One\n\nFlood.\n\n# Two\n\nEbb."
    assert (parsed.title, parsed.entities) == ("Tides", ("Ada",))


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (book({"a": ""}, **{"META-INF/encryption.xml": "<e/>"}), "a.epub", "encrypted it (DRM)"),
        (
            open_document("text", "", **{"META-INF/manifest.xml": "<m><encryption-data/></m>"}),
            "a.odt",
            "It is encrypted with a password",
        ),
        (archive({"META-INF/MANIFEST.MF": "", "A.class": ""}), "a.jar", "It is a Java archive"),
        (workbook(A=sheet([])), "a.xlsx", "It contains no text"),
    ],
)
def test_what_is_closed_or_empty_is_refused(data: bytes, name: str, message: str) -> None:
    with pytest.raises(UnreadableDocumentError, match="cannot be read") as caught:
        parse(data, name=name)
    assert message in caught.value.message
    assert caught.value.suggestions


@pytest.mark.parametrize("name", ["a.docx", "a.odt", "a.svg"])
def test_entities_are_not_expanded(name: str) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "words"><!ENTITY b "&a;&a;&a;&a;">]>'
    inside = {
        "a.docx": word(paragraph("kept &b;")),
        "a.odt": open_document("text", "<office:text><text:p>kept &b;</text:p></office:text>"),
        "a.svg": bomb.encode() + b"<svg><text>kept &b;</text></svg>",
    }[name]
    if name != "a.svg":
        with zipfile.ZipFile(io.BytesIO(inside)) as read:
            parts = {each: read.read(each) for each in read.namelist()}
        main = "word/document.xml" if name == "a.docx" else "content.xml"
        parts[main] = bomb.encode() + parts[main]
        inside = archive(dict(parts))
    assert parse(inside, name=name).text == "kept"


def test_a_drawing_gives_its_labels_only() -> None:
    drawing = b"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/><text>Pier 3</text></svg>"
    assert parse(drawing, name="map.svg").text == "Pier 3"


def read(data: bytes) -> ParsedDocument:
    return parse(data, name="a")


@pytest.mark.parametrize(
    "data", [word(paragraph("words")), workbook(A=sheet([["words"]])), slides(shape("words"))]
)
def test_an_archive_is_known_by_what_is_in_it(data: bytes) -> None:
    assert "words" in read(data).text
