import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from server.app import build
from server.clients.locations import command_path
from server.settings import SettingsError
from server.settings.sources import explain, load
from storage.directory.models import RESEARCHERS
from storage.models import ContextType
from tools.answers.customization import LONGEST_DESCRIPTION
from tools.core.calling.nested import ToolCall
from tools.core.collections import Collections

SOURCES = """
[sources.product_docs]
description = "Manuals and release notes"
search_hints = ["installation", "error codes"]
supported_filters = ["product", "version"]
folder = "docs/products"

[sources.tickets]
description = "Tickets of the support desk"
supported_filters = ["product"]
kinds = ["document", "event"]
raw_types = ["text"]
labels = { team = "support", year = [2024.0, 2025], open = true }
"""
PARTS = """
[directories.parts]
noun = "part"
description = "Spare parts"
name_field = "label"
key = "number"
texts = "use"
facts = ["price"]
items = ["revisions"]
link = "sheet"
aliases = "codes"
[directories.parts.groups]
material = []
supplier = ["second_sources", "former"]
"""


def loaded(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Collections:
    path = tmp_path / "config.toml"
    path.write_text(f"root = {json.dumps(str(tmp_path))}\n{text}", encoding="utf-8")
    return load(config_file=path, environ=environ or {}).collections


def refused(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text, environ)
    return caught.value.message


def test_without_settings_there_are_no_sources_and_the_researchers(tmp_path: Path) -> None:
    assert loaded(tmp_path, "") == Collections()


def test_sources_are_tables_in_the_file(tmp_path: Path) -> None:
    docs, tickets = loaded(tmp_path, SOURCES).sources
    assert (docs.name, docs.description) == ("product_docs", "Manuals and release notes")
    assert docs.search_hints == ("installation", "error codes")
    assert docs.supported_filters == ("product", "version")
    assert (docs.raw_types, docs.under) == (("file",), "docs/products/")
    assert tickets.context_types == (ContextType.DOCUMENT, ContextType.EVENT)
    assert (tickets.raw_types, tickets.under) == (("text",), "")
    assert tickets.labels == {"team": ("support",), "year": ("2024", "2025"), "open": ("true",)}


def test_sources_are_json_in_the_environment_and_win_over_the_file(tmp_path: Path) -> None:
    environ = {"TOOLCRIB_SOURCES": '{"mail": {"kinds": "event", "labels": {"open": true}}}'}
    (mail,) = loaded(tmp_path, SOURCES, environ).sources
    assert (mail.name, mail.context_types) == ("mail", (ContextType.EVENT,))
    assert mail.labels == {"open": ("true",)}


def test_both_are_shown_with_the_other_settings(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(SOURCES + PARTS, encoding="utf-8")
    rows = {row.key: row for row in explain(load(config_file=path, environ={}))}
    assert rows["sources"].value["product_docs"]["folder"] == "docs/products"
    assert rows["directories"].value["parts"]["noun"] == "part"
    assert rows["sources"].source == rows["directories"].source == str(path)


def test_a_folder_is_named_as_imports_name_files(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for folder, under in (
        ("docs", "docs/"),
        ("docs/", "docs/"),
        ("./docs//a/../b", "docs/b/"),
        (str(tmp_path / "root" / "docs"), "docs/"),
        (str(tmp_path / "elsewhere"), f"{tmp_path}/elsewhere/"),
        ("../elsewhere", f"{tmp_path}/elsewhere/"),
        (str(tmp_path / "link" / "a"), f"{tmp_path}/real/a/"),
    ):
        environ = {
            "TOOLCRIB_ROOT": str(tmp_path / "root"),
            "TOOLCRIB_SOURCES": json.dumps({"s": {"folder": folder}}),
        }
        (source,) = loaded(tmp_path, "", environ).sources
        assert source.under == under, folder


@pytest.mark.parametrize(
    ("entry", "name", "reason"),
    [
        ("kinds = ['documents']", "sources.s.kinds.0 = 'documents'", "'document', 'knowledge'"),
        ("kinds = 5", "sources.s.kinds = 5", "not a list of texts"),
        ("description = 5", "sources.s.description = 5", "valid string"),
        ("descripton = 'x'", "sources.s.descripton = 'x'", "Did you mean 'description'?"),
        ("supported_filters = ['kinds']", "= ['kinds']", "'kinds' is a filter that every source"),
        ("supported_filters = ['']", "sources.s.supported_filters.0 = ''", "at least 1 char"),
        ("labels = { team = { a = 1 } }", "sources.s.labels.team = {'a': 1}", "is not a text of"),
        ("labels = { team = [] }", "sources.s.labels.team = []", "is not a text of"),
        ("labels = { since = 2024-01-01 }", "sources.s.labels.since", "is not a text of"),
        ("folder = '.'", "sources = ", "s: folder '.' is the root itself"),
    ],
)
def test_a_wrong_source_is_named_with_its_value(
    tmp_path: Path, entry: str, name: str, reason: str
) -> None:
    message = refused(tmp_path, f"[sources.s]\n{entry}\n")
    assert name in message
    assert reason in message
    assert str(tmp_path / "config.toml") in message


@pytest.mark.parametrize("name", ["Docs", "a b", "", "x" * 65, "dörfer", "a.b"])
def test_names_are_of_small_letters(tmp_path: Path, name: str) -> None:
    for table, entry in (("sources", ""), ("directories", "noun = 'x'")):
        message = refused(tmp_path, f"[{table}.{json.dumps(name)}]\n{entry}\n")
        assert message.startswith(f"{table}.{name}.[key] = {name!r}")
        assert "should match pattern" in message


@pytest.mark.parametrize("name", ["memory", "documents", "knowledge", "events", "researchers"])
def test_a_source_has_no_name_that_answers_give_to_something_else(
    tmp_path: Path, name: str
) -> None:
    assert f"{name!r} is reserved in answers" in refused(tmp_path, f"[sources.{name}]\n")


@pytest.mark.parametrize("name", ["memory", "documents", "file", "text", "summary", "chatgpt"])
def test_a_directory_has_no_name_of_a_kind_of_source(tmp_path: Path, name: str) -> None:
    message = refused(tmp_path, f"[directories.{name}]\nnoun = 'x'\n")
    assert f"{name!r} is reserved in answers" in message


def test_a_directory_has_no_name_of_a_source(tmp_path: Path) -> None:
    message = refused(tmp_path, "[sources.parts]\n[directories.parts]\nnoun = 'part'\n")
    assert "'parts' is also the name of a source" in message


@pytest.mark.parametrize("value", ["nonsense", "[1]", "5", '{"s": 5}', '{"s": ['])
def test_what_is_no_table_is_refused(tmp_path: Path, value: str) -> None:
    for key in ("sources", "directories"):
        message = refused(tmp_path, "", {f"TOOLCRIB_{key.upper()}": value})
        assert message.startswith(key)
        assert f"environment variable TOOLCRIB_{key.upper()}" in message


def test_directories_are_mappings_after_that_of_researchers(tmp_path: Path) -> None:
    researchers, parts = loaded(tmp_path, PARTS).directories
    assert researchers is RESEARCHERS
    assert (parts.name, parts.noun, parts.description) == ("parts", "part", "Spare parts")
    assert (parts.name_field, parts.key, parts.link, parts.aliases) == (
        *("label", "number", "sheet", "codes"),
    )
    assert parts.groups == {"material": (), "supplier": ("second_sources", "former")}
    assert (parts.texts, parts.facts, parts.items) == (("use",), ("price",), ("revisions",))
    assert parts.raw_types == ("parts", "parts.revisions")


def test_an_entry_that_is_no_table_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path, "[directories]\nparts = 'x'\n")
    assert "directories.parts = 'x'" in message
    assert "is not a table. " in message


def test_groups_without_associations_are_a_plain_list(tmp_path: Path) -> None:
    text = "[directories.parts]\nnoun = 'part'\ngroups = ['material', 'maker']\n"
    assert loaded(tmp_path, text).directories[1].groups == {"material": (), "maker": ()}


def test_the_mapping_of_researchers_is_changed_as_far_as_it_is_said(tmp_path: Path) -> None:
    (researchers,) = loaded(tmp_path, "[directories.researchers]\nkey = 'email'\n").directories
    assert researchers.key == "email"
    assert researchers.groups == RESEARCHERS.groups
    assert researchers.noun == RESEARCHERS.noun
    message = refused(tmp_path, "[directories.researchers]\ngroups = ['faculty']\n")
    assert "researchers: groups lacks 'department'" in message
    message = refused(tmp_path, "[directories.researchers]\nitems = ['papers']\n")
    assert "researchers: items lacks 'publications'" in message


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("", "parts: noun is needed"),
        ("noun = 'part'\nfacts = ['name']", "the field 'name' is named twice"),
        ("noun = 'part'\ngroups = ['a']\ntexts = ['a']", "the field 'a' is named twice"),
        ("noun = 'part'\ntexts = ['Use']\nfacts = ['use']", "the field 'use' is named twice"),
        ("noun = 'part'\ntexts = ['a']\nlink = 'a'", "the field 'a' is named twice"),
        ("noun = 'part'\ngroups = { a = ['a'] }", "the field 'a' is named twice"),
        ("noun = 'part'\ngroups = { a = ['c'], b = ['c'] }", "the field 'c' is named twice"),
        ("noun = ' '", "parts: noun is needed"),
        ("noun = 'part'\ngroups = 'a'", "directories.parts.groups = 'a'"),
        ("noun = 'part'\ngroups = [['a']]", "neither a list of fields nor a table"),
        ("noun = 'part'\ngroups = { a = 5 }", "directories.parts.groups.a = 5"),
        ("noun = 'part'\nname = 'label'", "Did you mean 'name_field'? Directories of"),
        (f"noun = 'part'\nitems = ['{'x' * 60}']", "choose a shorter name"),
    ],
)
def test_a_wrong_directory_is_named(tmp_path: Path, entry: str, reason: str) -> None:
    assert reason in refused(tmp_path, f"[directories.parts]\n{entry}\n")


