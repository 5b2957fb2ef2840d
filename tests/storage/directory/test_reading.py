import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.directory.models import RESEARCHERS, Directory, Item, Record
from storage.directory.reading import Skipped, read_records
from storage.errors import InvalidSourceError

ANN = {
    "name": "Ann Lee",
    "degrees": ["MD", "PhD"],
    "title": "Professor",
    "department": "Oncology",
    "program": "Cancer Biology",
    "overview": "Studies tumors.",
    "interests": ["genomics", "immunology"],
    "publications": ["Lee A. Cells. Nature 2020;15:1987-1999.", {"title": "Genes", "year": 2019}],
    "profile_url": "https://people.example/ann",
    "associated_departments": ["Surgery"],
}
RECORD = Record(
    key="https://people.example/ann",
    name="Ann Lee",
    groups={
        "department": ("Oncology",),
        "associated_departments": ("Surgery",),
        "program": ("Cancer Biology",),
    },
    texts={"overview": "Studies tumors.", "interests": "genomics; immunology"},
    facts={"degrees": "MD, PhD", "title": "Professor"},
    items={
        "publications": (
            Item(text="Lee A. Cells. Nature 2020;15:1987-1999.", year=2020),
            Item(text="Genes. 2019.", title="Genes", year=2019),
        )
    },
    link="https://people.example/ann",
)


def _read(text: str | bytes, directory: Directory = RESEARCHERS) -> list[Record]:
    return list(read_records(text if isinstance(text, bytes) else text.encode(), directory))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ANN]),
        json.dumps([ANN], indent=2),
        json.dumps({"updated": "today", "researchers": [ANN]}),
        json.dumps(ANN),
        json.dumps(ANN) + "\n\n",
        "\ufeff" + json.dumps([ANN]),
    ],
)
def test_json_is_read_in_every_form(text: str) -> None:
    assert _read(text) == [RECORD]


def test_json_lines_are_read_one_by_one() -> None:
    bob = {"name": "Bob Ray"}
    read = _read(f"{json.dumps(ANN)}\n\n{json.dumps(bob)}\r\n")
    assert read == [RECORD, Record(key="bob ray|", name="Bob Ray")]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_is_read_with_lists_in_its_cells(tmp_path: Path, mark: str, delimiter: str) -> None:
    row = {
        "Name": "Ann Lee",
        "Degrees": "MD, PhD",
        "title": "Professor",
        "department": "Oncology",
        "Associated Departments": "Surgery",
        "program": "Cancer Biology",
        "overview": "Studies tumors.",
        "interests": '["genomics", "immunology"]',
        "publications": json.dumps(ANN["publications"]),
        "Profile-URL": "https://people.example/ann",
    }
    quoted = [[*row], ['"' + value.replace('"', '""') + '"' for value in row.values()]]
    path = tmp_path / "people.csv"
    path.write_bytes((mark + "\r\n".join(map(delimiter.join, quoted))).encode())
    assert list(read_records(path, RESEARCHERS)) == [RECORD]


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("A 2001|B 2002; C", ["A 2001", "B 2002; C"]),
        ("A 2001; B 2002", ["A 2001", "B 2002"]),
        ("Nature. 2020;15:3; Science. 2021;1:2", ["Nature. 2020;15:3", "Science. 2021;1:2"]),
        ('["A", "B"]', ["A", "B"]),
        ("[not json", ["[not json"]),
        ("", []),
    ],
)
def test_a_cell_with_items_is_split_where_they_end(cell: str, texts: list[str]) -> None:
    quoted = cell.replace('"', '""')
    (record,) = _read(f'name,publications\nAnn,"{quoted}"\n')
    assert [item.text for item in record.items.get("publications", ())] == texts


def test_records_without_a_name_are_skipped_and_told_of() -> None:
    skipped: list[Skipped] = []
    text = json.dumps([{"name": " "}, {"title": "Dean"}, None, {}, {"name": "Ann"}])
    read = list(read_records(text.encode(), RESEARCHERS, on_skipped=skipped.append))
    assert [record.name for record in read] == ["Ann"]
    assert [each.number for each in skipped] == [1, 2, 3, 4]
    assert skipped[0].reason == "It has no name."


