from __future__ import annotations

import time

import pytest

from tools.agent.skillfiles.skill import FrontMatter, names_of


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
