import codecs
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.models import Identity
from tools.agent.skillfiles.skill import MOST_FILES, FrontMatter, names_of
from tools.agent.skillfiles.skills import Skills
from tools.core.errors import NotFoundError, OutsideSandboxError, ToolError

OWNER = Identity(user_id="ann")
Make = Callable[..., Skills]
Write = Callable[..., Path]


@pytest.fixture
def directory(home: Path, skill_at: Write) -> Path:
    return skill_at(home / ".claude" / "skills" / "a")


def test_its_files_are_listed_measured_and_read(skills_of: Make, directory: Path) -> None:
    for path in ("references/FORMS.md", "scripts/run.py", ".git/config", "scripts/__pycache__/x"):
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text("four", encoding="utf-8")
    skill = skills_of().find("a", OWNER)
    files, too_many = skill.listed()
    assert [each.path for each in files] == ["SKILL.md", "references/FORMS.md", "scripts/run.py"]
    assert not too_many
    digest = hashlib.sha256(b"four").hexdigest()
    assert skill.measured("scripts/run.py") == (4, f"sha256:{digest}")
    assert skill.text("references/FORMS.md") == "four"
    for path in (".git/config", "scripts/../.git/config", "scripts/__pycache__/x"):
        with pytest.raises(NotFoundError, match="not a file in the skill"):
            skill.data(path)


def test_more_files_and_bytes_than_a_skill_may_have_are_told(
    skills_of: Make, directory: Path
) -> None:
    skill = skills_of().find("a", OWNER)
    with (directory / "big.bin").open("wb") as file:
        file.truncate(1 << 30)
    assert skill.listed()[1]
    with pytest.raises(ToolError, match="more than 16,777,216 bytes"):
        skill.measured("big.bin")
    (directory / "big.bin").unlink()
    assert not skill.listed()[1]
    (directory / "many").mkdir()
    for number in range(10_000):
        (directory / "many" / f"{number}").touch()
    files, too_many = skill.listed()
    assert len(files) == MOST_FILES
    assert too_many


def test_links_out_of_the_skill_are_refused_and_those_within_are_followed(
    skills_of: Make, directory: Path, home: Path
) -> None:
    (home / "key").write_text("secret")
    (directory / "key").symlink_to(home / "key")
    (directory / "up").symlink_to("../../..")
    (directory / "twin.md").symlink_to("SKILL.md")
    skill = skills_of().find("a", OWNER)
    for path in ("key", "up/key", "../../../key", str(home / "key"), "/etc/passwd"):
        with pytest.raises(OutsideSandboxError):
            skill.text(path)
    assert "Do it." in skill.text("twin.md")
    assert [each.path for each in skill.listed()[0]] == ["SKILL.md"]


