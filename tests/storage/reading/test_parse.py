import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import docx
import pytest
from anyio import to_process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from storage.errors import UnreadableDocumentError
from storage.reading import content
from storage.reading.formats import MAX_BYTES
from storage.reading.isolated import run_isolated
from storage.reading.parse import own_title, parse, parse_isolated

PAGE = b"""<!doctype html><html><head><title>The &amp; Title</title>
<style>p { color: red }</style><script>alert("no")</script></head><body>
<nav><a href="/">Menu</a></nav><h1>Engines <br>of old</h1><p>First <b>bold</b> words.<br>Second.</p>
<h2>Parts</h2><ul><li>Piston</li><li><p>Valve</p></li></ul>
<table><tr><th>Part<th>Mass<tr><td>Piston<td><p>2 kg</p></table>
<pre>def f():
    return 1</pre><svg><text>drawn</text></svg>closing words</body></html>"""


def pdf(*pages: str, title: str = "", owner: str = "", user: str = "") -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file)
    if title:
        canvas.setTitle(title)
    for page in pages:
        for row, line in enumerate(page.splitlines()):
            canvas.drawString(72, 800 - 14 * row, line)
        canvas.showPage()
    canvas.save()
    if not owner:
        return file.getvalue()
    writer = PdfWriter(clone_from=PdfReader(file))
    writer.encrypt(user_password=user, owner_password=owner, algorithm="RC4-128")
    encrypted = io.BytesIO()
    writer.write(encrypted)
    return encrypted.getvalue()


def word(title: str = "") -> bytes:
    document = docx.Document()
    document.core_properties.title = title
    document.add_heading("Engines", level=1)
    document.add_paragraph("Before the table.")
    table = document.add_table(rows=2, cols=3)
    for row, texts in enumerate((("Part", "Mass", "Colour"), ("Piston", "2 kg", "grey"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(1, 1).merge(table.cell(1, 2))
    document.add_paragraph("After the table.")
    document.add_heading("Lists", level=2)
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Bullet")
    document.add_paragraph("The end.")
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def archive(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return file.getvalue()


def old_office(stream: str) -> bytes:
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600 + stream.encode("utf-16-le")


PDF = pdf("The piston moves.", "The valve opens.", title="Engine manual")
WORD = word()


@pytest.fixture
async def workers() -> AsyncIterator[None]:
    """Ends the worker processes with the test, before its event loop does."""
    yield
    for process in to_process._process_pool_workers.get(set()).copy():
        with suppress(ProcessLookupError):
            process.kill()
        await process.aclose()


def test_markdown_keeps_its_text_and_says_what_its_front_matter_said() -> None:
    text = "# Engines of old #\n\nWords.\n"
    front = "---\ntags: [a]\naliases: Engines\ndate: 1970-01-02\nrating: 5\n---\n\n"
    parsed = parse((front + text).encode(), name="notes/engines.md")
    assert parsed.text == text
    assert (parsed.keywords, parsed.entities, parsed.event_time) == (
        ("a",),
        ("Engines",),
        129_600.0,
    )
    assert parsed.metadata == {"rating": 5}
    assert (parsed.title, parsed.media_type, parsed.markdown) == (
        "Engines of old",
        "text/markdown",
        True,
    )


def test_front_matter_gives_the_title_before_any_heading() -> None:
    text = b"---\ntitle: Steam\n---\n# Engines\n"
    assert parse(text, name="a.md").title == "Steam"
    assert parse(text, name="a.txt").title == "A"


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("journal/1970-01-02.md", 129_600.0),
        ("1970-01-02 Walk.md", 129_600.0),
        ("1970-01-02T10.md", 129_600.0),
        ("1970-13-02.md", None),
        ("1970-01-023.md", None),
        ("0000-00-00.md", None),
        ("walk 1970-01-02.md", None),
        ("1970-01-02.txt", None),
    ],
)
def test_a_note_is_of_the_day_that_its_name_begins_with(name: str, moment: float | None) -> None:
    assert parse(b"words", name=name).event_time == moment
    assert parse(b"---\ndate: 1970-01-03\n---\nwords", name=name).event_time == (
        216_000.0 if name.endswith(".md") else None
    )


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.txt", "text/plain"),
        ("a.py", "text/plain"),
        ("a.csv", "text/csv"),
        ("a.json", "application/json"),
        ("a.yaml", "application/yaml"),
        ("a.rst", "text/x-rst"),
        ("Makefile", "text/plain"),
    ],
)
def test_whatever_decodes_is_plain_text(name: str, media_type: str) -> None:
    parsed = parse(b"# a comment\r\nkey: 1\rlast", name=name)
    assert parsed.text == "# a comment\nkey: 1\nlast"
    assert (parsed.media_type, parsed.markdown) == (media_type, False)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("annual_report-2024.txt", "Annual report 2024"),
        ("2024-02-29.txt", "2024-02-29"),
        ("2024-02-29_budget - draft.txt", "2024-02-29 budget draft"),
        ("notes/README", "README"),
        (".env", ".env"),
        ("___.txt", "___.txt"),
        ("模型.txt", "模型"),
    ],
)
def test_a_text_without_a_title_is_called_by_its_name(name: str, title: str) -> None:
    assert parse(b"words", name=name).title == title


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_unicode_encodings_are_told_apart(codec: str) -> None:
    assert parse("Grüße, Welt\n".encode(codec), name="a.txt").text == "Grüße, Welt\n"


