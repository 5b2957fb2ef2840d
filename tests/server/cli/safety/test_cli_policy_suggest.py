"""`toolcrib policy suggest` makes the rules of a project's daily work."""

import io
import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from server.cli.safety.suggest import look_at, suggested
from server.composition.tools import discover_tools
from tests.server.cli.conftest import Command
from tools.core.collections import Collections
from tools.policy.calls import Containment, Verdict
from tools.policy.policy import Policy

SCRIPTS = {"test": "node --test", "build": "tsc", "deploy:live": "x", "odd; rm -rf .": "x"}
PYTHON = {"pyproject.toml": '[project.optional-dependencies]\ndev = ["ruff>=1"]\n'}
NODE = {"package.json": json.dumps({"scripts": SCRIPTS, "devDependencies": {"typescript": "^5"}})}
MAKEFILE = {"Makefile": "test: build\n\tpytest\n.PHONY: test\nX := 1\nrelease:\n\ttwine upload\n"}

ALLOWED: list[tuple[Mapping[str, str], str]] = [
    ({}, "git init -q -b main && git status --short"),
    ({}, "git add -A && git commit -q -m 'One thing'"),
    ({}, "git checkout -q -b b && git switch -q main && git mv a b && git rebase -q main"),
    ({}, "git worktree add -q .trees/fix -b fix && git -C .trees/fix status --short"),
    ({}, "git clone -q --bare . shared.git && git remote add origin ./shared.git"),
    ({}, "git fetch -q origin && git branch --set-upstream-to=origin/main main"),
    ({}, "git config pull.rebase true"),
    ({}, "git log -1 --format='%an <%ae>%n%B' | head -5"),
    ({}, "mkdir -p src && cp a src/a && rm a; ls -l src | wc -l"),
    ({}, "find . -name '*.py' -type f | head && git reset HEAD~1"),
    ({}, "sed -i 's/a/b/' src/a && awk '{print $1}' src/a | sort -u | tee b"),
    ({}, "git ls-files | xargs grep -n x; timeout 60 git fetch"),
    ({}, "cat > src/a <<'END'\nx\nEND\nfor each in a b; do wc -l \"$each\"; done"),
    ({}, "curl -sS --retry 20 http://127.0.0.1:8123/ -o page"),
    (PYTHON, "python3 -m venv .venv && .venv/bin/pip install --quiet -e '.[dev]'"),
    (PYTHON, ".venv/bin/pytest -q tests | tail -1"),
    (PYTHON, "python -m pytest -q && .venv/bin/ruff check . && python3 scripts/make.py -x"),
    (PYTHON, "source .venv/bin/activate && pip install x && pytest"),
    (PYTHON, "python3 -m http.server 8123 --bind 127.0.0.1"),
    ({"uv.lock": ""}, "uv sync && uv run pytest -q && uv add httpx"),
    ({"poetry.lock": ""}, "poetry install && poetry run pytest -q"),
    (NODE, "npm install && npm test && npm run build -- --watch && npx tsc -p . && node a.js"),
    ({**NODE, "pnpm-lock.yaml": ""}, "pnpm install && pnpm run build && pnpm test"),
    ({**NODE, "yarn.lock": ""}, "yarn install && yarn run build"),
    ({"Cargo.toml": ""}, "cargo build --release && cargo test && cargo clippy"),
    ({"go.mod": ""}, "go mod tidy && go build ./... && go test ./..."),
    (MAKEFILE, "make && make test"),
]

NOT_ALLOWED: list[tuple[Mapping[str, str], str]] = [
    ({}, "git push origin main"),
    ({}, "git -C . push origin status"),
    ({}, "git -c core.pager=x log"),
    ({}, "git rebase -x 'npx x' main"),
    ({}, "git config core.fsmonitor ./x"),
    ({}, "git reset --hard HEAD~1"),
    ({}, "git ls-files | xargs rm"),
    ({}, "timeout 60 ./x"),
    ({}, "sed 's/a/b/e' src/a"),
    ({}, "git checkout ."),
    ({}, "git clean -fd"),
    ({}, "rm -rf src"),
    ({}, "rm -f *"),
    ({}, "find . -name a -delete"),
    ({}, "find . -exec sh {} +"),
    ({}, "curl https://example.com"),
    ({}, "python3 -m pytest"),
    ({}, "npm install"),
    (PYTHON, "python3 -c 'import os'"),
    (PYTHON, "python3 -cimport.py"),
    (PYTHON, "uv run pytest"),
    ({**PYTHON, "uv.lock": ""}, "uv run ./x"),
    (NODE, "npm publish"),
    (NODE, "npm run deploy:live"),
    (NODE, "npm exec x"),
    (NODE, "npx other"),
    (NODE, "rm -rf ."),
    (MAKEFILE, "make release"),
    (MAKEFILE, "make test SHELL='x y'"),
    ({"Cargo.toml": ""}, "cargo publish"),
    ({"go.mod": ""}, "go test -exec ./x ./..."),
]


def rules(root: Path, files: Mapping[str, str], profile: str = "standard") -> dict[str, list[str]]:
    for name, text in files.items():
        (root / name).write_text(text)
    found: dict[str, list[str]] = {"allow": [], "ask": [], "network": []}
    for each in suggested(look_at(root), profile):
        found[each.key] += each.entries
    return found


