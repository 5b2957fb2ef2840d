import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.models import Identity
from tools.agent.skillfiles.skills import Skills
from tools.core.errors import NotFoundError

OWNER = Identity(user_id="ann")
OTHER = Identity(user_id="bob")
OWN = {"using-toolcrib", "writing-a-tool", "keeping-memory", "cleaning-data"}

Make = Callable[..., Skills]
Write = Callable[..., Path]


def _paths(skills: Skills) -> set[str]:
    return {each.path for each in skills.all()} - OWN


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (".claude/skills/a", "~/.claude/skills"),
        (".agents/skills/a", "~/.agents/skills"),
        (".codex/skills/.system/a", "~/.codex/skills"),
        (".codex/skills/category/a", "~/.codex/skills"),
        (".gemini/skills/a", "~/.gemini/skills"),
        (".gemini/extensions/flow/skills/a", "extension flow of Gemini CLI"),
        (".config/opencode/skills/a", "~/.config/opencode/skills"),
        (".cursor/skills/a", "~/.cursor/skills"),
        (".copilot/skills/a", "~/.copilot/skills"),
    ],
)
def test_skills_are_found_where_agents_keep_them(
    skills_of: Make, home: Path, skill_at: Write, place: str, shown: str
) -> None:
    skill_at(home / place)
    found = skills_of().find("a", OWNER)
    assert found.place.shown == shown
    assert found.place.is_personal
    assert not found.place.is_project
    assert found.problems == ()
    assert _paths(skills_of(discover=False)) == set()


