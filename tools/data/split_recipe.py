"""How `toolcrib data split` splits a data set, as a file that it writes and runs again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.data.recipe import Key, as_yaml, faults_of

BEGINS = "# Run it again with `toolcrib data split --recipe` and the name of this file.\n"

ROWS = ".rows"
"""Ends the stem of a file with rows that were exported to be split."""

MOST_LEVELS = 4
"""How deep it may be nested."""


def check_parts(parts: Mapping[str, float]) -> Mapping[str, float]:
    """Checks that the shares of several parts add up to 1, within rounding.

    Raises:
        ValueError: If they do not; it says what to write instead.
    """
    total = sum(parts.values())
    if len(parts) > 1 and round(total, 2) == 1:
        return parts
    if len(parts) > 1:
        better = ",".join(f"{name}={share / total:.3g}" for name, share in parts.items())
        raise ValueError(f"the shares add up to {total:g}, not to 1; for example {better}")
    shown = next((f"{name}={share:g}" for name, share in parts.items() if share < 1), "train=0.9")
    rest = 1 - float(shown.partition("=")[2])
    raise ValueError(f"a split has two parts or more; for example {shown},rest={rest:g}")


Name = Annotated[str, Field(max_length=64, pattern=r"^[^\W\d]\w*$")]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class SplitRecipe(ToolModel):
    """How a data set is split.

    Attributes:
        source: A JSONL file.
        text_key: The field whose texts decide the parts; None for the field with the longest.
        seed: Another one makes other parts.
        parts: The share of each part; together they are 1.
    """

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, Field(min_length=1, max_length=4_096)]
    text_key: Key | None = None
    seed: int = 0
    parts: Annotated[dict[Name, Share], Field(max_length=100), AfterValidator(check_parts)]

    def to_yaml(self) -> str:
        """Writes it as a file."""
        return f"{BEGINS}{as_yaml(self.model_dump(exclude_none=True))}"

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Reads such a file.

        Raises:
            InvalidArgumentsError: If it is not a recipe of a split; it says where.
        """
        from storage.reading.yamltext import read_yaml

        try:
            return cls.model_validate(read_yaml(text, plain=MOST_LEVELS, unique=True))
        except ValidationError as error:
            fault = faults_of(error)
        except (ValueError, RecursionError) as error:
            fault = " ".join(str(error).split())
        raise InvalidArgumentsError(
            f"This is no recipe of a split ({fault}).",
            next_actions=["Correct it, or run `toolcrib data split` to write it again."],
        )
