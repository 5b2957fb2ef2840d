"""`toolcrib policy suggest`: shows the rules for a project, or writes them to the settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tomlkit
import typer

from server.cli.invocation import invocation
from server.cli.safety.project import Project, look_at
from server.cli.terminal.screen import echo, forget_typed, print_json
from server.composition.current_policy import counting_file
from server.mcp.visible import visible
from server.settings import SettingsError
from server.settings.file import ListEntries, SettingsFile, add_entries
from server.settings.settings import DEFAULT_SOURCE
from storage.locks import locked
from tools.answers.directory import counted
from tools.sandbox.processes.models import SandboxMode

if TYPE_CHECKING:
    from server.settings import Settings


_PACKAGES = "packages"
"""The package registries, as `system.network` names them."""

_FILES = (
    *("ls", "cat", "head", "tail", "wc", "stat"),
    *("file", "du", "df", "tree", "pwd", "which", "date"),
    *("basename", "dirname", "realpath", "echo", "printf", "true", "false", "test", "[", "sleep"),
    *("grep", "rg", "sed", "awk", "jq", "sort", "uniq", "cut", "tr", "nl", "tac", "column", "seq"),
    *("diff", "cmp", "comm", "md5sum", "sha256sum", "xxd", "od", "strings", "tee", "uname", "id"),
    *("cd", "mkdir", "touch", "cp", "mv", "ln", "chmod", "rmdir", "tar", "gzip", "unzip", "zip"),
    *("ps", "kill"),
)
_RUNNING = ("xargs", "timeout", "time")
_FIND = (
    *("find **", "find ** -name **", "find ** -type **", "find ** -type ** -name **"),
    *("find ** -name ** -type **", "find ** -maxdepth ** -type **"),
)

_GIT = (
    *("--version", "init", "clone", "status", "diff"),
    *("log", "show", "blame", "grep", "describe", "shortlog"),
    *("reflog", "rev-parse", "rev-list", "ls-files", "ls-tree", "merge-base", "check-ignore"),
    *("add", "rm", "mv", "commit", "stash", "tag", "apply", "branch", "merge", "rebase"),
    *("cherry-pick", "revert", "bisect", "worktree", "remote", "fetch", "pull"),
)
_GIT_KEEPING = (
    *("git switch **", "git switch -q **", "git checkout -", "git switch -"),
    *(
        f"git {each}{more}"
        for each in ("switch -c", "switch -q -c", "checkout -b", "checkout -q -b")
        for more in (" **", " ** **")
    ),
    *(f"git checkout {each}" for each in ("main", "master", "-q main", "-q master")),
    *("git restore --staged **", "git restore --staged ** **", "git reset", "git reset HEAD*"),
    "git reset --soft **",
)
_GIT_ELSEWHERE = ("status", "diff", "log", "show", "add", "commit", "branch", "rev-parse")
_GIT_CONFIG = ("--get", "--list", "user.name", "user.email", "pull.rebase", "init.defaultBranch")

_PYTHONS = ("python", "python3", ".venv/bin/python")
_MODULES = ("venv", "pip", "pytest", "unittest", "http.server", "json.tool", "compileall", "build")
_PYTHON_TOOLS = ("ruff", "mypy", "pyright", "black", "isort", "flake8", "pylint", "coverage")

_NODE_TOOLS = {"typescript": "tsc", "eslint": "eslint", "prettier": "prettier", "jest": "jest"}
_NODE_TOOLS |= {"vitest": "vitest", "mocha": "mocha", "vite": "vite", "@playwright/test": ""}
_NODE_COMMANDS = ("install", "add", "remove", "list", "outdated", "why")
_NPM_COMMANDS = ("install", "i", "ci", "uninstall", "ls", "outdated", "explain", "view")

_CARGO = (
    *("build", "check", "test", "run", "clippy", "fmt", "doc", "bench", "add", "remove"),
    *("update", "fetch", "tree", "metadata", "clean"),
)
_GO = ("build", "test", "run", "vet", "fmt", "mod", "get", "list", "doc", "install", "version")

_LEAVES = ("publish", "release", "deploy", "upload", "push")
"""Words in names of scripts and targets that reach beyond this machine."""


def suggested(project: Project, profile: str) -> list[ListEntries]:
    """Returns the settings for a project, in groups with a comment each.

    Only the profile that allows programs needs rules that ask for what leaves the machine. The
    others ask without a rule, and an ask rule would match every command with unknown programs.

    Args:
        project: The project.
        profile: The policy profile in the settings.
    """
    groups = [*_everywhere(), *_of_python(project), *_of_node(project), *_of_others(project)]
    groups += [_asking(project)] if profile == "trusting" else []
    managers = {"PyPI": project.python, "npm": project.node, "crates.io": project.rust}
    managers |= {"Go": project.go}
    named = ", ".join(name for name, there in managers.items() if there)
    if named:
        comment = f"Registries of packages, to install from ({named})."
        groups.append(ListEntries("system", "network", (_PACKAGES,), comment))
    return groups


def _everywhere() -> Iterator[ListEntries]:
    yield _allow(
        "Everyday commands, which confinement keeps to the root.", (f"{name} *" for name in _FILES)
    )
    yield _allow("What these run needs a rule of its own.", (f"{name} *" for name in _RUNNING))
    yield _allow("Finding files; no deleting, no running programs: `**` is one word.", _FIND)
    yield _allow("Removing single files.", ("rm **", "rm -f **"))
    yield _allow("Local Git commands; no push.", (f"git {each} *" for each in _GIT))
    yield _allow("Git commands that discard no changes and remove no files.", _GIT_KEEPING)
    yield _allow(
        "The same in a work tree or another folder.",
        (f"git -C ** {each} *" for each in _GIT_ELSEWHERE),
    )
    yield _allow(
        "Settings of Git that run nothing.", (f"git config {each} *" for each in _GIT_CONFIG)
    )
    yield _allow(
        "Servers that agents start; what else curl reaches, system.network decides.",
        (f"curl * http://{host}:* *" for host in ("localhost", "127.0.0.1")),
    )


def _of_python(project: Project) -> Iterator[ListEntries]:
    if not project.python:
        return
    tools = tuple(each for each in _PYTHON_TOOLS if each in project.python_tools)
    modules = (*_MODULES, *tools)
    yield _allow(
        "Python's own tools, in the virtual environment or not; tests run the project's code.",
        (f"{python} -m {module} *" for python in _PYTHONS for module in modules),
    )
    yield _allow(
        "The same by their own names.",
        (
            f"{folder}{each} *"
            for each in ("pip", "pytest", *tools)
            for folder in ("", ".venv/bin/")
        ),
    )
    yield _allow(
        "Scripts in files; code on the command line (-c) asks.",
        (f"{python} {each}" for python in _PYTHONS for each in ("*.py *", "--version")),
    )
    yield _allow(
        "Entering and leaving the virtual environment.",
        ("source .venv/bin/activate", ". .venv/bin/activate", "deactivate"),
    )
    if project.uv:
        yield _allow(
            "uv; what `uv run` runs needs a rule of its own, such as those above.",
            (
                f"uv {each} *"
                for each in ("run", "sync", "add", "remove", "lock", "tree", "pip", "venv", "build")
            ),
        )
    if project.poetry:
        yield _allow(
            "Poetry; what `poetry run` runs needs a rule of its own, such as those above.",
            (
                f"poetry {each} *"
                for each in ("run", "install", "add", "remove", "lock", "update", "show", "check")
            ),
        )


def _of_node(project: Project) -> Iterator[ListEntries]:
    if not project.node:
        return
    manager = project.node
    commands = _NPM_COMMANDS if manager == "npm" else _NODE_COMMANDS
    yield _allow(
        f"Packages by {manager}; the scripts that they install with are confined.",
        (f"{manager} {each} *" for each in (*commands, "--version")),
    )
    own = [each for each in project.scripts if not _leaves(each)]
    runs = [f"{manager} run {each} *" for each in own]
    runs += [f"{manager} {each} *" for each in ("test", "start") if each in own]
    if runs:
        yield _allow("The scripts of package.json, which agents can write.", runs)
    yield _allow(
        "Scripts in files, and tests; code on the command line (-e) asks.",
        (f"node {each}" for each in ("*.js *", "*.mjs *", "*.cjs *", "--test *", "--version")),
    )
    tools = (_NODE_TOOLS.get(each) for each in sorted(project.node_packages))
    if named := [f"npx {each} *" for each in tools if each]:
        yield _allow("Tools that package.json names.", named)


def _of_others(project: Project) -> Iterator[ListEntries]:
    if project.rust:
        yield _allow(
            "Cargo; builds and tests run the project's code.",
            (*(f"cargo {each} *" for each in (*_CARGO, "--version")), "rustc --version"),
        )
    if project.go:
        yield _allow(
            "Go; tests run the project's code.", (*(f"go {each} *" for each in _GO), "gofmt *")
        )
    if project.targets is not None:
        targets = [each for each in project.targets if not _leaves(each)]
        yield _allow(
            "Targets of the Makefile, which agents can write.",
            ("make", *(f"make {each}" for each in targets)),
        )


def _asking(project: Project) -> ListEntries:
    leaving = ["git push *"]
    leaving += [f"{name} publish *" for name in ("uv", "poetry") if getattr(project, name)]
    leaving += [f"{project.node} publish *"] if project.node else []
    leaving += [f"{project.node} run {each} *" for each in project.scripts if _leaves(each)]
    leaving += ["cargo publish *"] if project.rust else []
    leaving += [f"make {each} *" for each in project.targets or () if _leaves(each)]
    return _group("ask", "Commands that reach beyond this machine.", leaving)


def _leaves(name: str) -> bool:
    return any(word in name.lower() for word in _LEAVES)


def _allow(comment: str, commands: Iterable[str]) -> ListEntries:
    return _group("allow", comment, commands)


def _group(key: str, comment: str, commands: Iterable[str]) -> ListEntries:
    return ListEntries("policy", key, tuple(f"bash({each})" for each in commands), comment)


def suggest(settings: Settings, *, write: bool, yes: bool, as_json: bool) -> None:
    """Shows the rules for the project at the root, or writes the missing ones.

    Args:
        settings: The settings.
        write: Whether to write them to the settings file, after confirmation.
        yes: Whether to skip the confirmation.
        as_json: Whether to print JSON.
    """
    if settings.policy.profile == "read-only":
        raise SettingsError(
            "The profile is read-only, which runs no programs; rules that allow programs would"
            " contradict it. Choose another policy.profile first."
        )
    project = look_at(settings.root)
    groups = suggested(project, settings.policy.profile)
    if as_json:
        print_json({"kinds": project.kinds, **_values(groups)})
    elif not write:
        echo(_format_groups(settings, project, groups))
    if write:
        _write(settings, groups, yes=yes, quiet=as_json)


def _write(settings: Settings, groups: Sequence[ListEntries], *, yes: bool, quiet: bool) -> None:
    assert settings.config_file is not None  # noqa: S101  # load always sets it
    file = SettingsFile(settings.config_file)
    missing = list(_missing(groups, file.values))
    if not missing:
        echo(visible(f"{file.path} has all of these rules."), err=quiet)
        return
    text = file.with_entries(missing)
    if not quiet:
        echo("\n".join(map(visible, _difference(file, text))))
    forget_typed()
    if not yes and not typer.confirm(visible(f"Write this into {file.path}?"), err=quiet):
        raise typer.Exit(1)
    settings.create_directories()
    with locked(settings.data_dir / "settings.lock", wait=True):
        if SettingsFile(file.path).text != file.text:
            raise SettingsError(
                f"{file.path} changed in the meantime. Nothing was written; try again."
            )
        file.write(text)
    number = counted(sum(len(each.entries) for each in missing), "entry")
    echo(visible(f"Added {number} to {file.path}."), err=quiet)
    for line in (*_counting(settings, missing), *_unconfined(settings)):
        echo(line, err=True)


def _counting(settings: Settings, added: Sequence[ListEntries]) -> Iterator[str]:
    origin = settings.source_of("policy.allow")
    if origin not in {DEFAULT_SOURCE, str(settings.config_file)}:
        yield f"Rules have no effect while policy.allow comes from the {origin}."
    elif counting_file(settings) is None:
        yield "They take effect when the server restarts."
    elif any(each.table == "system" for each in added):
        yield "Network settings take effect when the server restarts."


def _missing(
    groups: Sequence[ListEntries], values: Mapping[str, Mapping[str, Any]]
) -> Iterator[ListEntries]:
    """Yields entries that are in no list of their table: the user may have moved a rule."""
    for group in groups:
        lists = [each for each in values.get(group.table, {}).values() if isinstance(each, list)]
        there = {entry for each in lists for entry in each if isinstance(entry, str)}
        if left := tuple(each for each in group.entries if each not in there):
            yield replace(group, entries=left)


def _difference(file: SettingsFile, text: str) -> Iterator[str]:
    name = str(file.path)
    return difflib.unified_diff(file.text.splitlines(), text.splitlines(), name, name, lineterm="")


def _format_groups(settings: Settings, project: Project, groups: Sequence[ListEntries]) -> str:
    document = tomlkit.document()
    for line in (
        f"Rules for {settings.root} ({', '.join(('Git', *project.kinds))}).",
        f"`{invocation()} policy suggest --write` adds those that",
        f"are missing to {settings.config_file}.",
        *_unconfined(settings),
    ):
        document.add(tomlkit.comment(visible(line)))
    add_entries(document, groups)
    return tomlkit.dumps(document).rstrip()


def _unconfined(settings: Settings) -> Iterator[str]:
    if settings.system.sandbox is not SandboxMode.REQUIRED:
        yield "The rules also apply to unconfined programs, where no confinement works;"
        yield 'with system.sandbox = "required", those do not run.'


def _values(groups: Sequence[ListEntries]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for each in groups:
        found.setdefault(each.table, {}).setdefault(each.key, []).extend(each.entries)
    return found