def test_a_scan_of_a_moment_ago_serves_again_whom_that_is_enough(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    skills = skills_of()
    assert not {each.path for each in skills.all(max_age=60)} - OWN
    skill_at(home / ".claude" / "skills" / "pdf")
    assert not {each.path for each in skills.seen_by(OWNER, max_age=60)} - OWN
    assert _paths(skills) == {"pdf"}
    assert {each.path for each in skills.seen_by(OWNER, max_age=60)} == {"pdf", *OWN}


def test_a_place_that_cannot_be_looked_into_takes_none_of_the_others_along(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    skill_at(home / ".claude" / "skills" / "pdf")
    assert _paths(skills_of(XDG_CONFIG_HOME="/" + "x" * 5_000)) == {"pdf"}


def test_the_environment_says_where_agents_keep_their_files(
    skills_of: Make, tmp_path: Path, skill_at: Write
) -> None:
    skill_at(tmp_path / "elsewhere" / "skills" / "a")
    assert _paths(skills_of(CODEX_HOME=str(tmp_path / "elsewhere"))) == {"a"}
    assert _paths(skills_of(CODEX_HOME="elsewhere")) == set()


def test_skills_of_plugins_are_found_where_these_are_installed_and_on(
    skills_of: Make, home: Path, tmp_path: Path, skill_at: Write
) -> None:
    for name in ("superpowers", "off"):
        skill_at(tmp_path / "cache" / name / "1.0" / "skills" / f"{name}-skill")
    claude = home / ".claude"
    (claude / "plugins").mkdir(parents=True)
    installed = {
        f"{name}@market": [{"scope": "user", "installPath": str(tmp_path / "cache" / name / "1.0")}]
        for name in ("superpowers", "off")
    }
    listing = claude / "plugins" / "installed_plugins.json"
    listing.write_text(json.dumps({"version": 2, "plugins": installed}))
    (claude / "settings.json").write_text(json.dumps({"enabledPlugins": {"off@market": False}}))
    skills = skills_of()
    assert _paths(skills) == {"superpowers-skill"}
    assert skills.find("superpowers:superpowers-skill", OWNER).place.label == "superpowers"
    listing.write_text("[" * 100_000)
    assert _paths(skills) == set()


def test_a_skill_of_the_project_is_marked_and_shadows_none(
    skills_of: Make, home: Path, root: Path, skill_at: Write
) -> None:
    skill_at(home / ".claude" / "skills" / "deploy", "Mine.")
    skill_at(root / ".claude" / "skills" / "deploy", "Theirs.")
    skill_at(root / ".agents" / "skills" / "using-toolcrib", "Theirs.")
    skills = skills_of()
    assert skills.find("deploy", OWNER).description == "Mine."
    theirs = skills.find("project-claude/deploy", OWNER)
    assert theirs.description == "Theirs."
    assert theirs.place.is_project
    assert theirs.place.shown == "project .claude/skills"
    assert skills.find("using-toolcrib", OWNER).place.label == "toolcrib"
    assert skills.find("project-agents/using-toolcrib", OWNER).description == "Theirs."


def test_directories_of_the_settings_come_first(
    skills_of: Make, tmp_path: Path, home: Path, skill_at: Write
) -> None:
    skill_at(home / ".claude" / "skills" / "deploy", "Of Claude.")
    skill_at(tmp_path / "team" / "skills" / "deploy", "Of the team.")
    skills = skills_of(tmp_path / "team" / "skills", tmp_path / "gone")
    assert skills.find("deploy", OWNER).description == "Of the team."
    assert not skills.find("deploy", OWNER).place.is_personal
    assert skills.find("team/deploy", OWNER) is skills.find("deploy", OWNER)
    assert skills.find("skill://claude/deploy/SKILL.md", OWNER).description == "Of Claude."


def test_a_directory_of_the_settings_may_be_a_skill_itself(
    skills_of: Make, tmp_path: Path, skill_at: Write
) -> None:
    skills = skills_of(skill_at(tmp_path / "alone"))
    assert _paths(skills) == {"alone"}


def test_the_same_skill_is_one_by_a_link_and_as_a_copy(
    skills_of: Make, home: Path, root: Path, skill_at: Write
) -> None:
    there = skill_at(home / ".agents" / "skills" / "find-docs")
    (home / ".claude" / "skills").mkdir(parents=True)
    (home / ".claude" / "skills" / "find-docs").symlink_to(there)
    skill_at(root / ".claude" / "skills" / "find-docs")
    assert _paths(skills_of()) == {"find-docs"}


def test_skills_of_one_name_in_one_place_are_told_apart(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    for team in ("a", "b", "c"):
        skill_at(home / ".claude" / "skills" / team / "review", f"For {team}.")
    skills = skills_of()
    assert [each.path for each in skills.all() if each.path not in OWN] == [
        "review",
        "claude/review",
        "claude/c-review/review",
    ]


def test_a_skill_in_a_skill_belongs_to_it(skills_of: Make, home: Path, skill_at: Write) -> None:
    outer = skill_at(home / ".claude" / "skills" / "outer")
    skill_at(outer / "examples" / "inner")
    skills = skills_of()
    assert _paths(skills) == {"outer"}
    assert [each.path for each in skills.find("outer", OWNER).listed()[0]] == [
        "SKILL.md",
        "examples/inner/SKILL.md",
    ]


def test_a_saved_skill_is_seen_at_the_next_look(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    skills = skills_of()
    directory = skill_at(home / ".claude" / "skills" / "a", "Before.")
    before = skills.all()
    assert skills.find("a", OWNER).description == "Before."
    assert skills.all() is before
    skill_at(directory, "After.")
    assert skills.find("a", OWNER).description == "After."
    skill_at(home / ".claude" / "skills" / "b")
    assert _paths(skills) == {"a", "b"}
    (directory / "SKILL.md").unlink()
    assert _paths(skills) == {"b"}


def test_what_others_may_not_see_is_what_lies_in_the_home_directory(
    skills_of: Make, home: Path, root: Path, tmp_path: Path, skill_at: Write
) -> None:
    skill_at(home / ".claude" / "skills" / "mine")
    skill_at(root / ".claude" / "skills" / "ours")
    skill_at(tmp_path / "team" / "shared")
    skills = skills_of(tmp_path / "team")
    assert {each.path for each in skills.seen_by(OTHER)} == {"ours", "shared", *OWN}
    with pytest.raises(NotFoundError):
        skills.find("mine", OTHER)


def test_an_unknown_name_is_told_with_the_nearest(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    skill_at(home / ".claude" / "skills" / "pdf-processing")
    with pytest.raises(NotFoundError, match="No skill is called 'pdf_procesing'") as raised:
        skills_of().find("pdf_procesing", OWNER)
    assert raised.value.suggestions == ("pdf-processing",)


def test_what_is_protected_has_no_skills(
    skills_of: Make, home: Path, root: Path, tmp_path: Path, skill_at: Write
) -> None:
    data = skill_at(tmp_path / "data")
    (home / ".claude" / "skills").mkdir(parents=True)
    (home / ".claude" / "skills" / "data").symlink_to(data)
    (root / ".claude" / "skills").mkdir(parents=True)
    (root / ".claude" / "skills" / "data").symlink_to(data)
    skills = skills_of(data, protected=(data,))
    assert _paths(skills) == set()
    assert all(
        str(tmp_path / "root") in each.why or "protected" in each.why for each in skills.left_out()
    )


def test_a_link_of_a_project_leads_out_of_the_root_to_no_skill(
    skills_of: Make, root: Path, tmp_path: Path, skill_at: Write
) -> None:
    outside = skill_at(tmp_path / "outside" / "secret", "Secret.")
    inside = skill_at(root / "kept" / "inside", "Inside.")
    (root / ".claude" / "skills").mkdir(parents=True)
    (root / ".claude" / "skills" / "secret").symlink_to(outside)
    (root / ".claude" / "skills" / "inside").symlink_to(inside)
    skills = skills_of()
    assert _paths(skills) == {"inside"}
    assert "Secret." not in repr([each.why for each in skills.left_out()])


def test_a_place_of_a_project_leads_out_of_the_root_to_no_skill(
    skills_of: Make, root: Path, tmp_path: Path, skill_at: Write
) -> None:
    skill_at(tmp_path / "outside" / "skills" / "secret", "Secret.")
    (root / ".agents").mkdir()
    (root / ".agents" / "skills").symlink_to(tmp_path / "outside" / "skills")
    (root / ".codex").symlink_to(tmp_path / "outside")
    (root / ".gemini").mkdir()
    (root / ".gemini" / "skills").symlink_to("../../outside/skills")
    skills = skills_of()
    assert _paths(skills) == set()
    assert skills.left_out() == ()


def test_a_place_that_becomes_a_link_out_of_the_root_has_no_skills(
    skills_of: Make, root: Path, tmp_path: Path, skill_at: Write
) -> None:
    directory = skill_at(root / ".claude" / "skills" / "a", body="Ours.")
    skills = skills_of()
    found = skills.find("a", OWNER)
    directory.rename(tmp_path / "moved")
    secret = skill_at(tmp_path / "secret", body="Secret.")
    directory.symlink_to(secret)
    with pytest.raises(Exception, match="leads out of the root"):
        found.measured("SKILL.md")
    assert _paths(skills) == set()


@pytest.mark.parametrize("kind", ["pipe", "directory", "huge", "binary", "endless"])
def test_what_is_no_readable_skill_md_is_left_out_and_told(
    skills_of: Make, home: Path, skill_at: Write, kind: str
) -> None:
    skill_at(home / ".claude" / "skills" / "good")
    directory = home / ".claude" / "skills" / "bad"
    directory.mkdir()
    main = directory / "SKILL.md"
    match kind:
        case "pipe":
            os.mkfifo(main)
        case "directory":
            main.mkdir()
        case "huge":
            with main.open("wb") as file:
                file.truncate(1 << 30)
        case "binary":
            main.write_bytes(b"\x7fELF\0\1\2\3" * 100)
        case _:
            main.symlink_to(main)
    skills = skills_of()
    assert _paths(skills) == {"good"}
    if kind != "endless":  # of which there is nothing
        (left,) = skills.left_out()
        assert left.where == str(directory)
        assert left.why


def test_ten_thousand_directories_are_looked_at_in_part(skills_of: Make, home: Path) -> None:
    place = home / ".claude" / "skills"
    for number in range(10_000):
        (place / f"d{number}").mkdir(parents=True)
    started = time.process_time()
    skills = skills_of()
    assert _paths(skills) == set()
    assert time.process_time() - started < 2
    (left,) = skills.left_out()
    assert left.why.startswith("There are too many before it")


def test_more_skills_than_are_looked_at_are_told(
    skills_of: Make, home: Path, root: Path, skill_at: Write
) -> None:
    for number in range(996):
        skill_at(home / ".claude" / "skills" / f"s{number}")
    skill_at(root / ".claude" / "skills" / "last")
    skills = skills_of()
    assert len(skills.all()) == 1_000
    (left,) = skills.left_out()
    assert left.where == str(root / ".claude" / "skills" / "last")


def test_three_hundred_skills_are_listed_in_twenty_milliseconds(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    for number in range(300):
        skill_at(home / ".claude" / "skills" / f"skill-{number}")
    skills = skills_of()
    first = skills.all()
    spent = []
    for _ in range(5):
        started = time.thread_time()
        assert skills.all() is first
        spent.append(time.thread_time() - started)
    assert min(spent) < 0.02


def test_threads_that_look_at_once_see_the_same(
    skills_of: Make, home: Path, skill_at: Write
) -> None:
    for number in range(20):
        skill_at(home / ".claude" / "skills" / f"skill-{number}")
    skills = skills_of()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(skills.all())) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(each is found[0] for each in found)
    assert len(found) == len(threads)