async def test_a_question_can_be_put_to_a_source(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        f"root = {json.dumps(str(tmp_path))}\ndata_dir = {json.dumps(str(tmp_path / 'data'))}\n"
        + SOURCES,
        encoding="utf-8",
    )
    for name, words in (("docs/products/a.md", "pump"), ("docs/products2/b.md", "pump")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"How to start the {words} {name}", encoding="utf-8")
    app = build(load(config_file=path, environ={}))
    async with app.running():
        added = [
            ToolCall("add_document", {"path": name, "metadata": {"product": product}})
            for name, product in (("docs/products/a.md", "P1"), ("docs/products2/b.md", "P1"))
        ]
        await app.manager.execute_batch(added, app.context)

        async def asked(**arguments: Any) -> Any:
            arguments = {"query": "start the pump", **arguments}
            return (await app.manager.execute("query", arguments, app.context)).structured

        assert {each["raw_id"] for each in (await asked())["hits"]} == {
            *("docs/products/a.md", "docs/products2/b.md")
        }
        found = await asked(source="product_docs", filters={"product": "p1"})
        assert [each["raw_id"] for each in found["hits"]] == ["docs/products/a.md"]
        assert (await asked(filters={"product": ["p2"]}))["hits"] == []
        wrong = await asked(source="product_doc")
        assert wrong["error_type"] == "invalid_arguments"
        assert wrong["suggestions"] == ["product_docs"]