def test_html_becomes_markdown_with_all_its_text() -> None:
    parsed = parse(PAGE, name="page.html")
    assert parsed.title == "The & Title"
    assert parsed.text == textwrap.dedent(
        """\
        Menu

        # Engines of old

        First bold words.
        Second.

        ## Parts

        - Piston

        - Valve

        | Part | Mass |
        | Piston | 2 kg |

        ```
        def f():
            return 1
        ```

        closing words"""
    )
    assert parsed.markdown
    assert parsed.media_type == "text/html"


def test_html_without_a_title_is_called_by_its_heading() -> None:
    assert parse(b"<html><h2>Engines</h2>words", name="x.html").title == "Engines"


@pytest.mark.parametrize("name", ["page.pdf", "page.docx", "page", "page.txt"])
def test_html_is_known_by_its_bytes(name: str) -> None:
    assert parse(PAGE, name=name).media_type == "text/html"


def test_html_in_a_declared_encoding_is_read_in_it() -> None:
    page = '<html><head><meta charset="iso-8859-2"></head><p>Łódź żółw</p>'
    parsed = parse(page.encode("iso-8859-2"), name="page.html")
    assert parsed.text == "Łódź żółw"


def test_an_article_is_kept_and_its_menu_left_out() -> None:
    story = "".join(
        f"<p>Sentence {n} of the story tells of engines and pistons.</p>" for n in range(40)
    )
    page = (
        f"<html><body><nav><a href='/'>Menu item</a></nav><article><h1>Story</h1>{story}</article>"
    )
    text = parse(page.encode(), name="story.html").text
    assert "Sentence 39" in text
    assert "# Story" in text
    assert "Menu item" not in text


def test_html_nested_a_hundred_thousand_times_is_read() -> None:
    depth = 100_000
    page = b"<html>" + b"<div>" * depth + b"deep words" + b"</div>" * depth + b"<p>tail</p>"
    assert parse(page, name="deep.html").text == "deep words\n\ntail"


def test_pdf_gives_its_pages_and_title() -> None:
    parsed = parse(PDF, name="x.pdf")
    assert parsed.text == "The piston moves.\n\nThe valve opens."
    assert (parsed.title, parsed.media_type, parsed.markdown) == (
        "Engine manual",
        "application/pdf",
        False,
    )


