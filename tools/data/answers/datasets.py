"""What a data set looks like: its form, fields and texts, and some rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

from tools.core.invisible import visible_controls
from tools.core.result import OmitNone, ToolModel

Form = Literal["jsonl", "json", "csv", "tsv", "parquet", "text"]

EXAMPLE_CHARACTERS = 80
SHOWN_CHARACTERS = 400
"""Of a value in a row that is shown."""

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


class FieldReport(ToolModel):
    """What the rows of a sample have in one field.

    Attributes:
        name: The field; with dots, one in an object.
        types: Of which JSON types its values are.
        filled: In how many rows it has a value that is neither null nor empty.
        example: How one of its values begins.
        shortest: Characters of its shortest text; absent where it has none.
        longest: Characters of its longest text.
        mean: Characters of its texts, on the average.
    """

    name: str
    types: list[str]
    filled: int
    example: str
    shortest: OmitNone[int] = None
    longest: OmitNone[int] = None
    mean: OmitNone[int] = None

    @classmethod
    def of(cls, name: str, values: Sequence[Any]) -> Self:
        """What a field has, by its value in each row that has one."""
        texts = [len(value) for value in values if isinstance(value, str)]
        filled = [value for value in values if value not in (None, "", [], {})]
        return cls(
            name=name,
            types=sorted({_type(value) for value in values}),
            filled=len(filled),
            example=str(filled[0])[:EXAMPLE_CHARACTERS] if filled else "",
            shortest=min(texts, default=None),
            longest=max(texts, default=None),
            mean=round(sum(texts) / len(texts)) if texts else None,
        )

    def line(self) -> str:
        """The field in one line."""
        lengths = (
            f", {self.shortest} to {self.longest} characters, {self.mean} on average"
            if self.mean is not None
            else ""
        )
        example = visible_controls(" ".join(self.example.split()))
        return f"- {self.name}: {'/'.join(self.types)}{lengths}; e.g. {example}"


class DatasetFields(ToolModel):
    """The fields of a data set.

    Attributes:
        path: The data set.
        form: Its form.
        sampled: Rows that were looked at.
        fields: What they have.
    """

    path: str
    form: Form
    sampled: int
    fields: list[FieldReport]

    def to_text(self) -> str:
        """A line for each field."""
        head = f"{self.path} ({self.form}), fields of {self.sampled} rows:"
        return "\n".join([head, *(field.line() for field in self.fields)])


class DatasetInspection(DatasetFields):
    """What a data set looks like.

    Attributes:
        size: Bytes.
        files: How many files it has.
        rows: How many rows; absent where that was not counted.
        about_rows: Where that was not counted: how many they are by the size of those seen.
        text_key: The field with the longest texts; absent where there is none.
        repeated: Rows of the sample whose text an earlier one has too, in any case and spacing.
        sample: The first rows, with long values cut.
        looked: Rows that were looked at for those that are not readable: at most the first 1,000.
        not_readable: How many of them are not: broken JSON, another value, bytes that are not
            UTF-8, more fields than the header. `rows` has them not.
        first_not_readable: The lines of the first, with what is wrong.
    """

    size: int
    files: int
    rows: OmitNone[int] = None
    about_rows: OmitNone[int] = None
    text_key: OmitNone[str] = None
    repeated: int
    sample: list[dict[str, Any]]
    looked: int
    not_readable: int
    first_not_readable: list[str]

    def to_text(self) -> str:
        """The whole in a line, then the fields and the rows."""
        if self.rows is not None:
            many = f"{self.rows} rows"
        elif self.about_rows is not None:
            many = f"about {self.about_rows} rows"
        else:
            many = f"more than {self.looked} rows"
        parts = f" in {self.files} files" if self.files > 1 else ""
        lines = [f"{self.path}: {self.form}, {many}{parts}, {self.size} bytes."]
        if self.not_readable:
            others = self.not_readable - len(self.first_not_readable)
            more = [f"and {others} more"] if others else []
            first = "; ".join([*self.first_not_readable, *more])
            lines.append(f"Not readable: {self.not_readable} of {self.looked} rows: {first}.")
        if self.text_key is not None:
            again = f"{self.repeated} of {self.sampled} sampled rows repeat an earlier text"
            lines.append(f"Text is in {self.text_key!r}; {again}.")
        lines += [f"Fields of {self.sampled} rows:", *(field.line() for field in self.fields)]
        lines += [visible_controls(str(row)) for row in self.sample]
        return "\n".join(lines)


def fields_of(rows: Sequence[dict[str, Any]]) -> list[FieldReport]:
    """The fields of rows, those in objects too, in the order in which they come."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in _flat(row):
            values.setdefault(name, []).append(value)
    return [FieldReport.of(name, found) for name, found in values.items()]


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row with its long values cut."""
    return {name: _cut(value) for name, value in row.items()}


def _flat(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        yield f"{prefix}{name}", value
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")


def _type(value: object) -> str:
    return _TYPES.get(type(value), "array" if isinstance(value, list) else "object")


def _cut(value: Any) -> Any:  # noqa: ANN401  # any JSON
    if isinstance(value, str):
        return value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}…"
    if isinstance(value, dict | list) and len(str(value)) > SHOWN_CHARACTERS:
        return f"{str(value)[:SHOWN_CHARACTERS]}…"
    return value
