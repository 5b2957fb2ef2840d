import io
import os
from pathlib import Path
from typing import Any

import docx
import pytest
from mcp import MCPError
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from tests.tools.conftest import Open

HERONS = "# Herons\n\nThe grey heron stands still in shallow water.\n"
TYRES = "# Tyres\n\nLever the tube out of the wheel and patch it.\n"


def _pdf(text: str, password: str = "") -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 720, text)
    canvas.save()
    if not password:
        return buffer.getvalue()
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(buffer.getvalue())))
    writer.encrypt(password, algorithm="RC4-128")
    encrypted = io.BytesIO()
    writer.write(encrypted)
    return encrypted.getvalue()


def _docx(text: str) -> bytes:
    document = docx.Document()
    document.add_paragraph(text)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


async def _ids(crib: Any, **arguments: Any) -> list[str]:
    found = await crib.call("retrieve_document_context", **arguments)
    return [hit["raw_id"] for hit in found["hits"]]


async def test_a_file_is_added_found_read_and_deleted(open_crib: Open, mode: str) -> None:
    async with open_crib(mode) as crib:
        (crib.root / "notes").mkdir()
        (crib.root / "notes" / "herons.md").write_text(HERONS)
        added = await crib.call("add_document", path="notes/herons.md")
        assert (added["outcome"], added["title"], added["chunks"]) == ("added", "Herons", 1)
        assert (added["raw_type"], added["raw_id"]) == ("file", "notes/herons.md")
        found = await crib.call("retrieve_document_context", query="heron")
        assert found["hits"][0]["raw_id"] == "notes/herons.md"
        source = {"raw_type": "file", "raw_id": "notes/herons.md"}
        stored = await crib.call("get_document", **source)
        assert stored["media_type"] == "text/markdown"
        assert stored["event_time"] == (crib.root / "notes" / "herons.md").stat().st_mtime
        assert "grey heron" in stored["chunks"][0]["content"]
        deleted = await crib.call("delete_document", **source)
        assert deleted["chunks_deleted"] == 1
        assert await _ids(crib, query="heron") == []
        assert (await crib.failure("get_document", **source))[0] == "not_found"
        assert (await crib.failure("delete_document", **source))[0] == "not_found"
        assert (crib.root / "notes" / "herons.md").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", _pdf("The grey heron waits for fish in shallow water.")),
        ("a.docx", _docx("The grey heron waits for fish in shallow water.")),
        (
            "a.html",
            b"<html><body><p>The grey heron waits for fish in shallow water.</p></body></html>",
        ),
        ("a.txt", "The grey heron waits for fish in shallow water.".encode("utf-16")),
    ],
)
async def test_each_format_is_found_by_its_words(crib: Any, name: str, data: bytes) -> None:
    (crib.root / name).write_bytes(data)
    await crib.call("add_document", path=name)
    assert await _ids(crib, query="herons waiting") == [name]


async def test_the_same_file_by_another_path_is_unchanged_and_a_new_one_replaces_it(
    crib: Any,
) -> None:
    file = crib.root / "a.md"
    file.write_text(HERONS)
    first = await crib.call("add_document", path="a.md")
    for path in ("./a.md", str(file)):
        again = await crib.call("add_document", path=path)
        assert (again["outcome"], again["raw_id"]) == ("unchanged", "a.md")
    file.write_text(TYRES)
    replaced = await crib.call("add_document", path="a.md")
    assert (first["outcome"], replaced["outcome"]) == ("added", "replaced")
    assert await _ids(crib, query="heron") == []
    assert await _ids(crib, query="patch the wheel") == ["a.md"]
    assert len(await _ids(crib)) == 1


