from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tools.functions.script import (
    ScriptMetadata,
    ScriptMetadataError,
    _blocks,
    read_script_metadata,
)

CANONICAL = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""The regular expression that the specification gives."""


def script(*toml: str) -> str:
    """A file with a block of these lines, opened on its third."""
    block = [f"# {line}".rstrip() for line in toml]
    return "\n".join(["#!/usr/bin/env python", "", "# /// script", *block, "# ///", "import six"])


def refusal(source: str) -> tuple[int, str]:
    with pytest.raises(ScriptMetadataError) as caught:
        read_script_metadata(source)
    return caught.value.line, caught.value.message


def test_dependencies_and_python_versions_are_read() -> None:
    source = script(
        'requires-python = ">=3.11,<4"',
        "dependencies = [",
        '  "Six",',
        "",
        "  \"numpy >= 2 ; python_version < '3.14'\",  # the newest",
        '  "mine @ https://example.org/mine-1.0-py3-none-any.whl",',
        "]",
    )
    assert read_script_metadata(source) == ScriptMetadata(
        dependencies=(
            "Six",
            'numpy>=2; python_version < "3.14"',
            "mine @ https://example.org/mine-1.0-py3-none-any.whl",
        ),
        requires_python="<4,>=3.11",
    )


@pytest.mark.parametrize(
    "source",
    [
        "",
        "import six",
        script(""),
        script("[tool.other]", "dependencies = 1"),
        "# /// script\n# dependencies = ['six']\nimport six",  # never closed
        "# /// script\n# dependencies = ['six']\n\n# ///",  # closed too late
        "# /// other\n# dependencies = ['six']\n# ///",
        "  # /// script\n  # dependencies = ['six']\n  # ///",
        "#/// script\n# dependencies = ['six']\n# ///",
    ],
)
def test_a_file_that_says_nothing_asks_for_nothing(source: str) -> None:
    assert read_script_metadata(source) == ScriptMetadata()


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_understood(newline: str) -> None:
    source = script("dependencies = [", '  "six",', "]").replace("\n", newline)
    assert read_script_metadata(source).dependencies == ("six",)


def test_a_block_ends_at_the_last_closing_line_of_its_comment() -> None:
    source = script('dependencies = ["six"]', "[tool.x]", "text = '''", "///", "'''")
    assert read_script_metadata(source).dependencies == ("six",)


def test_a_second_block_is_refused() -> None:
    line, message = refusal(script("") + "\n" + script(""))
    assert line == 9
    assert "the first is at line 3" in message


@pytest.mark.parametrize(
    ("toml", "line", "says"),
    [
        (["dependencies = [", '  "six"', '  "numpy"', "]"], 6, "TOML"),
        (["a = 1", "a = 2", "b = 1"], 5, "TOML"),
        (["a = '''"], 4, "TOML"),
        (["a = " + "[" * 5000], 3, "TOML"),
        (["a = " + "9" * 5000], 3, "TOML"),
        (["", "dependencies = 'six'"], 5, "must be a list of strings"),
        (["dependencies = ['six', 1]"], 4, "not ['six', 1]"),
        (["dependencies = {six = '1'}"], 4, "must be a list of strings"),
        (["dependencies = [", "  'six',", "  'numpy=2',", "]"], 6, "'numpy=2'"),
        (["dependencies = ['--index-url=https://example.org']"], 4, "not a requirement"),
        (["dependencies = ['']"], 3, "not a requirement"),
        (["dependencies = ['./here']"], 4, "not a requirement"),
        (["requires-python = '3.11'"], 4, "not '3.11'"),
        (["requires-python = 3.11"], 4, "not 3.11"),
        (["requires_python = '>=3.11'"], 4, "did you mean 'requires-python'"),
        (["dependancies = ['six']"], 4, "did you mean 'dependencies'"),
        (["dependencies = ['uvicorn']", "[tool.uv.sources]", "uvicorn = {}"], 5, "(sources)"),
        (["[[tool.uv.index]]", "url = 'https://example.org'"], 4, "(index)"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(
    toml: list[str], line: int, says: str
) -> None:
    found, message = refusal(script(*toml))
    assert (found, says in message) == (line, True), message


LINES = st.sampled_from(
    [
        *("# /// script", "# /// other", "# ///", "#", "# ", "# a = 1", "# x\f\x85y", "#a", "a"),
        *("", " #"),
    ]
)


@given(st.lists(LINES, max_size=20))
def test_blocks_are_those_that_the_specification_finds(lines: list[str]) -> None:
    expected = [
        (
            match["type"],
            "".join(re.sub("(?m)^# ?", "", line) + "\n" for line in match["content"].split("\n")),
        )
        for match in CANONICAL.finditer("\n".join(lines))
    ]
    assert [
        (block.type, "".join(f"{line}\n" for line in [*block.content, ""]))
        for block in _blocks(lines)
    ] == expected


WILD = st.one_of(
    st.text(),
    st.lists(st.one_of(LINES, st.text().map("# {}".format))).map("\n".join),
    st.text().map(lambda text: f'# /// script\n# dependencies = ["{text}"]\n# ///'),
    st.text().map(lambda text: f'# /// script\n# requires-python = "{text}"\n# ///'),
    st.lists(st.text(alphabet="[]{}='\"\\,.:#-019aednpsTZ\n "), max_size=5).map(
        lambda texts: "# /// script\n# " + "\n# ".join("\n".join(texts).split("\n")) + "\n# ///"
    ),
)


@given(WILD)
def test_any_text_is_read_or_refused_with_a_line_of_its_own(source: str) -> None:
    refused = None
    try:
        metadata = read_script_metadata(source)
    except ScriptMetadataError as error:
        refused = error
    if refused:
        assert refused.message
        assert 1 <= refused.line <= len(re.split("\r\n|\r|\n", source))
    else:
        normal = tuple(str(Requirement(text)) for text in metadata.dependencies)
        assert metadata == ScriptMetadata(normal, str(SpecifierSet(metadata.requires_python)))
