"""Explains failures of a program that are probably due to its confinement or limits.

These are guesses from the program's output and exit code, and say so. They use failures only, and
say what a setting allows, never what exists on the machine.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from tools.sandbox.processes.confinement.allowed_hosts import PACKAGES, is_registry
from tools.sandbox.processes.confinement.plan import VisiblePaths, is_beneath
from tools.sandbox.processes.models import Level, Limits, SettingNames

BUSY = ("Device or resource busy", "Read-only file system")
"""What a program that succeeded may say of what its confinement closed."""

_BUSY = rf"(?:{'|'.join(BUSY)})"
_SETTINGS = re.compile(
    rf"could not (?:write|lock) config file [^\n]{{1,4096}}: {_BUSY}"
    r"(?!\nwarning: Update of config-file failed)"  # a branch that is deleted leaves its settings
)
_REMOVAL = re.compile(rf"cannot remove '([^'\n]{{0,4096}}/)?\.git(?:/[^'\n]{{0,4096}})?': {_BUSY}")

_ALONE = "in a call of its own, with literal words, while nothing runs in the background"


def explain_errors(errors: str) -> tuple[str, ...]:
    """Returns what to do instead, one sentence for each kind of error."""
    notes = []
    if _SETTINGS.search(errors):
        notes.append(
            "The settings of a repository are closed while other programs run, since they name what"
            f" git runs. Run the command that changes them {_ALONE}: git config (of what runs"
            " nothing), remote, branch, checkout, switch, or push -u."
        )
    if _REMOVAL.search(errors):
        notes.append(
            f"Repositories are held in place while other programs run. Run rm -rf {_ALONE}."
        )
    return tuple(notes)


_MOST = 2  # limit on the explanations of a failure
LOOKED_AT = 8_000  # characters at the end of the output that are searched

_LONGEST_LINE = 500

_UNRESOLVED = re.compile(
    r"could not resolve|name resolution|name or service not known|no address associated|ENOTFOUND"
    r"|EAI_AGAIN|getaddrinfo|network is unreachable|ENETUNREACH|failed to lookup address"
    r"|dial tcp: lookup|no such host|temporary failure resolving",
    re.IGNORECASE,
)
_LOOKUP = re.compile(
    r"(?:resolve(?: host)?:? |lookup |ENOTFOUND |EAI_AGAIN |host=|https?://)'?"
    r"((?:[a-z0-9-]+\.)+[a-z]{2,})\b",
    re.IGNORECASE,
)
_SOCKET = re.compile(r"\bsocket\b|\bconnect\b")

_DENIED = re.compile(r"permission denied|read-only file system|EACCES|EROFS", re.IGNORECASE)
_MISSING = re.compile(r"no such file or directory|ENOENT|not found", re.IGNORECASE)
_CLOSED = re.compile(r"read-only file system|EROFS|device or resource busy|EBUSY", re.IGNORECASE)
_ABROAD = re.compile(r"(?<![\w./:~])(?:/|(?:\.\./)+)[\w.@+,=-][\w.@+,=/-]*")
"""Absolute paths, or paths that lead up."""
_IN_ROOT = re.compile(r"(?<![\w/])\.?[\w@+-][\w.@+/-]*")

_NOT_PERMITTED = re.compile(r"operation not permitted|not permitted|EPERM", re.IGNORECASE)
_FILTERED = re.compile(
    r"\b(ptrace|strace|gdb|mount|umount|unshare|nsenter|setns|chroot|perf|perf_event\w*|keyctl|bpf"
    r"|io_uring\w*|userfaultfd|insmod|modprobe|swapon|sysctl|bwrap|namespaces?)\b",
    re.IGNORECASE,
)
_OWNERS = re.compile(r"\bownership|\bl?chown\b|\bset(re|res)?[ug]id\b", re.IGNORECASE)
_PRIVILEGES = re.compile(r"no new privileges", re.IGNORECASE)
_SHARED = re.compile(r"SemLock|sem_open|shm_open|/dev/shm")
_FORKS = re.compile(
    r"fork: (?:retry: )?resource temporarily unavailable|cannot fork|can't start new thread"
    r"|unable to create (?:native )?thread|pthread_create failed",
    re.IGNORECASE,
)
_UNKNOWN_COMMAND = re.compile(r"(?:: |^)([\w.+-]+): (?:command )?not found\s*$")

_SHELL = re.compile(r"^\S*sh: (?:line )?\d+: ")  # prefix of a shell's error messages

_CLOSED_SAYS = "is probably closed to programs"

_BY_SIGNAL = 128
_HTTPS = 443


@dataclass(frozen=True, slots=True)
class Explanations:
    """Explains failures."""

    root: str
    visible: VisiblePaths
    has_network: bool
    limits: Limits
    # Returns the directory of a program that is hidden from programs; else empty.
    find_hidden: Callable[[str], str]
    names: SettingNames = field(default_factory=SettingNames)
    writable: tuple[str, ...] = ()  # what it may write besides the root

    def of(
        self,
        level: Level,
        exit_code: int,
        output: str,
        notes: Sequence[str] = (),
        denied: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[str, ...]:
        """Returns the probable causes of a failure; empty if the program succeeded.

        `denied` are paths that rules deny to it, with the rules.
        """
        closed = explain_errors(output) if level is Level.BUBBLEWRAP else ()
        if exit_code == 0:  # git continues if it cannot write settings
            return closed
        ends = (line[:_LONGEST_LINE] for line in output[-LOOKED_AT:].splitlines())
        lines = [_SHELL.sub("", line) for line in ends]
        ruled = dict.fromkeys(self._of_rules(lines, denied))
        found = ruled or dict.fromkeys((*closed, *self._explain(level, exit_code, lines)))
        told = ["network"] if any("network" in note for note in notes) else []
        told += [_CLOSED_SAYS] if closed else []
        wanted = (each for each in found if not any(word in each for word in told))
        return tuple(islice(wanted, _MOST))

    def _of_rules(self, lines: Sequence[str], denied: Mapping[str, str]) -> Iterator[str]:
        failed = [
            line for line in lines for each in (_DENIED, _MISSING, _CLOSED) if each.search(line)
        ]
        names = {path.removeprefix(f"{self.root}/"): rule for path, rule in denied.items()}
        for line in failed:
            told = [name for name in names if name in line]
            told = told or [name for name in names if name.rpartition("/")[2] in line]
            if told:
                name = max(told, key=len)
                yield f"{name} is closed to programs by the rule {names[name]!r} (settings)."

    def _explain(self, level: Level, exit_code: int, lines: list[str]) -> Iterator[str]:
        yield from self._of_limits(exit_code, lines)
        if _is_any(_PRIVILEGES, lines):
            yield "Programs gain no rights here, by no setting: sudo and the like do not work."
        if level is Level.NONE:
            return
        if exit_code == _BY_SIGNAL + signal.SIGSYS:
            yield (
                "It was ended by SIGSYS, probably because it made system calls of another"
                ' architecture; only system.sandbox = "off" lets it.'
            )
        for line in lines:
            yield from self._of_line(level, line)
        if _is_any(_SOCKET, lines) and _is_any(_NOT_PERMITTED, lines):
            yield (
                "Programs have no Unix sockets, and no others where those of a session cannot share"
                " a network (`toolcrib doctor` says whether they can)."
            )

    def _of_limits(self, exit_code: int, lines: list[str]) -> Iterator[str]:
        limits = self.limits
        if limits.file_bytes and exit_code == _BY_SIGNAL + signal.SIGXFSZ:
            yield (
                f"It was ended for writing a file of more than {limits.file_bytes // 1_000_000} MB"
                " (system.file_mb)."
            )
        if limits.cpu_seconds and exit_code == _BY_SIGNAL + signal.SIGXCPU:
            yield (
                f"It was ended for using more than {limits.cpu_seconds} seconds of processor time"
                " (system.cpu_seconds)."
            )
        if limits.processes and _is_any(_FORKS, lines):
            yield (
                "It could not start more processes or threads, probably because it may have"
                f" {limits.processes} (system.processes)."
            )

    def _of_line(self, level: Level, line: str) -> Iterator[str]:
        if _UNRESOLVED.search(line):
            yield self._no_network(line)
        if level is Level.LANDLOCK and _SHARED.search(line):
            yield (
                "It probably needs shared memory, which programs have under bubblewrap and not"
                " under Landlock (`toolcrib doctor` says why bubblewrap is not used)."
            )
        unknown = _UNKNOWN_COMMAND.search(line)
        if unknown and (folder := self.find_hidden(unknown[1])):
            yield (
                f"{unknown[1]} is in {folder}, which programs cannot see; to allow it, the user"
                f" {self.names.adding(self.names.readable, folder)}."
            )
        elif _DENIED.search(line) or _MISSING.search(line) or _CLOSED.search(line):
            yield from self._of_path(level, line)
        if _NOT_PERMITTED.search(line):
            yield from _not_permitted(line)

    def _of_path(self, level: Level, line: str) -> Iterator[str]:
        outside = self._outside(line)
        is_seen = bool(outside) and self._is_seen(outside[0])
        if outside and (_DENIED.search(line) or not is_seen):
            yield self._out_of_reach(outside[0], is_seen=is_seen)
        elif (
            level is Level.BUBBLEWRAP
            and not outside
            and _CLOSED.search(line)
            and not explain_errors(line)
        ):
            words = _IN_ROOT.findall(line.replace(f"{self.root}/", ""))
            named = next((each for each in words if "/" in each or each.startswith(".")), "It")
            yield (
                f"{named} {_CLOSED_SAYS}: it is, or leads to, a file that other programs obey or a"
                " function file that Toolcrib serves (no setting opens these to programs), or a"
                " path that a rule denies."
            )

    def find_unseen(self, text: str) -> tuple[str, ...]:
        """Returns what would show the first path in a text that a program does not see."""
        lines = (each for each in text.splitlines() if not _NOT_PERMITTED.search(each))
        paths = (path for line in lines for path in self._outside(line))
        unseen = (path for path in paths if not self._is_seen(path))
        return tuple(self._out_of_reach(path, is_seen=False) for path in islice(unseen, 1))

    def _outside(self, text: str) -> list[str]:
        own = (self.root, "/dev", "/proc", *self.writable)
        own += () if self.names.writable else ("/tmp",)  # noqa: S108  # the program's own
        return [each for each in _ABROAD.findall(text) if not _is_in(each, own)]

    def _is_seen(self, path: str) -> bool:
        links = (link for link, _target in self.visible.links)
        return _is_in(path, (*self.visible.readable, *links))

    def _out_of_reach(self, path: str, *, is_seen: bool) -> str:
        names = self.names
        if not names.writable:
            return (
                f"{path} is probably out of reach: programs write only in the root and TMPDIR, and"
                f" read only these, the system and what {names.readable} names."
            )
        parent, _, name = path.rpartition("/")
        is_file = is_seen or "." in name.lstrip(".")  # perhaps a new one, which cannot be named
        folder = (parent or "/") if is_file else path
        line = names.adding(names.writable, folder)
        if not is_seen:
            line = f"{names.adding(names.readable, path)}; to write there, {line}"
        return f"{path} is probably out of reach. To allow it, the user {line}."

    def _no_network(self, line: str) -> str:
        if self.has_network:
            return (
                f"Programs reach the hosts of {self.names.network} only by a proxy (HTTPS_PROXY and"
                " so on), which this one probably does not use."
            )
        host = named[1].lower() if (named := _LOOKUP.search(line)) else ""
        entry = PACKAGES if is_registry(host, _HTTPS) else f"{host}:{_HTTPS}"
        if host and self.names.lists:
            adding = self.names.adding(self.names.network, entry)
            return f"It has no network here; to allow the host, the user {adding}."
        setting = f'{self.names.network} = ["{entry}"]' if host else self.names.network
        return f"Programs have no network here; the user can allow hosts by {setting}."


def _is_in(path: str, tops: Sequence[str]) -> bool:
    return any(is_beneath(path, each) for each in tops)


def _is_any(pattern: re.Pattern[str], lines: Sequence[str]) -> bool:
    return any(map(pattern.search, lines))


def _not_permitted(line: str) -> Iterator[str]:
    if _FILTERED.search(line):
        yield (
            "Tracing, mounting, namespaces, and changes to the machine are closed to programs; only"
            ' system.sandbox = "off" lets them.'
        )
    elif _OWNERS.search(line):
        yield "Programs cannot change owners: they have no rights beyond those of their user."