def verdict(root: Path, files: Mapping[str, str], line: str, profile: str = "standard") -> Verdict:
    registry = discover_tools(Collections())
    found = rules(root, files, profile)
    policy = Policy(profile, allow=found["allow"], ask=found["ask"], find=registry.get)
    call = {"command": line}
    return policy.judge(registry.find("bash"), call, containment=Containment.CONFINED).verdict


@pytest.mark.parametrize(("files", "line"), ALLOWED)
def test_what_a_day_of_work_runs_is_allowed(
    files: Mapping[str, str], line: str, tmp_path: Path
) -> None:
    assert verdict(tmp_path, files, line) is Verdict.ALLOW


@pytest.mark.parametrize(("files", "line"), NOT_ALLOWED)
def test_what_reaches_further_is_not(files: Mapping[str, str], line: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, files, line) is Verdict.ASK


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({}, "git push"),
        (NODE, "npm publish"),
        (NODE, "npm run deploy:live"),
        (MAKEFILE, "make release"),
        ({"Cargo.toml": ""}, "cargo publish"),
    ],
)
def test_what_leaves_the_machine_asks_where_the_profile_allows_programs(
    files: Mapping[str, str], line: str, tmp_path: Path
) -> None:
    assert verdict(tmp_path, files, "sleep 1", "trusting") is Verdict.ALLOW
    assert verdict(tmp_path, files, line, "trusting") is Verdict.ASK


@pytest.mark.parametrize(
    ("files", "network"), [({}, []), (MAKEFILE, []), (PYTHON, ["packages"]), (NODE, ["packages"])]
)
def test_registries_of_packages_are_reached_where_there_are_packages(
    files: Mapping[str, str], network: list[str], tmp_path: Path
) -> None:
    assert rules(tmp_path, files)["network"] == network


def test_a_package_file_that_is_no_json_has_no_scripts(tmp_path: Path) -> None:
    assert "bash(npm test *)" not in rules(tmp_path, {"package.json": "{"})["allow"]


CONFIG = """\
# mine
[policy]
allow = ["bash(git status *)"]  # first
deny = ["bash(git log *)"]

[log]
level = "info"
"""


@pytest.fixture
def config(work: Path) -> Path:
    file = work / "toolcrib.toml"
    file.write_text(CONFIG)
    return file


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_what_is_shown_are_settings_that_can_be_used(cli: Command, work: Path) -> None:
    for name, text in (PYTHON | NODE | MAKEFILE).items():
        (work / name).write_text(text)
    shown = cli("policy", "suggest", "--root", ".")
    assert (shown.code, shown.err) == (0, "")
    (work / "shown.toml").write_text(shown.out)
    used = cli("policy", "show", "--json", "--config", str(work / "shown.toml"))
    assert (used.code, used.err) == (0, "")  # so no rule applies to no tool, or can never match
    listed = [each["rule"] for each in json.loads(used.out)["rules"]]
    assert set(listed) >= set(tomllib.loads(shown.out)["policy"]["allow"])


def test_they_are_written_after_a_question_and_what_is_there_stays(
    cli: Command, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "y\n")
    written = cli("policy", "suggest", "--write", "--root", ".", "--config", str(config))
    assert written.code == 0
    assert ' "bash(git init *)", ' in written.out
    assert written.err.startswith("They take effect when the server restarts.\n")  # in the root
    text = config.read_text()
    assert text.startswith('# mine\n[policy]\nallow = ["bash(git status *)",\n  # Everyday')
    assert text.count("]  # first\n") == 1
    policy = tomllib.loads(text)["policy"]
    assert policy["deny"] == ["bash(git log *)"]
    assert policy["allow"].count("bash(git status *)") == 1
    assert "bash(git log *)" not in policy["allow"]
    assert tomllib.loads(text)["log"] == {"level": "info"}
    again = cli("policy", "suggest", "--write", "--root", ".", "--config", str(config))
    assert again.out == f"{config} has all of these rules.\n"
    assert config.read_text() == text


def test_nothing_is_written_where_the_answer_is_no(
    cli: Command, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "n\n")
    refused = cli("policy", "suggest", "--write", "--root", ".", "--config", str(config))
    assert refused.code == 1
    assert config.read_text() == CONFIG


def test_they_are_written_without_a_question_where_that_is_said(cli: Command, config: Path) -> None:
    cli("policy", "suggest", "--write", "--yes", "--root", ".", "--config", str(config))
    assert "bash(git init *)" in tomllib.loads(config.read_text())["policy"]["allow"]


@pytest.mark.parametrize(("mode", "is_told"), [("preferred", True), ("required", False)])
def test_it_is_told_where_the_rules_count_unconfined(
    cli: Command, monkeypatch: pytest.MonkeyPatch, mode: str, is_told: bool
) -> None:
    monkeypatch.setenv("TOOLCRIB_SYSTEM__SANDBOX", mode)
    assert ('system.sandbox = "required"' in cli("policy", "suggest").out) is is_told


def test_a_profile_that_runs_no_programs_is_not_undone(
    cli: Command, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__PROFILE", "read-only")
    refused = cli("policy", "suggest", "--write", "--yes", "--config", str(config))
    assert refused.code == 1
    assert "The profile is read-only" in refused.err
    assert config.read_text() == CONFIG


def test_settings_that_are_no_list_are_not_changed(cli: Command, config: Path) -> None:
    text = '[policy]\nallow = "bash(ls)"\n'
    config.write_text(text)
    refused = cli("policy", "suggest", "--write", "--yes", "--root", ".", "--config", str(config))
    assert refused.code == 1
    assert "cannot be changed safely: write policy.allow as a list" in refused.err
    assert config.read_text() == text
