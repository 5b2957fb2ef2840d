"""Describes data sets: form, fields, texts and some rows."""

from __future__ import annotations

from typing import Any, Literal

from tools.core.result import OmitNone, ToolModel
from tools.core.unicode_safety import visible_controls

Form = Literal["jsonl", "json", "csv", "tsv", "parquet", "text"]


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

    def to_text(self) -> str:
        """Returns the field in one line."""
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
        """Returns a line for each field."""
        head = f"{self.path} ({self.form}), fields of {self.sampled} rows:"
        return "\n".join([head, *(field.to_text() for field in self.fields)])


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
        not_readable: How many of them are not, such as broken JSON; `rows` leaves them out.
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
        """Returns the whole in a line, then the fields and the rows."""
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
        lines += [f"Fields of {self.sampled} rows:", *(field.to_text() for field in self.fields)]
        lines += [visible_controls(str(row)) for row in self.sample]
        return "\n".join(lines)