async def test_a_text_keeps_what_is_said_of_it(crib: Any) -> None:
    metadata = {"source": "mail", "nested": {"n": [1, 2.5, None, True]}}
    added = await crib.call(
        "add_document",
        text=HERONS,
        title="  On \n birds ",
        raw_type="mail",
        raw_id="<42@example.org>",
        metadata=metadata,
        entities=["Zoë", " ", "Zoë"],
    )
    assert (added["title"], added["raw_type"]) == ("On birds", "mail")
    stored = await crib.call("get_document", raw_type="mail", raw_id="<42@example.org>")
    assert (stored["metadata"], stored["entities"]) == (metadata, ["Zoë"])
    bare = await crib.call(
        "get_document", raw_type="mail", raw_id="<42@example.org>", return_chunks=False
    )
    assert (bare["chunks"], bare["chunk_count"]) == ([], 1)
    told = await crib.text("get_document", raw_type="mail", raw_id="<42@example.org>")
    assert f"Entities: {', '.join(bare['entities'])}\nMetadata: {{" in told


async def test_what_a_note_says_of_itself_is_kept_beside_what_the_caller_says(crib: Any) -> None:
    front = "---\ntitle: Log\ndate: 1970-01-02\nmood: calm\nplace: Kiel\n---\n"
    given = {"metadata": {"place": "Rome"}, "entities": ["Zoë"]}
    await crib.call("add_document", text=f"{front}Saw [[Ada]].", raw_id="log", **given)
    stored = await crib.call("get_document", raw_type="text", raw_id="log")
    assert (stored["title"], stored["event_time"]) == ("Log", 129_600)
    assert stored["metadata"] == {"mood": "calm", "place": "Rome"}
    assert stored["entities"] == ["Ada", "Zoë"]
    assert [chunk["content"] for chunk in stored["chunks"]] == ["Saw [[Ada]]."]


async def test_a_text_without_a_title_is_named_after_its_heading_and_its_digest(crib: Any) -> None:
    for title in (None, "", " \n"):
        added = await crib.call("add_document", text=HERONS, title=title)
        assert added["title"] == "Herons"
        assert len(added["raw_id"]) == 16
    assert len(await _ids(crib)) == 1


async def test_a_text_with_stray_characters_is_kept_without_them(crib: Any) -> None:
    await crib.call("add_document", text="A heron\0stood \ud83d there.", title="Stray")
    stored = await crib.call("get_document", raw_type="text", raw_id="Stray")
    assert [chunk["content"] for chunk in stored["chunks"]] == ["A heron stood ? there."]


async def test_what_is_not_embedded_yet_is_found_by_words_and_said_to_be(crib: Any) -> None:
    crib.app.library.indexer.stop()
    await crib.call("add_document", text=HERONS)
    found = await crib.call("retrieve_document_context", query="heron")
    assert found["mode"] == "lexical"
    assert found["coverage"] == {"total": 1, "embedded": 0, "problem": ""}
    assert "dense" not in found["hits"][0]
    text = await crib.text("retrieve_document_context", query="heron")
    assert "0 of 1 chunks embedded; the rest is found by words." in text
    crib.app.library.indexer.start()
    await crib.embed()
    found = await crib.call("retrieve_document_context", query="a wading bird in a pond")
    assert found["mode"] == "hybrid"
    hit = found["hits"][0]
    assert hit["title"] == "Herons"
    assert hit["dense"] > 0.2
    assert hit["lexical"] == 0


