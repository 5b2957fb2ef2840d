"""`toolcrib import researchers FILE` and its like."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters

from server.cli.data.directory_importer import SAMPLE
from server.clients.locations import command_path
from tests.conftest import told
from tests.server.cli.conftest import Command, Started

pytestmark = pytest.mark.slow


ADA: dict[str, Any] = {
    "name": "Ada Núñez",
    "department": "Immunology",
    "program": "Vaccines",
    "interests": ["inhaled vaccines"],
    "publications": [{"title": "Vaccines that are breathed in", "year": 2021}],
    "profile_url": "https://example.org/ada",
}
BO: dict[str, Any] = {
    "name": "Bo Li",
    "department": "Pathology",
    "program": "Imaging",
    "overview": "Reads slides.",
    "profile_url": "https://example.org/bo",
}
FORMS = {
    "json": json.dumps([ADA, BO]),
    "jsonl": f"{json.dumps(ADA)}\n{json.dumps(BO)}\n",
    "csv": "Name,Department,Program,Interests,Overview,Publications,Profile URL\n"
    "Ada Núñez,Immunology,Vaccines,inhaled vaccines,,Vaccines that are breathed in. 2021,"
    "https://example.org/ada\n"
    "Bo Li,Pathology,Imaging,,Reads slides.,,https://example.org/bo\n",
}


def write(work: Path, *records: dict[str, Any]) -> str:
    (work / "staff.json").write_text(json.dumps(records), encoding="utf-8")
    return "staff.json"


def departments(cli: Command) -> dict[str, int]:
    ended = cli("call", "department_filter", "department=list", "--structured")
    groups = json.loads(ended.out)["groups"] if ended.code == 0 else []
    return {group["value"]: group["count"] for group in groups}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_file_is_imported_once(toolcrib: Started, work: Path, form: str) -> None:
    (work / f"staff.{form}").write_text(FORMS[form], encoding="utf-8")
    told = []
    for _ in range(2):
        process = toolcrib("import", "researchers", f"staff.{form}")
        out, err = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in err) == (0, False)
        told.append(out)
    assert told == ["Researchers: 2 added\n", "Researchers: 2 unchanged\n"]
    process = toolcrib("call", "researcher_search", "researcher_name=Nunez, Ada", "--structured")
    out, _ = process.communicate(timeout=60)
    (found,) = json.loads(out)["records"]
    assert found["entry"]["name"] == "Ada Núñez"
    assert found["entry"]["groups"] == {"department": ["Immunology"], "program": ["Vaccines"]}
    assert found["entry"]["link"] == "https://example.org/ada"


def test_a_changed_record_is_replaced_alone(cli: Command, work: Path) -> None:
    assert cli("import", "researchers", write(work, ADA, BO)).code == 0
    ended = cli("import", "researchers", write(work, ADA, BO | {"department": "Surgery"}))
    assert ended.out == "Researchers: 1 replaced, 1 unchanged\n"
    assert departments(cli) == {"Immunology": 1, "Surgery": 1}


def test_what_a_file_lacks_goes_with_prune_only(cli: Command, work: Path) -> None:
    cli("import", "researchers", write(work, ADA, BO))
    assert cli("import", "researchers", write(work, ADA)).out == "Researchers: 1 unchanged\n"
    assert departments(cli) == {"Immunology": 1, "Pathology": 1}
    ended = cli("import", "researchers", "--prune", "staff.json")
    assert ended.out == "Researchers: 1 unchanged, 1 deleted\n"
    assert departments(cli) == {"Immunology": 1}


def test_prune_keeps_what_is_in_any_of_the_files(cli: Command, work: Path) -> None:
    (work / "more.jsonl").write_text(json.dumps(BO), encoding="utf-8")
    write(work, ADA)
    ended = cli("import", "researchers", "staff.json", "more.jsonl", "--prune")
    assert (ended.code, ended.out) == (0, "Researchers: 2 added\n")


def test_pruning_by_a_file_without_records_changes_nothing(cli: Command, work: Path) -> None:
    cli("import", "researchers", write(work, ADA))
    ended = cli("import", "researchers", write(work), "--prune")
    assert (ended.code, ended.out) == (1, "")
    assert "No records in 'staff.json'; nothing was changed." in ended.err
    assert departments(cli) == {"Immunology": 1}


def test_a_record_without_a_name_is_skipped_and_counted(cli: Command, work: Path) -> None:
    ended = cli("import", "researchers", write(work, ADA, {"department": "Nobody's"}, {}))
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "Researchers: 1 added, 2 skipped",
        "  1 skipped: It has no name.",
        "  1 skipped: Empty.",
    ]
    assert "Skipped: record 2 of staff.json. It has no name." in ended.err


def test_the_summary_can_be_read_by_a_program(cli: Command, work: Path) -> None:
    ended = cli("import", "researchers", write(work, ADA, {}), "--json")
    assert json.loads(ended.out) == {
        "directory": "researchers",
        "added": 1,
        "replaced": 0,
        "unchanged": 0,
        "deleted": 0,
        "skipped": 1,
        "skipped_because": {"Empty.": 1},
        "merged": [],
    }


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.json", b"[{", "The JSON cannot be read"),
        ("a.json", b'[{"name": ["Ada"]}]', "Record 1: name"),
        ("a.json", b'[{"name": "Ada"}, 7]', "Record 2 is 7"),
        ("a.csv", b"Department\nSurgery\n", "no column 'name'"),
        ("a.jsonl", b'{"name": "Ada"}\n{"name"', "Record 2 is not JSON"),
        ("a.json", b"", "is empty"),
        ("a.json", bytes(range(256)) * 20, "binary"),
    ],
)
def test_a_wrong_file_changes_nothing_and_is_told(
    cli: Command, work: Path, name: str, content: bytes, told: str
) -> None:
    (work / name).write_bytes(content)
    ended = cli("import", "researchers", write(work, ADA), name)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"Error: {name}")
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert departments(cli) == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["researchers"], "name the file to import into it, or --sample"),
        (["researchers", "nowhere.json"], "'nowhere.json' does not exist"),
        (["researchrs", "notes"], "Did you mean the directory 'researchers'?"),
        (["researchers", "notes"], "'notes' is a folder"),
        (["researchers", "notes/bread.md", "--sample"], "goes with"),
        (["notes", "--sample"], "goes with"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_usage_is_told(
    cli: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ended = cli("import", *arguments)
    assert ended.code == 2
    assert told in ended.err


def test_a_folder_with_a_directorys_name_is_imported_by_its_path(cli: Command, work: Path) -> None:
    (work / "notes").rename(work / "researchers")
    assert "./researchers" in cli("import", "researchers").err
    assert cli("import", "./researchers").out == "3 added\n"


def test_the_sample_is_imported_and_says_that_it_is_made_up(cli: Command) -> None:
    assert "Made up" in json.loads(SAMPLE.read_text(encoding="utf-8"))["about"]
    ended = cli("import", "researchers", "--sample")
    assert (ended.code, ended.out) == (0, "Researchers: 40 added\n")
    assert "made_up_researchers.json" in ended.err
    assert "40/40" in ended.err
    assert sum(departments(cli).values()) == 40


async def test_a_running_server_finds_what_is_imported(toolcrib: Started, work: Path) -> None:
    write(work, ADA)
    serve = StdioServerParameters(
        command=str(command_path()), args=["serve"], env=dict(os.environ), cwd=work
    )
    async with Client(serve) as client:
        asked = {"topic": "vaccines that are inhaled"}
        before = await client.call_tool("publication_search", asked)
        assert told(before).startswith("not_found: ")
        imported = toolcrib("import", "researchers", "staff.json")
        out, _ = await anyio.to_thread.run_sync(imported.communicate)
        assert out == "Researchers: 1 added\n"
        after = await client.call_tool("publication_search", asked)
    assert "Ada Núñez" in told(after)


def test_a_directory_of_the_settings_is_imported_and_asked(cli: Command, work: Path) -> None:
    (work / "crib.toml").write_text(
        """
        [directories.parts]
        noun = "part"
        name_field = "designation"
        key = "part_no"
        texts = ["description"]
        facts = ["part_no", "material"]
        items = ["orders"]
        [directories.parts.groups]
        machine = ["also_fits"]
        """
    )
    (work / "parts.csv").write_text(
        "Part No;Designation;Machine;Also fits;Material;Description\n"
        "A-1;Ball bearing 608;Lathe;Mill;steel;Carries the main spindle\n"
        "A-2;V-belt;Mill;;rubber;Drives the feed\n"
    )
    config = ["--config", "crib.toml"]
    assert cli("import", "parts", "parts.csv", *config).out == "Parts: 2 added\n"
    asked = ("directory=parts", "field=machine", "value=mill")
    ended = cli("call", "directory_filter", *asked, "--structured", *config)
    members = json.loads(ended.out)["members"]
    assert [(each["entry"]["name"], each["associated"]) for each in members] == [
        ("V-belt", False),
        ("Ball bearing 608", True),
    ]
    ended = cli("import", "part", "parts.csv", *config)
    assert ended.code == 2
