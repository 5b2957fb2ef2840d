"""How a data set is split: what `toolcrib data split` has run, and runs again.

A split is no operator of Data-Juicer's, which writes one file, so this is a recipe of its own kind.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, ValidationError

from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.data.recipe import Key, as_yaml

BEGINS = "# Run it again with `toolcrib data split --recipe` and the name of this file.\n"

ROWS = ".rows"
"""Ends the stem of a file with rows that were exported to be split."""

MOST_LEVELS = 4
"""How deep it may be nested."""

Name = Annotated[str, Field(max_length=64, pattern=r"^[^\W\d]\w*$")]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class SplitRecipe(ToolModel):
    """How a data set is split.

    Attributes:
        source: A JSONL file.
        text_key: The field whose texts decide the parts; None for that with the longest.
        seed: Another one makes other parts.
        parts: The share of each part; they need not add up to 1.
    """

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, Field(min_length=1, max_length=4_096)]
    text_key: Key | None = None
    seed: int = 0
    parts: Annotated[dict[Name, Share], Field(min_length=1, max_length=100)]

    def to_yaml(self) -> str:
        """The file that says it."""
        return f"{BEGINS}{as_yaml(self.model_dump(exclude_none=True))}"

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """The recipe that such a file is.

        Raises:
            InvalidArgumentsError: If it is none; it says where.
        """
        from storage.reading.yamltext import read_yaml

        try:
            return cls.model_validate(read_yaml(text, plain=MOST_LEVELS))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            said = f"{where}: {first['msg']}"
        except (ValueError, RecursionError) as error:
            said = " ".join(str(error).split())
        raise InvalidArgumentsError(
            f"This is no recipe of a split ({said}).",
            next_actions=["Put it right, or have `toolcrib data split` write it again."],
        )