async def test_entities_and_times_filter(crib: Any) -> None:
    for raw_id, when, name in (("old", 0, "Acme Corp"), ("new", 1_700_000_000, "Zoë Müller")):
        (crib.root / raw_id).write_text(f"The heron of {raw_id}.")
        os.utime(crib.root / raw_id, (when, when))
        await crib.call("add_document", path=raw_id, entities=[name])
    for query in ({}, {"query": "heron"}):
        assert set(await _ids(crib, **query)) == {"old", "new"}
        assert await _ids(crib, **query, entities=["zoe muller"]) == ["new"]
        assert await _ids(crib, **query, entities=["Nobody"]) == []
        for time_range, expected in (
            ({"start": 0, "end": 0}, ["old"]),
            ({"start": 1}, ["new"]),
            ({"end": "1970-01-01"}, ["old"]),
            ({"end": "2023-11-14"}, ["new", "old"]),  # a day as an end is meant to its end
            ({"start": "2023-11-14T22:13:20Z", "end": "2023-11-14T22:13:20+00:00"}, ["new"]),
            ({"start": "2023-11-14T22:13:21"}, []),
            ({"start": "2023-11-14T23:13:20", "timezone": "Europe/Paris"}, ["new"]),
            ({"start": "2023-11-14T23:13:21", "timezone": "Europe/Paris"}, []),
            ({"start": "1700000000"}, ["new"]),
            ({"start": 1, "time_type": "create_time_ts"}, ["new", "old"]),
            ({"end": 1_700_000_000, "time_type": "update_time_ts"}, []),
        ):
            found = await _ids(crib, **query, time_range=time_range)
            assert sorted(found) == sorted(expected), time_range


WRONG_TIMES: list[tuple[dict[str, Any], str]] = [
    ({"timezone": "Mars/Olympus"}, "time_range.timezone: 'Mars/Olympus' is not a time zone"),
    ({"start": 1, "timezone": "../etc"}, "time_range.timezone: '../etc' is not a time zone"),
    ({"start": 2, "end": 1}, "time_range.start (2.0) is after time_range.end (1.0)"),
    ({"start": "soon"}, "time_range.start: 'soon' is not a time"),
    ({"end": "2023-13-01"}, "time_range.end: '2023-13-01' is not a time"),
    ({"end": "inf"}, "time_range.end: 'inf' is not a time"),
    ({"time_type": "event"}, "time_type"),
    ({"begin": 1}, "time_range.begin"),
]


async def test_a_name_that_nothing_is_like_is_said_to_be_unknown(crib: Any) -> None:
    await crib.call("add_document", text="A heron.", title="Herons", entities=["Ann Lee"])
    given = {"query": "heron", "entities": ["ann lee", "Quentin"]}
    found = await crib.call("retrieve_document_context", **given)
    assert ([hit["title"] for hit in found["hits"]]) == ["Herons"]
    assert found["unknown_entities"] == ["Quentin"]
    text = await crib.text("retrieve_document_context", entities=["Quentin"])
    assert text.startswith("Nothing stored fits. No stored name resembles 'Quentin'.")


async def test_a_wrong_time_is_named(crib: Any) -> None:
    for time_range, said in WRONG_TIMES:
        kind, text = await crib.failure("retrieve_document_context", time_range=time_range)
        assert kind == "invalid_arguments"
        assert said in text


async def test_without_a_query_the_newest_are_listed(crib: Any) -> None:
    for number in range(4):
        await crib.call("add_document", text=f"Text {number}", title=f"t{number}")
    found = await crib.call("retrieve_document_context", top_k=3)
    assert found["mode"] == "listing"
    assert [hit["title"] for hit in found["hits"]] == ["t3", "t2", "t1"]
    assert await _ids(crib, query=" \n", top_k=1) == ["t3"]


async def test_a_long_document_comes_back_in_order_and_reports_its_progress(
    open_crib: Open,
) -> None:
    text = "\n\n".join(f"# Part {part}\n\n" + f"word{part} " * 300 for part in range(120))
    reports: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with open_crib(limits__result_tokens=0) as crib:
        crib.app.library.indexer.stop()  # what is embedded meanwhile is another test's
        (crib.root / "long.md").write_text(text)
        await crib.client.call_tool("add_document", {"path": "long.md"}, progress_callback=note)
        stored = await crib.call("get_document", raw_type="file", raw_id="long.md")
        words = " ".join(piece["content"] for piece in stored["chunks"]).split()
        parts = [int(word.removeprefix("word")) for word in words if word.startswith("word")]
        assert parts == sorted(parts)
        assert set(parts) == set(range(120))
        assert stored["chunk_count"] == len(stored["chunks"]) >= 120
        shown = await crib.text("get_document", raw_type="file", raw_id="long.md")
        assert shown.split().count("word0") == 300  # no overlap of chunks is read twice
        done = [report[0] for report in reports]
        assert done == sorted(set(done))
        assert len(done) >= 3
        assert reports[-1][1] == stored["chunk_count"]