def test_words_that_a_pdf_hyphenates_are_joined() -> None:
    assert parse(pdf("the exam-\nple moves"), name="x.pdf").text == "the example moves"


def test_pdf_is_known_by_its_bytes() -> None:
    assert parse(PDF, name="manual.txt").media_type == "application/pdf"


def test_pdf_that_anyone_may_open_is_read() -> None:
    data = pdf("Open words.", owner="key")
    assert parse(data, name="x.pdf").text == "Open words."


def test_docx_becomes_markdown_in_document_order() -> None:
    parsed = parse(WORD, name="x.docx")
    assert parsed.text == textwrap.dedent(
        """\
        # Engines

        Before the table.

        | Part | Mass | Colour |
        | Piston | 2 kg grey |

        After the table.

        ## Lists

        - one
        - two

        The end."""
    )
    assert (parsed.title, parsed.markdown) == ("Engines", True)


def test_docx_with_a_title_is_called_by_it() -> None:
    assert parse(word(title="The manual"), name="x.docx").title == "The manual"


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "a.txt", "'a.txt' is empty."),
        (b" \n\t", "a.txt", "'a.txt' cannot be read. It contains no text."),
        (b"<html><script>x</script>", "a.html", "'a.html' cannot be read. It contains no text."),
        (b"\0\1\2\3" * 50, "a.txt", "'a.txt' cannot be read. The content is binary"),
        (b"\x7fELF\x00\x01\x02" * 50, "a.txt", "'a.txt' cannot be read. It is a program"),
        (pdf("secret", owner="key", user="key"), "a.pdf", "It is encrypted with a password."),
        (pdf(""), "a.pdf", "It contains no text."),
        (PDF[:300], "a.pdf", "'a.pdf' cannot be read. It is damaged"),
        (WORD[:3000], "a.docx", "'a.docx' cannot be read. It is damaged"),
        (archive({"a.txt": b"x"}), "a.zip", "It is a ZIP archive"),
        (archive({"Index/Document.iwa": b"x"}), "a.pages", "It is a document of Apple iWork"),
        (old_office("WordDocument"), "a.doc", "It is a Word document in the old format (.doc)"),
        (old_office("PowerPoint Document"), "a.ppt", "a presentation in the old format (.ppt)"),
        (old_office("__properties_version1.0"), "a.msg", "It is an Outlook message (.msg)"),
        (old_office("EncryptedPackage"), "a.docx", "It is an Office document with a password"),
        (old_office(""), "a.wps", "It is a compound file of an old Windows program"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 9, "a.png", "It is a picture (PNG)"),
        (b"%!PS-Adobe-3.0\n/Times findfont", "a.ps", "It is a PostScript program"),
        (b"SQLite format 3\0" + b"\0" * 99, "a.db", "It is an SQLite database"),
        (b"\0\0\0\x20ftypisom" + b"\0" * 9, "a.mp4", "It is a recording or a video (MPEG-4)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_name(data: bytes, name: str, message: str) -> None:
    with pytest.raises(UnreadableDocumentError) as caught:
        parse(data, name=name)
    assert message in caught.value.message
    assert name in caught.value.message
    assert caught.value.suggestions


@pytest.mark.parametrize("start", ["BMW", "MZKT"])
def test_a_word_is_not_taken_for_the_beginning_of_a_binary_file(start: str) -> None:
    data = start.encode() + bytes(range(0x80, 0x100)) * 9
    with pytest.raises(UnreadableDocumentError, match="not UTF-8 and its encoding is uncertain"):
        parse(data, name="a.txt")


def test_a_file_over_the_limit_is_refused() -> None:
    with pytest.raises(UnreadableDocumentError, match=r"'big\.txt' has 50,000,001 bytes; at most"):
        parse(b"x" * (MAX_BYTES + 1), name="big.txt")


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    data = archive({"word/document.xml": b"", "bomb": b"\0" * (content.MAX_UNPACKED_BYTES + 1)})
    with pytest.raises(UnreadableDocumentError, match="It unpacks to 300,000,001 bytes"):
        parse(data, name="bomb.docx")


def test_a_zip_that_lies_about_its_size_is_refused() -> None:
    with zipfile.ZipFile(io.BytesIO(WORD)) as read:
        parts = {each: read.read(each) for each in ("_rels/.rels", "[Content_Types].xml")}
    honest = archive(parts | {"word/document.xml": b"<a/>" * 1000})
    lying = honest.replace((4000).to_bytes(4, "little"), (4).to_bytes(4, "little"))
    assert lying != honest
    with pytest.raises(UnreadableDocumentError, match="It is damaged"):
        parse(lying, name="lie.docx")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=100).map(lambda tail: b"%PDF-1.4\n" + tail),
        st.binary(max_size=100).map(lambda tail: b"PK\x03\x04" + tail),
        st.text(max_size=100).map(lambda text: f"<html>{text}".encode("utf-8", "replace")),
        st.integers(0, len(WORD)).map(lambda end: WORD[:end]),
        st.tuples(st.integers(0, len(PDF) - 1), st.binary(min_size=1, max_size=9)).map(
            lambda change: PDF[: change[0]] + change[1] + PDF[change[0] + len(change[1]) :]
        ),
    ),
    name=st.sampled_from(["a.txt", "a.md", "a.html", "a.pdf", "a.docx", "a"]),
)
def test_hostile_bytes_give_text_or_one_kind_of_error(data: bytes, name: str) -> None:
    with suppress(UnreadableDocumentError):
        parsed = parse(data, name=name)
        assert parsed.text.strip()
        assert parsed.title
        assert parsed.text.encode("utf-8")


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(
    ("data", "name"), [(b"# Engines\n", "a.md"), (PAGE, "a.html"), (PDF, "a.pdf"), (WORD, "a.docx")]
)
async def test_every_format_is_read_the_same_in_isolation(data: bytes, name: str) -> None:
    assert await parse_isolated(data, name=name, timeout=60) == parse(data, name=name)