def test_an_unknown_field_is_kept_as_a_fact() -> None:
    ann = {"name": "Ann", "email": "ann@example.org", "rooms": [1, 2], "studied": {"at": "Home"}}
    (record,) = _read(json.dumps([ann]))
    assert record.facts == {"email": "ann@example.org", "rooms": "1, 2", "studied": "at: Home"}


def test_another_directory_reads_other_fields() -> None:
    tools = Directory(
        name="machines",
        noun="machine",
        name_field="Label",
        key="serial",
        groups={"hall": ()},
        texts=("manual",),
    )
    (record,) = _read("label,serial,hall,manual\nLathe,7,North,Turns things.\n", tools)
    assert record == Record(
        key="7",
        name="Lathe",
        groups={"hall": ("North",)},
        texts={"manual": "Turns things."},
        facts={"serial": "7"},
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("[1, 2]", "Record 1 is 1; an object"),
        ('[{"name": "Ann"}, "Bob"]', 'Record 2 is "Bob"'),
        ("[", "JSON cannot be read"),
        ('{"name": "Ann"}\n{"name": ', "Record 2 is not JSON"),
        ('{"a": [], "b": []}', "has the arrays 'a', 'b'"),
        ('{"a": 1}', "has no array"),
        ("[" * 100_000, "JSON"),
        ('[{"name": {"first": "Ann"}}]', "Record 1: name is"),
        ('[{"name": true}]', "Record 1: name is true"),
        ('[{"name": "Ann", "department": true}]', "Record 1: department is true"),
        ('[{"name": "Ann", "overview": {"a": 1}}]', 'Record 1: overview is {"a": 1}'),
        ('[{"name": "Ann", "publications": ["x", 5]}]', "Record 1: publications 2 is 5"),
        ('[{"name": "Ann", "publications": [{"doi": "1"}]}]', "a title or a text"),
        ('[{"name": "Ann", "publications": [{"title": "t", "year": 20201}]}]', "a year like 2020"),
        ('[{"name": "Ann", "Name": "Bob"}]', "a field that comes once"),
        (f'[{{"name": "{"x" * 301}"}}]', "at most 300 characters"),
        ("first,last\nAnn,Lee\n", "has no column 'name'"),
        ("name,name\nAnn,Lee\n", "names 'name' twice"),
        ("name,title\nAnn,Dr,more\n", "Record 1 has 3 cells; the first line names 2"),
        ('name,title\n"Ann,Dr\nBob,Dr\n', "unexpected end of data"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidSourceError) as caught:
        _read(text)
    assert said in caught.value.message
    assert caught.value.suggestions


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidSourceError):
        _read(b"\x00\x01\x02\xff" * 50)


def test_controls_and_halves_of_characters_are_kept_out() -> None:
    (record,) = _read('[{"name": "A\\u0000nn \\ud800", "overview": "\\udfff\\n\\u001b[31mred"}]')
    assert record.name == "A nn \ufffd"
    assert record.texts == {"overview": "\ufffd\n [31mred"}


def test_a_group_may_be_a_number() -> None:
    records = _read('[{"name": "Ann", "department": 7}, {"name": "Bob", "department": [7]}]')
    assert [record.groups for record in records] == [{"department": ("7",)}] * 2


def test_a_record_keeps_its_key_across_imports() -> None:
    first = _read('[{"name": "Ann Lée", "department": "Oncology", "title": "Dr"}]')
    again = _read('[{"department": ["oncology"], "name": "LEE, Ann"}]')
    assert first[0].key == again[0].key == "ann lee|oncology"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "department", "publications", "overview", "x"]) | st.text(),
            _json,
            max_size=5,
        ),
        max_size=3,
    )
)
def test_whatever_json_holds_it_is_read_or_refused(rows: list[dict[str, object]]) -> None:
    try:
        read = _read(json.dumps(rows))
    except InvalidSourceError as error:
        assert error.suggestions  # noqa: PT017  # either outcome is right
    else:
        assert len(read) <= len(rows)


@given(st.binary(max_size=200))
def test_whatever_bytes_there_are_they_are_read_or_refused(data: bytes) -> None:
    try:
        read = list(read_records(data, RESEARCHERS))
    except InvalidSourceError as error:
        assert error.message  # noqa: PT017  # either outcome is right
    else:
        assert all(record.name for record in read)