UNUSABLE: list[tuple[dict[str, Any], str, str]] = [
    ({}, "invalid_arguments", "give exactly one of them"),
    ({"path": "a.md", "text": "x"}, "invalid_arguments", "give exactly one of them"),
    ({"path": "none.md"}, "not_found", "'none.md'"),
    ({"path": "../a.md"}, "outside_sandbox", "'../a.md'"),
    ({"path": "/etc/passwd"}, "outside_sandbox", "'/etc/passwd'"),
    ({"path": "link.md"}, "outside_sandbox", "'link.md'"),
    ({"path": ""}, "invalid_arguments", "path is empty"),
    ({"path": "a\0.md"}, "invalid_arguments", "NUL"),
    ({"path": "."}, "invalid_arguments", "a directory"),
    ({"path": "empty.md"}, "invalid_arguments", "'empty.md' is empty"),
    ({"path": "blank.md"}, "invalid_arguments", "blank.md"),
    ({"path": "binary"}, "invalid_arguments", "is binary"),
    ({"path": "binary"}, "invalid_arguments", "save it as UTF-8"),
    ({"path": "locked.pdf"}, "invalid_arguments", "encrypted"),
    ({"path": "broken.pdf"}, "invalid_arguments", "'broken.pdf' cannot be read"),
    ({"path": "huge.md"}, "invalid_arguments", "5001 bytes; a document may have 5000"),
    ({"text": "x" * 5001}, "invalid_arguments", "5001 bytes; a document may have 5000"),
    ({"text": ""}, "invalid_arguments", "is empty"),
    ({"text": " \n "}, "invalid_arguments", "text"),
    ({"text": "x", "raw_id": ""}, "invalid_arguments", "raw_id"),
    ({"text": "x", "titel": "y"}, "invalid_arguments", "did you mean `title`"),
    ({"text": 5}, "invalid_arguments", "text"),
]