@pytest.mark.usefixtures("workers")
async def test_an_error_in_isolation_keeps_its_message_and_suggestions() -> None:
    data = pdf("secret", owner="key", user="key")
    with pytest.raises(UnreadableDocumentError, match=r"'a\.pdf' cannot be read") as caught:
        await parse_isolated(data, name="a.pdf", timeout=60)
    assert caught.value.suggestions == ("Save a copy without a password.",)


async def stopped_worker() -> int:
    """The process that reads the next file, and does not get on with it."""
    if sys.platform == "win32":
        pytest.skip("Windows cannot stop a process")
    worker = await to_process.run_sync(os.getpid)
    os.kill(worker, signal.SIGSTOP)
    return worker


@pytest.mark.usefixtures("workers")
async def test_a_file_that_takes_too_long_is_given_up() -> None:
    worker = await stopped_worker()
    with pytest.raises(UnreadableDocumentError, match=r"'slow\.html' took longer than 1 s"):
        await parse_isolated(PAGE, name="slow.html", timeout=0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert (await parse_isolated(PAGE, name="a.html", timeout=60)).title == "The & Title"


@pytest.mark.usefixtures("workers")
async def test_a_worker_that_dies_is_an_unreadable_document() -> None:
    worker = await stopped_worker()

    async def read() -> None:
        with pytest.raises(UnreadableDocumentError, match="the process that read it died"):
            await parse_isolated(PAGE, name="a.html", timeout=60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        os.kill(worker, signal.SIGKILL)
    assert (await parse_isolated(PAGE, name="a.html", timeout=60)).title == "The & Title"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timers")
@pytest.mark.usefixtures("workers")
async def test_the_time_of_a_reader_is_processor_time() -> None:
    await to_process.run_sync(os.getpid)  # a worker that has started
    spin = "while True:\n  try: sum(range(1000))\n  except Exception: pass"
    with pytest.raises(UnreadableDocumentError, match=r"1 seconds of processor time"):
        await run_isolated(partial(exec, spin), name="a.html", timeout=1)
    assert (await parse_isolated(PAGE, name="a.html", timeout=60)).title == "The & Title"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits all memory")
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("paragraph", [b"<w:p><w:r><w:t>w</w:t></w:r></w:p>", b"<w:p/>"])
@pytest.mark.slow
async def test_a_document_may_take_so_much_memory(paragraph: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(WORD)) as read:
        parts = {each: read.read(each) for each in read.namelist()}
    start, body, end = parts["word/document.xml"].partition(b"<w:body>")
    parts["word/document.xml"] = start + body + paragraph * 8_000_000 + end
    with pytest.raises(UnreadableDocumentError, match=r"'many\.docx' takes more than 1,024 MiB"):
        await parse_isolated(archive(parts), name="many.docx", timeout=60)
    assert (await parse_isolated(WORD, name="a.docx", timeout=60)).text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no alarm")
def test_a_worker_ends_by_itself_when_nobody_is_left_to_end_it() -> None:
    program = (
        "from functools import partial;"
        "from storage.reading.isolated import _run_limited;"
        "from storage.reading.parse import parse;"
        "page = '<html><p ' + ' '.join(f'a{n}=1' for n in range(200_000)) + '>words</p></html>';"
        "_run_limited(partial(parse, page.encode(), name='minutes.html'), 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == -signal.SIGALRM


def test_reading_writes_nothing_to_stdout_from_a_console_script(tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(re.sub(rb"startxref\s+\d+", b"startxref 7", PDF))
    (tmp_path / "page.html").write_bytes(PAGE)
    script = tmp_path / "toolcrib-like"
    script.write_text(
        textwrap.dedent(
            """\
            import sys
            from pathlib import Path
            import anyio
            from storage.reading.parse import parse_isolated

            async def main():
                for path in map(Path, sys.argv[1:]):
                    parsed = await parse_isolated(path.read_bytes(), name=path.name, timeout=60)
                    assert parsed.text.strip(), path

            if __name__ == "__main__":
                anyio.run(main)
            """
        )
    )
    command = [sys.executable, *map(str, (script, *sorted(tmp_path.glob("*.*"))))]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_parsers_are_loaded_with_the_first_file_only() -> None:
    program = (
        "import sys, storage.reading.parse as p; p.parse(b'words', name='a.txt');"
        "print({'pypdf', 'docx', 'trafilatura', 'charset_normalizer'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"


@pytest.mark.parametrize(
    "given",
    [
        *("", "  ", "untitled", "(anonymous)", "Untitled-2", "Untitled Document", "Document1"),
        *("Microsoft Word - Document12", "Microsoft Word - minutes_final_v3.docx"),
        *("PowerPoint Presentation", "report.dvi", "C:\\Users\\ann\\letter.doc", "file:///tmp/x"),
        *("LaTeX document", "Title of the Paper", "New Page 1", "Dokument 3"),
        *("Document sans titre", "无标题文档", "---"),
    ],
)
def test_the_default_of_a_generator_is_no_title(given: str) -> None:
    assert own_title(given) == ""


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("Minutes of the  harbour board", "Minutes of the harbour board"),
        ("Microsoft Word - Minutes of the board", "Minutes of the board"),
        ("1984", "1984"),
        ("Untitled: a history of anonymous art", "Untitled: a history of anonymous art"),
        ("Document retrieval", "Document retrieval"),
        ("Node.js in practice", "Node.js in practice"),
        ("Main currents of thought", "Main currents of thought"),
    ],
)
def test_what_somebody_wrote_is_kept(given: str, title: str) -> None:
    assert own_title(given) == title
