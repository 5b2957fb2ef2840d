"""What is looked at of the confinement: which level programs run at, and why at no better one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.settings import Settings
    from tools.sandbox.processes.confinement.levels import LevelFinding

__all__ = ["confinement"]


def confinement(settings: Settings) -> str:
    """Tries every level of confinement.

    Raises:
        RuntimeError: If the settings require one and none works, with what to do.
    """
    import anyio

    from tools.sandbox.processes.models import SandboxMode

    mode = settings.system.sandbox
    if mode is SandboxMode.OFF:
        return "none: the setting system.sandbox is off, programs run unconfined"
    findings = anyio.run(_findings, settings)
    working = [finding for finding in findings if finding.works]
    failing = [finding for finding in findings if not finding.works]
    if not working:
        reasons = _told(failing)
        if mode is SandboxMode.REQUIRED:
            raise RuntimeError(
                f"The setting system.sandbox is required, and no confinement works: {reasons}"
            )
        return f"none, programs run unconfined: {reasons}"
    parts = [working[0].detail, *(f"{each.detail} works too" for each in working[1:])]
    better = [each for each in failing if findings.index(each) < findings.index(working[0])]
    parts += [_told(better)] if better else []
    network = settings.system.network
    return "; ".join([*parts, f"network: {', '.join(network) if network else 'none'}"])


async def _findings(settings: Settings) -> list[LevelFinding]:
    from server.safety import make_processes

    processes = make_processes(settings, os.environ)
    try:
        return await processes.findings()
    finally:
        await processes.aclose()


def _told(findings: list[LevelFinding]) -> str:
    return "; ".join(" ".join([f"{each.level}: {each.detail}", *each.advice]) for each in findings)