async def test_what_cannot_be_added_is_told_and_leaves_nothing(open_crib: Open) -> None:
    async with open_crib(limits__max_document_bytes=5000) as crib:
        (crib.root.parent / "outside.md").write_text("secret")
        (crib.root / "link.md").symlink_to(crib.root.parent / "outside.md")
        (crib.root / "a.md").write_text(HERONS)
        (crib.root / "empty.md").write_text("")
        (crib.root / "blank.md").write_text("\n \n")
        (crib.root / "binary").write_bytes(bytes(range(256)) * 8)
        (crib.root / "locked.pdf").write_bytes(_pdf("secret", "password"))
        (crib.root / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing of it")
        (crib.root / "huge.md").write_text("x" * 5001)
        for arguments, expected, said in UNUSABLE:
            kind, text = await crib.failure("add_document", **arguments)
            assert kind == expected, arguments
            assert said in text
            assert await _ids(crib) == []


async def test_a_file_time_that_no_calendar_has_is_no_obstacle(crib: Any) -> None:
    await crib.call("add_document", text=HERONS, title="t")
    with crib.app.library.database.write() as connection:
        connection.execute("UPDATE contexts SET event_time = 1e15")
    found = await crib.call("retrieve_document_context", query="heron")
    assert found["hits"][0]["event_time"].startswith("9999-12-31T23:59:59")


async def test_users_see_nothing_of_each_other(open_crib: Open) -> None:
    async with open_crib(identity__user_id="ann") as crib:
        await crib.call("add_document", text="The heron of Ann", title="t", entities=["Una"])
        await crib.call("add_document", text="The heron of Bob", title="t", user_id="bob")
        for arguments in ({}, {"query": "heron"}, {"query": "heron", "entities": ["Una"]}):
            found = await crib.call("retrieve_document_context", **arguments)
            assert [hit["content"] for hit in found["hits"]] == ["The heron of Ann"]
        found = await crib.call("retrieve_document_context", query="Ann heron", user_id="bob")
        assert [hit["content"] for hit in found["hits"]] == ["The heron of Bob"]
        assert found["coverage"]["total"] == 1
        source = {"raw_type": "text", "raw_id": "t"}
        await crib.call("delete_document", **source)
        assert (await crib.failure("get_document", **source))[0] == "not_found"
        kept = await crib.call("get_document", **source, user_id="bob")
        assert kept["chunks"][0]["content"] == "The heron of Bob"


async def test_a_device_is_a_part_of_its_user(crib: Any) -> None:
    for device in ("phone", "desk"):
        await crib.call(
            "add_document", text=f"The heron on my {device}", title="t", device_id=device
        )
    assert len(await _ids(crib, query="heron")) == 2
    found = await crib.call("retrieve_document_context", query="heron", device_id="phone")
    assert [hit["content"] for hit in found["hits"]] == ["The heron on my phone"]
    deleted = await crib.call("delete_document", raw_type="text", raw_id="t")
    assert deleted["chunks_deleted"] == 2
    assert await _ids(crib) == []


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


async def test_metadata_comes_back_as_it_was_given_up_to_its_limits(crib: Any) -> None:
    for metadata in (_nested(32), {"": "\0\u202e", "k" * 60_000: -0.0, "n": 10**30}):
        added = await crib.call("add_document", text="words", metadata=metadata)
        source = {key: added[key] for key in ("raw_type", "raw_id")}
        assert (await crib.call("get_document", **source))["metadata"] == metadata


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({"metadata": _nested(33)}, "at most 32 levels"),
        ({"metadata": {"a": "x" * 65_536}}, "at most 65536 characters of JSON, not 65545"),
        ({"metadata": '{"a": [NaN]}'}, "a text where a number is not finite"),
        ({"entities": ["x" * 257]}, "a string of at most 256 characters"),
        ({"user_id": "x" * 257}, "a string of 1 to 256 characters"),
        ({"device_id": "x" * 257}, "a string of at most 256 characters"),
        ({"agent_id": "x" * 257}, "a string of at most 256 characters"),
    ],
)
async def test_what_could_not_be_given_back_is_refused(
    crib: Any, arguments: dict[str, Any], remedy: str
) -> None:
    error_type, told = await crib.failure("add_document", text="words", **arguments)
    assert error_type == "invalid_arguments"
    assert remedy in told
    assert len(told) < 1000
    assert not (await crib.call("retrieve_document_context"))["hits"]


async def test_the_stored_copy_of_a_file_that_a_rule_denies_is_not_read_either(
    open_crib: Open, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "secrets").mkdir(parents=True)
    (root / "secrets" / "heron.md").write_text("# Heron\n\nThe heron key is zebra.\n")
    (root / "open.md").write_text("# Heron\n\nThe heron eats fish.\n")
    asked = {"query": "heron key"}
    async with open_crib() as crib:
        for path in ("secrets/heron.md", "open.md"):
            await crib.call("add_document", path=path)
        assert "zebra" in await crib.text("query", **asked)
    async with open_crib(policy__deny=["read(secrets/**)"]) as crib:
        for name in ("query", "retrieve_document_context"):
            assert "zebra" not in str(await crib.client.call_tool(name, asked))
        assert "fish" in await crib.text("query", query="What does the heron eat?")
        document = {"raw_type": "file", "raw_id": "secrets/heron.md"}
        assert (await crib.failure("get_document", **document))[0] == "not_found"
        await crib.call("get_document", **{**document, "raw_id": "open.md"})
        listed = await crib.client.list_resources()
        [uri] = [each.uri for each in listed.resources if "open.md" in str(each.uri)]
        assert "heron.md" not in str(listed)
        with pytest.raises(MCPError):
            await crib.client.read_resource(uri.replace("open.md", "secrets%2Fheron.md"))
