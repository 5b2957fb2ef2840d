"""Configuration files of clients, some of which were written to do harm."""

from pathlib import Path

import pytest

from server.clients.dialects import parse
from server.settings import SettingsError


@pytest.mark.parametrize(
    "text",
    [
        '"' + '\\"' * 1_000_000,
        "/* " * 1_000_000,
        '{"a": "' + "b" * 1_000_000,
        "{" + ",  " * 1_000_000,
        "[" * 100_000,
    ],
)
def test_a_file_that_never_ends_is_refused_as_fast_as_it_is_long(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r"is not JSON|nested too deeply"):
        parse(file)


def test_comments_and_trailing_commas_are_left_out_of_texts_alone(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"a": "//b \\" /*c*/ ,}", /* d */ "e": [1, 2,], // "f"\n}')
    assert parse(file) == {"a": '//b " /*c*/ ,}', "e": [1, 2]}
