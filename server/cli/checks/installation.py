"""Checks of the installation: functions, skills, secrets, confinement, embedder and Chroma."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio

from server.cli.checks.findings import Finding, run_check
from server.cli.invocation import invocation
from server.composition.machine import MachineParts, data_environment
from server.mcp.visible import visible
from tools.answers.directory import counted
from tools.core.errors import ToolError, UnavailableError
from tools.core.registry import ToolRegistry
from tools.sandbox.processes.models import SandboxMode

if TYPE_CHECKING:
    from server.settings import Settings
    from server.settings.index import EmbedderSettings
    from tools.agent.skillfiles.skill import Skill
    from tools.sandbox.processes.confinement.levels import LevelFinding
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.secrets.secrets import Secret, Secrets


Answer = TypeVar("Answer")
MOST_TOLD = 10
PROBE = "Is anybody there?"


def functions(settings: Settings) -> str:
    """Loads the function files of the settings."""
    from server.composition.tools import function_files

    if not settings.functions.paths:
        return "none: the setting functions.paths names no file"
    registry = ToolRegistry()
    files = function_files(settings, os.environ, registry)
    anyio.run(files.load_once)
    if files.problems:
        raise RuntimeError("\n".join(files.problems))
    named = ", ".join(map(str, settings.functions.paths))
    return f"{counted(len(registry.specs()), 'tool')} from {named}"


def confinement(settings: Settings) -> Finding:
    """Tries every level of confinement, and lists path rules that none enforces."""
    found = _level(settings)
    if not settings.policy.deny:
        return found
    from server.cli.opened import tools_of
    from server.composition.policy import make_policy

    policy = make_policy(settings, tools_of(settings))
    parts = MachineParts(settings, os.environ, denied=lambda: policy.denied_places)
    unheld = _ask(parts, lambda processes: processes.denied()).unheld
    said = (f"not enforced for programs: the rule {rule!r}, as {unheld[rule]}" for rule in unheld)
    return replace(found, detail="; ".join((found.detail, *said)))


def _level(settings: Settings) -> Finding:
    subject, mode = "Confinement", settings.system.sandbox
    if mode is SandboxMode.OFF:
        detail = "none: the setting system.sandbox is off, programs run unconfined"
        return Finding(subject, ok=True, detail=detail)
    machine = MachineParts(settings, os.environ)
    findings = _ask(machine, lambda processes: processes.levels.findings())
    working = [finding for finding in findings if finding.works]
    better = findings[: findings.index(working[0])] if working else findings
    commands = tuple(command for each in better for command in each.commands)
    if not working and mode is SandboxMode.REQUIRED:
        said = "The setting system.sandbox is required, and no confinement works"
        return Finding(
            subject, ok=False, detail=f"{said}: {_findings_text(better)}", commands=commands
        )
    if not working:
        detail = f"none, programs run unconfined: {_findings_text(better)}"
        return Finding(subject, ok=True, detail=detail, commands=commands)
    parts = [working[0].detail, *(f"{each.detail} works too" for each in working[1:])]
    parts += [_findings_text(better)] if better else []
    network = settings.system.network
    parts.append(f"network: {', '.join(network) if network else 'none'}")
    return Finding(subject, ok=True, detail="; ".join(parts), commands=commands)


def data_juicer(settings: Settings) -> Finding:
    """Looks for the environment that runs recipes."""
    environment = data_environment(settings, os.environ)
    found = environment.installed()
    if found is None:
        detail = f"not set up, which recipes need: `{invocation()} data setup`"
        return Finding("Data-Juicer", ok=None, detail=detail)
    environment.python()
    detail = f"{found.version}, {found.extent}, in {environment.path}"
    return Finding("Data-Juicer", ok=True, detail=detail)


def embedder(settings: EmbedderSettings) -> str:
    """Embeds a probe with the embedder in the settings."""
    from storage.index.embedders.making import make_embedder

    made = make_embedder(settings.options)
    vector = made.embed_query(PROBE)
    return f"{made.model_id}, {len(vector)} dimensions"


def cross_encoder() -> str:
    """Scores a probe with the bundled cross-encoder."""
    from storage.retrieval.confidence import CrossEncoder

    [logit] = CrossEncoder().read(PROBE, [PROBE])
    return f"ms-marco-MiniLM-L12-v2, reads a question as its own answer with {logit:.1f}"


def peak_mb() -> float:
    """Returns the most memory that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1e6 if sys.platform == "darwin" else 1e3  # bytes there, elsewhere kilobytes
    )


