"""Diagnoses why bubblewrap does not work, and finds the commands that fix it.

Most systems let every user create namespaces. Ubuntu since 23.10 allows it only for programs with
an AppArmor profile, some systems for none, and containers filter system calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NOT_INSTALLED = "bubblewrap is not installed."

_APPARMOR = """\
sudo tee /etc/apparmor.d/bwrap >/dev/null <<'EOF'
abi <abi/4.0>,
include <tunables/global>

profile bwrap {program} flags=(unconfined) {{
  userns,

  include if exists <local/bwrap>
}}
EOF
sudo apparmor_parser -r /etc/apparmor.d/bwrap"""

_SYSCTL = """\
echo '{name}={value}' | sudo tee /etc/sysctl.d/90-user-namespaces.conf
sudo sysctl --system"""

_CONTAINERS = {
    "Docker": "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    " --security-opt systempaths=unconfined …",
    "Podman": "podman run --security-opt seccomp=unconfined --security-opt label=disable"
    " --security-opt unmask=ALL …",
}
"""Options that let programs in a container create namespaces and mount in them."""

_INSTALLS = {
    "debian": "sudo apt install bubblewrap",
    "ubuntu": "sudo apt install bubblewrap",
    "fedora": "sudo dnf install bubblewrap",
    "rhel": "sudo dnf install bubblewrap",
    "arch": "sudo pacman -S bubblewrap",
    "alpine": "sudo apk add bubblewrap",
    "suse": "sudo zypper install bubblewrap",
    "opensuse": "sudo zypper install bubblewrap",
}
"""Commands that install bubblewrap, by names from os-release(5)."""

_NO_NAMESPACE = re.compile(r"uid map|new namespace|namespace failed|RTM_NEWADDR", re.IGNORECASE)
"""Errors of bubblewrap if it may not create namespaces, or use them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that decide whether bubblewrap works."""

    distributions: tuple[str, ...] = ()  # names of the system and of those it derives from
    container: str = ""
    is_restricted: bool = False
    # The kernel setting that disables user namespaces, with a usual value.
    switched_off: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """A fix for a level."""

    advice: str
    commands: str  # the exact commands for the user to type; empty if unknown


def read_facts(top: Path = Path("/")) -> Facts:
    """Reads the facts about a machine."""
    switched_off = None
    if _read(top / "proc/sys/user/max_user_namespaces") == "0":
        switched_off = ("user.max_user_namespaces", "15000")
    elif _read(top / "proc/sys/kernel/unprivileged_userns_clone") == "0":  # Debian's own
        switched_off = ("kernel.unprivileged_userns_clone", "1")
    marks = {"Docker": ".dockerenv", "Podman": "run/.containerenv"}
    return Facts(
        distributions=_distributions(_read(top / "etc/os-release")),
        container=next((name for name, mark in marks.items() if (top / mark).exists()), ""),
        is_restricted=_read(top / "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1",
        switched_off=switched_off,
    )


def find_remedies(problem: str, facts: Facts, program: str) -> Iterator[Remedy]:
    """Yields fixes for bubblewrap."""
    if problem == NOT_INSTALLED:
        known = (_INSTALLS[name] for name in facts.distributions if name in _INSTALLS)
        yield Remedy("Install the package bubblewrap.", next(known, ""))
    if "bwrap: " not in problem or not (facts.container or _NO_NAMESPACE.search(problem)):
        return
    if facts.container:
        yield Remedy(
            f"In {facts.container}, programs can make namespaces only if the container is started"
            " with options that allow it.",
            _CONTAINERS[facts.container],
        )
    if facts.switched_off is not None:
        name, value = facts.switched_off
        yield Remedy(
            f"The kernel's setting {name} is 0, so users cannot make namespaces.",
            _SYSCTL.format(name=name, value=value),
        )
    if facts.is_restricted:
        where = " of the host" if facts.container else ""
        yield Remedy(
            f"AppArmor{where} restricts user namespaces: bubblewrap needs a profile that allows"
            " them.",
            _APPARMOR.format(program=program),
        )


def _distributions(release: str) -> tuple[str, ...]:
    found = dict(re.findall(r"""^(ID|ID_LIKE)=["']?([\w. -]+)""", release, re.MULTILINE))
    named = f"{found.get('ID', '')} {found.get('ID_LIKE', '')}".split()
    return tuple(part for name in named for part in (name, name.partition("-")[0]))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
