"""Apple's profile of a plan, as a text."""

from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.processes.confinement.levels import SandboxExec, profile_text
from tools.sandbox.processes.confinement.plan import Plan, ProtectedPaths, VisiblePaths
from tools.sandbox.processes.models import Level


def plan(**named: object) -> Plan:
    given = {
        "argv": ("/bin/ls", "-l"),
        "cwd": "/r",
        "environment": {"A": "a"},
        "root": "/r",
        "scratch": "/s",
        "visible": VisiblePaths(("/usr", "/private/etc"), (("/etc", "/private/etc"),)),
    }
    return Plan(**(given | named))  # type: ignore[arg-type]  # a few of its fields


def test_a_profile_denies_all_but_what_is_named() -> None:
    text = profile_text(
        plan(
            protected=ProtectedPaths(
                hidden=("/r/data",), read_only=("/r/f.py",), pinned=("/r/own",)
            ),
            write_protected=("/r/.git/hooks",),
            pinned=("/r/.git",),
        )
    )
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in text
    allowed = {line for line in lines if line.startswith("(allow file-write")}
    assert allowed == {'(allow file-write* (subpath "/r"))', '(allow file-write* (subpath "/s"))'}
    assert '(allow file-read* (subpath "/etc"))' in lines
    # The last rule that fits decides.
    assert lines[-5:] == [
        '(deny file-write-unlink (literal "/r/.git"))',
        '(deny file-write-unlink (literal "/r/own"))',
        '(deny file-write* (subpath "/r/.git/hooks"))',
        '(deny file-write* (subpath "/r/f.py"))',
        '(deny file-read* file-write* (subpath "/r/data"))',
    ]


def test_a_profile_without_writing_allows_the_temporary_directory_alone() -> None:
    lines = profile_text(plan(writes=False)).splitlines()
    assert [line for line in lines if line.startswith("(allow file-write*")] == [
        '(allow file-write* (subpath "/s"))'
    ]


@given(st.text(alphabet='ab"\\/()\n ', max_size=12))
def test_no_path_breaks_out_of_a_profile(name: str) -> None:
    text = profile_text(plan(root=f"/r/{name}"))
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    assert f'(allow file-write* (subpath "/r/{quoted}"))' in text


def test_the_profile_is_put_before_the_program() -> None:
    prepared = SandboxExec().prepare(plan())
    assert SandboxExec.level is Level.SANDBOX_EXEC
    assert prepared.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert prepared.argv[3:] == ("/bin/ls", "-l")