def memory(bare: float, loaded: float) -> str:
    """Describes what this process used without models and with them."""
    from storage.index.embedders.bundled import IDLE_SECONDS

    return (
        f"{bare:.0f} MB without models, {loaded:.0f} MB with them; a server loads each when it is"
        f" needed, and unloads it after {IDLE_SECONDS / 60:.0f} minutes without use"
    )


def chroma() -> str:
    """Tries Chroma in a temporary directory."""
    import chromadb
    import numpy as np

    from storage.index.vectors import ChromaDirectory, VectorIndex

    with tempfile.TemporaryDirectory(prefix="toolcrib-doctor-") as scratch:
        index = VectorIndex(ChromaDirectory(Path(scratch)), library="probe")
        index.upsert(1, "doctor", [1], np.ones((1, 3), dtype=np.float32))
        found = index.nearest(1, "doctor", np.ones(3, dtype=np.float32), 1)
        index.close()
    if found != [1]:
        raise RuntimeError("It does not find the vector that it was given: reinstall chromadb.")
    return f"{version('chromadb')} at {Path(chromadb.__file__).parent}"


def _ask(parts: MachineParts, question: Callable[[Processes], Awaitable[Answer]]) -> Answer:
    """Asks the processes, and ends them."""

    async def ask() -> Answer:
        processes = parts.processes()
        try:
            return await question(processes)
        finally:
            await processes.aclose()

    return anyio.run(ask)


def _findings_text(findings: list[LevelFinding]) -> str:
    told = (". ".join([each.detail.rstrip("."), *each.advice]) for each in findings)
    return "; ".join(f"{each.level}: {said}" for each, said in zip(findings, told, strict=True))


def check_secrets(settings: Settings) -> Iterator[Finding]:
    """Checks that each secret can be read."""
    secrets = MachineParts(settings, os.environ).secrets()
    for name, each in settings.secrets.items():
        yield run_check(f"Secret {name}", partial(_read, secrets, each.to_secret(name)))


def _read(secrets: Secrets, secret: Secret) -> str:
    try:
        secrets.read(secret)
    except UnavailableError as error:
        raise ValueError(" ".join([error.message, *error.next_actions])) from error
    told = [f"for requests to {', '.join(map(str, secret.hosts))}"] if secret.hosts else []
    if secret.programs:
        commands = ", ".join(each.text for each in secret.programs)
        told.append(f"for {commands}, as {secret.variable}")
    return "; ".join(told)


def skills(settings: Settings) -> str:
    """Checks every skill on this machine as it is served to clients that support skills."""
    from server.composition.catalogue import make_skills

    every = make_skills(settings, os.environ)
    found = every.all()
    unserved = list(_unserved(found))
    wrong = [*unserved, *(f"{each.where} is left out: {each.why}" for each in every.left_out())]
    more = [f"and {len(wrong) - MOST_TOLD} more"] if len(wrong) > MOST_TOLD else []
    count = f"{len(found) - len(unserved)} of them" if unserved else "all"
    said = f"{counted(len(found), 'skill')}, {count} listed by skills/list"
    return "\n".join([said, *map(visible, wrong[:MOST_TOLD]), *more])


def _unserved(found: Sequence[Skill]) -> Iterator[str]:
    from server.mcp.browsing.skill_view import entry_of, servers_of

    servers = servers_of(found)
    for each in found:
        try:
            entry_of(each, servers)
        except ToolError as error:
            yield f"{each.path} is not: {error.message}"
