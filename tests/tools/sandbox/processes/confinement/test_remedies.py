"""What is told where bubblewrap does not work, by what the machine says of itself."""

from pathlib import Path

import pytest

from tools.sandbox.processes.confinement.remedies import (
    NOT_INSTALLED,
    Facts,
    find_remedies,
    read_facts,
)

NO_MAP = "A program could not be run: bwrap: setting up uid map: Permission denied"
NO_NAMESPACE = (
    "A program could not be run: bwrap: No permissions to create new namespace, likely because the"
    " kernel does not allow non-privileged user namespaces."
)
NO_LOOPBACK = "A program could not be run: bwrap: loopback: Failed RTM_NEWADDR: Not permitted"
NO_PROC = "A program could not be run: bwrap: Can't mount proc on /newroot/proc: Not permitted"

PROFILE = """\
sudo tee /etc/apparmor.d/bwrap >/dev/null <<'EOF'
abi <abi/4.0>,
include <tunables/global>

profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,

  include if exists <local/bwrap>
}
EOF
sudo apparmor_parser -r /etc/apparmor.d/bwrap"""


def machine(top: Path, **files: str) -> Facts:
    """The facts of a machine with these files, `/` written as `__`."""
    for name, text in files.items():
        path = top / name.replace("__", "/").replace("dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_facts(top)


def commands(problem: str, facts: Facts) -> list[str]:
    return [each.commands for each in find_remedies(problem, facts, "/usr/bin/bwrap")]


@pytest.mark.parametrize("problem", [NO_MAP, NO_NAMESPACE, NO_LOOPBACK])
def test_a_restriction_by_apparmor_is_lifted_by_a_profile(tmp_path: Path, problem: str) -> None:
    facts = machine(tmp_path, proc__sys__kernel__apparmor_restrict_unprivileged_userns="1\n")
    assert commands(problem, facts) == [PROFILE]


def test_the_profile_is_for_the_bubblewrap_that_is_used() -> None:
    (remedy,) = find_remedies(NO_MAP, Facts(is_restricted=True), "/usr/local/bin/bwrap")
    assert "profile bwrap /usr/local/bin/bwrap flags" in remedy.commands


def test_nothing_is_told_of_a_restriction_that_is_not_there(tmp_path: Path) -> None:
    facts = machine(tmp_path, proc__sys__kernel__apparmor_restrict_unprivileged_userns="0\n")
    assert commands(NO_MAP, facts) == []


@pytest.mark.parametrize(
    ("file", "setting"),
    [
        ("proc__sys__user__max_user_namespaces", "user.max_user_namespaces=15000"),
        ("proc__sys__kernel__unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1"),
    ],
)
def test_a_setting_of_the_kernel_is_named_with_its_value(
    tmp_path: Path, file: str, setting: str
) -> None:
    (told,) = commands(NO_NAMESPACE, machine(tmp_path, **{file: "0\n"}))
    assert told.splitlines() == [
        f"echo '{setting}' | sudo tee /etc/sysctl.d/90-user-namespaces.conf",
        "sudo sysctl --system",
    ]


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("dot_dockerenv", "docker run --security-opt seccomp=unconfined"),
        ("run__dot_containerenv", "podman run --security-opt seccomp=unconfined"),
    ],
)
@pytest.mark.parametrize("problem", [NO_NAMESPACE, NO_PROC])
def test_a_container_is_started_with_other_options(
    tmp_path: Path, problem: str, file: str, told: str
) -> None:
    (command,) = commands(problem, machine(tmp_path, **{file: ""}))
    assert command.startswith(told)


def test_another_failure_of_bubblewrap_has_no_remedy_here(tmp_path: Path) -> None:
    facts = machine(tmp_path, proc__sys__kernel__apparmor_restrict_unprivileged_userns="1\n")
    assert commands("A program could not be run: bwrap: Can't find source path /x", facts) == []
    assert commands("A program could read private files.", facts) == []


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "sudo apt install bubblewrap"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "sudo apt install bubblewrap"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "sudo dnf install bubblewrap"),
        ("ID=arch\n", "sudo pacman -S bubblewrap"),
        ("ID=alpine\n", "sudo apk add bubblewrap"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "sudo zypper install bubblewrap"),
        ("ID=other\n", ""),
    ],
)
def test_a_missing_bubblewrap_is_installed_as_the_system_does(
    tmp_path: Path, release: str, command: str
) -> None:
    facts = machine(tmp_path, **{"etc__os-release": release})
    assert commands(NOT_INSTALLED, facts) == [command]