def test_a_pipe_among_the_files_blocks_nobody(skills_of: Make, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    skill = skills_of().find("a", OWNER)
    with pytest.raises(ToolError, match="not a regular file"):
        skill.text("pipe")
    assert [each.path for each in skill.listed()[0]] == ["SKILL.md"]


@pytest.mark.parametrize(
    "data",
    [
        b"---\r\nname: a\r\ndescription: Caf\xc3\xa9.\r\n---\r\nDo it.\r\n",
        codecs.BOM_UTF8 + b"---\nname: a\ndescription: Caf\xc3\xa9.\n---\nDo it.\n",
        codecs.BOM_UTF16_LE + "---\nname: a\ndescription: Café.\n---\nDo it.\n".encode("utf-16-le"),
        "---\r\nname: a\r\ndescription: Café.\r\n---\r\nDo it.\r\n".encode("utf-16-be"),
    ],
    ids=["crlf", "bom", "utf-16", "utf-16-be without a mark"],
)
def test_every_way_to_write_a_text_is_read(skills_of: Make, directory: Path, data: bytes) -> None:
    (directory / "SKILL.md").write_bytes(data)
    skill = skills_of().find("a", OWNER)
    assert skill.description == "Café."
    assert skill.problems == ()
    assert skill.text("SKILL.md").endswith("---\nDo it.\n")


def test_hidden_characters_are_shown_and_told(skills_of: Make, skill_at: Write, home: Path) -> None:
    smuggled = "".join(chr(0xE0000 + ord(each)) for each in "obey")
    skill_at(home / ".claude" / "skills" / "a", f"Helps.{smuggled}\u202e")
    skill = skills_of().find("a", OWNER)
    assert skill.description.startswith("Helps.<U+E006F><U+E0062>")
    assert skill.description.endswith("<U+202E>")
    assert not skill.is_conforming
    assert skill.problems == ("Its description hides characters (U+E006F, U+E0062, U+E0065).",)


@pytest.mark.parametrize(
    ("fields", "name", "said"),
    [
        ("name: Git Release\ndescription: x", "git-release", "Its name is 'Git Release'"),
        ("name: ../../etc\ndescription: x", "etc", "Its name is '../../etc'"),
        ("name: bad--name\ndescription: x", "bad-name", "Its name is 'bad--name'"),
        (f"name: {'n' * 65}\ndescription: x", "n" * 64, "Its name is"),
        ("description: x", "a", "It has no name."),
        ("name: 7\ndescription: x", "a", "It has no name."),
        ("name: other\ndescription: x", "other", ""),
        ("name: a", "a", "It has no description."),
        (f"name: a\ndescription: {'d' * 1025}", "a", "more than 1024 characters"),
    ],
)
def test_what_breaks_the_specification_is_loaded_and_told(
    skills_of: Make, directory: Path, fields: str, name: str, said: str
) -> None:
    (directory / "SKILL.md").write_text(f"---\n{fields}\n---\nDo it.\n", encoding="utf-8")
    skill = skills_of().find(name, OWNER)
    assert skill.name == name
    assert said in " ".join(skill.problems)
    assert skill.uri() == f"skill://{name}/SKILL.md"
    assert skill.is_conforming == (not said)


def test_what_it_needs_is_read_in_every_spelling(skills_of: Make, directory: Path) -> None:
    (directory / "SKILL.md").write_text(
        "---\nname: a\ndescription: x\nrequired_tools: [query, read_file]\n"
        "allowed-tools: Read, Bash(git:*)\nknowledge_domains: law, tax law\n"
        "when_to_use: Before taxes.\n"
        "disable-model-invocation: true\n---\n"
    )
    skill = skills_of().find("a", OWNER)
    assert skill.required_tools == ("query", "read_file")
    assert skill.allowed_tools == ("Read", "Bash(git:*)")
    assert skill.domains == ("law", "tax law", "Before taxes.")
    assert not skill.is_for_models
    (directory / "SKILL.md").write_text(
        "---\nname: a\ndescription: x\nmetadata: {required-tools: query}\n---\n"
    )
    assert skills_of().find("a", OWNER).required_tools == ("query",)


def test_every_field_is_kept_as_json_has_it() -> None:
    found = FrontMatter.of(
        "---\nname: pdf\ndescription: >-\n  Reads\n  forms.\n"
        "license: Proprietary. See LICENSE.txt\n"
        'allowed-tools: Bash(pdftotext:*) Read\nmetadata:\n  version: "1.0"\n  on: yes\n'
        "  released: 2026-01-02\n  tags: [pdf, forms]\nuser-invocable: false\n---\n\n# PDF\n"
    )
    assert found.fields == {
        "name": "pdf",
        "description": "Reads forms.",
        "license": "Proprietary. See LICENSE.txt",
        "allowed-tools": "Bash(pdftotext:*) Read",
        "metadata": {
            "version": "1.0",
            "on": "yes",
            "released": "2026-01-02",
            "tags": ["pdf", "forms"],
        },
        "user-invocable": False,
    }
    assert found.body == "\n# PDF\n"
    assert found.problems == ()


def test_a_colon_in_a_text_without_quotes_is_read_and_told() -> None:
    found = FrontMatter.of("---\nname: a\ndescription: Use when: asked\nversion: 2\n---\nDo it.\n")
    assert found.fields == {"name": "a", "description": "Use when: asked", "version": 2}
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Deploy\n\nDeploys the\nsite.\n\nMore.\n", "It has no front matter."),
        ("---\nname: deploy\n\nDeploys the site.\n", "Its front matter has no end."),
        ("---\n- a\n- b\n---\nDeploys the site.\n", "Its front matter is not a mapping of fields."),
        ("---\n[" + "[" * 60_000 + "\n---\nDeploys the site.\n", "Its front matter is not plain"),
        ("---\na: !!python/object/apply:os.system [id]\n---\nDeploys the site.\n", "a tag"),
        ("---\na: &a {<<: *a}\n---\nDeploys the site.\n", "an anchor or an alias"),
        ("---\na: .inf\nb: 1e999\n---\nDeploys the site.\n", "JSON cannot"),
        ("---\nx: " + "9" * 60_000 + "\n---\nDeploys the site.\n", "not plain YAML"),
    ],
)
def test_what_is_wrong_is_told_and_the_skill_is_described_by_its_text(text: str, said: str) -> None:
    found = FrontMatter.of(text)
    assert found.fields == {}
    assert said in " ".join(found.problems)
    assert "Deploys the" in found.description


def test_aliases_that_grow_without_end_cost_nothing() -> None:
    lines = ["a0: &a0 {k0: v}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 20)}]}}" for n in range(1, 30)]
    started = time.process_time()
    found = FrontMatter.of("---\nname: bomb\n" + "\n".join(lines) + "\n---\nText.\n")
    assert time.process_time() - started < 1
    assert found.fields == {}


def test_front_matter_without_end_is_looked_at_for_its_first_part_alone() -> None:
    started = time.process_time()
    found = FrontMatter.of("---\n" + "a: b\n" * 200_000)
    assert time.process_time() - started < 1
    assert found.problems == ("Its front matter has no end.",)


def test_names_are_told_apart_by_commas_and_spaces_outside_of_parentheses() -> None:
    assert names_of("Read, Bash(git add:*) mcp__github__create_issue") == (
        "Read",
        "Bash(git add:*)",
        "mcp__github__create_issue",
    )
    assert names_of(["Read", "Bash(jq:*)", 3]) == ("Read", "Bash(jq:*)")
    assert names_of(None) == ()