async def test_what_the_list_cuts_of_many_sources_is_described(tmp_path: Path) -> None:
    named = {f"group_{number}": {"description": "Papers " * 20} for number in range(20)}
    environ = {
        "TOOLCRIB_SOURCES": json.dumps(named),
        "TOOLCRIB_DATA_DIR": str(tmp_path / "data"),
        "TOOLCRIB_ROOT": str(tmp_path),
    }
    app = build(load(environ=environ))
    async with app.running():
        described = await app.manager.execute("describe_tool", {"name": "query"}, app.context)
    whole = described.structured["description"]
    listed = app.registry.find("query").description
    assert whole.count("Papers") == 400
    assert len(listed) <= LONGEST_DESCRIPTION < len(whole)


async def test_every_connection_is_shown_the_same_sources(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(SOURCES, encoding="utf-8")
    (tmp_path / "root").mkdir()
    arguments = [
        *("serve", "--config", str(path), "--root", str(tmp_path / "root")),
        *("--data-dir", str(tmp_path / "data")),
    ]
    server = StdioServerParameters(command=str(command_path()), args=arguments)
    listings = []
    for _ in range(2):
        with anyio.fail_after(60):
            async with Client(stdio_client(server)) as client:
                listed = await client.list_tools()
        listings.append({tool.name: tool.model_dump_json(by_alias=True) for tool in listed.tools})
    assert listings[0] == listings[1]
    query = json.loads(listings[0]["query"])
    properties = query["inputSchema"]["properties"]
    assert properties["source"]["enum"] == ["product_docs", "tickets"]
    assert list(properties["filters"]["properties"])[:2] == ["product", "version"]
    assert "ask it about: installation, error codes" in query["description"]
