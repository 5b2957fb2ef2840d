"""Commands that run another command from their arguments, and the words before that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Describes how to parse the words of a wrapper."""

    letters: str = ""  # short options that take a value
    names: frozenset[str] = frozenset()  # long options that take the next word as a value
    # Options without a value; None if that is all other options
    flags: frozenset[str] | None = None
    skipped: int = 0  # number of operands before the command
    assigns: bool = False  # whether variables may be set before the command
    joined: str = ""  # short options whose optional value is in the same word


def _wrapper(
    letters: str = "",
    names: str = "",
    flags: str | None = None,
    *,
    skipped: int = 0,
    assigns: bool = False,
    joined: str = "",
) -> Wrapper:
    known = None if flags is None else frozenset(flags.split())
    return Wrapper(letters, frozenset(names.split()), known, skipped, assigns, joined)


WRAPPERS: Mapping[str, Wrapper] = {
    "sudo": _wrapper(
        "ugpChrtTUDR",
        "--user --group --prompt --chdir --host --role --type --close-from --other-user --chroot"
        " --command-timeout",
        assigns=True,
    ),
    "doas": _wrapper("uCa"),
    "env": _wrapper("uC", "--unset --chdir", assigns=True),
    "nice": _wrapper("n", "--adjustment"),
    "ionice": _wrapper("cnpPu", "--class --classdata"),
    "nohup": _wrapper(),
    "setsid": _wrapper(),
    "time": _wrapper("fo", "--format --output", assigns=True),
    "timeout": _wrapper("ks", "--kill-after --signal", skipped=1),
    "gtimeout": _wrapper("ks", "--kill-after --signal", skipped=1),
    "stdbuf": _wrapper("ioe", "--input --output --error"),
    "xargs": _wrapper(
        "adEILnPs",
        "--arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var",
        joined="eil",
    ),
    "command": _wrapper(),
    "builtin": _wrapper(),
    "exec": _wrapper("a"),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "watch": _wrapper("nq", "--interval --equexit"),
    "chroot": _wrapper(skipped=1),
    "flock": _wrapper("wE", "--timeout --wait --conflict-exit-code", skipped=1),
    "taskset": _wrapper(skipped=1),
    "chrt": _wrapper("TPD", skipped=1),
    "setpriv": _wrapper(),
    "unshare": _wrapper("SGRw"),
    "strace": _wrapper("oeEpPsSuaIObX"),
    "ltrace": _wrapper("oeEpPsSuaAnx"),
    "valgrind": _wrapper(flags=""),
    "perf": _wrapper(flags="", skipped=1),
    "ld.so": _wrapper(
        "", "--library-path --inhibit-rpath --audit --preload --argv0", "--list --verify"
    ),
    "numactl": _wrapper("iIlmNpPC", flags=""),
    "setarch": _wrapper(skipped=1),
    **dict.fromkeys(
        ("i386", "i486", "i586", "i686", "linux32", "linux64", "uname26", "x86_64"), _wrapper()
    ),
    **dict.fromkeys(("chronic", "dumb-init", "eatmydata"), _wrapper()),
    **dict.fromkeys(("gosu", "logsave", "su-exec"), _wrapper(skipped=1)),
    "choom": _wrapper("n", "--adjust"),
    "ssh-agent": _wrapper("aEOPt"),
    "systemd-inhibit": _wrapper(flags=""),
    "ccache": _wrapper(),
    "xvfb-run": _wrapper("eflnpsw", flags="-a --auto-servernum"),
    "dbus-run-session": _wrapper(flags="--"),
    "tini": _wrapper("pe"),
    "unbuffer": _wrapper(),
    "caffeinate": _wrapper("tw"),
    "fakeroot": _wrapper("lsib"),
    "prlimit": _wrapper("p"),
    "runuser": _wrapper("ugG", "--user --group"),
    "winpty": _wrapper(),
    "rlwrap": _wrapper("abcCfHlpPqsStwz"),
}
"""Wrappers, by base name."""

_UV_RUN = _wrapper(
    "p",
    "--python --with --with-editable --with-requirements --extra --group --only-group --no-group"
    " --package --project --directory --index --default-index --cache-dir",
    "-q --quiet -v --verbose -n --no-cache --all-extras --all-groups --no-dev --dev --frozen"
    " --locked --no-sync --isolated --active --exact --offline --no-project --no-config --",
)

RUNNERS: Mapping[str, Mapping[str, Wrapper]] = {
    "uv": {"run": _UV_RUN},
    "poetry": {"run": _wrapper("CP", "--directory --project", "-q --quiet -n --no-interaction")},
    "pipenv": {"run": _wrapper(flags="--")},
    "pdm": {"run": _wrapper("p", "--project", "-s --site-packages")},
    "rye": {"run": _wrapper(flags="--")},
    "bundle": {"exec": _wrapper(flags="--keep-file-descriptors")},
    "conda": {"run": _wrapper("np", "--name --prefix --cwd", "--no-capture-output --live-stream")},
    "mamba": {"run": _wrapper("np", "--name --prefix --cwd", "--no-capture-output --live-stream")},
    "direnv": {"exec": _wrapper(skipped=1)},
}
"""Subcommands that are wrappers, by command."""
