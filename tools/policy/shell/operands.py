"""Options and operands by which commands run others, or affect later commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tools.policy.shell.words import Word, names_stdin


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
    **dict.fromkeys(
        (
            *("nohup", "setsid", "command", "builtin", "busybox", "toybox", "setpriv", "ccache"),
            *("unbuffer", "winpty", "chronic", "dumb-init", "eatmydata", "i386", "i486", "i586"),
            *("i686", "linux32", "linux64", "uname26", "x86_64"),
        ),
        _wrapper(),
    ),
    **dict.fromkeys(
        ("chroot", "taskset", "setarch", "gosu", "logsave", "su-exec"), _wrapper(skipped=1)
    ),
    **dict.fromkeys(("valgrind", "systemd-inhibit"), _wrapper(flags="")),
    **dict.fromkeys(("timeout", "gtimeout"), _wrapper("ks", "--kill-after --signal", skipped=1)),
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
    "time": _wrapper("fo", "--format --output", assigns=True),
    "!": _wrapper(assigns=True),  # the shell's own, which a second one makes look like a command
    "stdbuf": _wrapper("ioe", "--input --output --error"),
    "xargs": _wrapper(
        "adEILnPs",
        "--arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var",
        joined="eil",
    ),
    "exec": _wrapper("a"),
    "watch": _wrapper("nq", "--interval --equexit"),
    "flock": _wrapper("wE", "--timeout --wait --conflict-exit-code", skipped=1),
    "chrt": _wrapper("TPD", skipped=1),
    "unshare": _wrapper("SGRw"),
    "strace": _wrapper("oeEpPsSuaIObX"),
    "ltrace": _wrapper("oeEpPsSuaAnx"),
    "perf": _wrapper(flags="", skipped=1),
    "ld.so": _wrapper(
        "", "--library-path --inhibit-rpath --audit --preload --argv0", "--list --verify"
    ),
    "numactl": _wrapper("iIlmNpPC", flags=""),
    "choom": _wrapper("n", "--adjust"),
    "ssh-agent": _wrapper("aEOPt"),
    "xvfb-run": _wrapper("eflnpsw", flags="-a --auto-servernum"),
    "dbus-run-session": _wrapper(flags="--"),
    "tini": _wrapper("pe"),
    "caffeinate": _wrapper("tw"),
    "fakeroot": _wrapper("lsib"),
    "prlimit": _wrapper("p"),
    "runuser": _wrapper("ugG", "--user --group"),
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


READ_WHOLE = frozenset({"cat", "head", "tail"})
_NAMES = """
    . : [ alias awk base64 basename break builtin cd cksum cmp column comm continue cut date df
    diff dir dirname dirs du echo egrep eval exit export expand expr false fd fdfind fgrep file
    find fmt fold gawk getopts gfind grep groups gsed hash help hostname id jobs join jq kill
    killall ls mawk md5sum mkdir mktemp nawk nl od paste pgrep pkill popd printenv printf ps pushd
    pwd read readlink realpath return rev rg rm rmdir sed seq set sha1sum sha256sum sha512sum shift
    sleep sort source split stat strings tac tar tee test touch tr trap tree true type ulimit umask
    unalias uname uniq unlink unset w wc whereis which who whoami xxd yes zcat zgrep
"""
DATA = READ_WHOLE.union(_NAMES.split())
"""Commands whose arguments are data, except for the operands below."""

VARIABLE = re.compile(r"[A-Za-z_]\w*(\[.*)?", re.DOTALL)
SUBSCRIPT = re.compile(r".*\[.*(\$[({]|`).*|-[vR] .*\[.*", re.DOTALL)
"""Array subscripts; after `-v`, bash evaluates them, which may run commands."""

SETTING = {
    "printf": re.compile(r"-v.*|.*%[-+ #0'*.\dhjlLtz]*n.*", re.DOTALL),
    **dict.fromkeys(("read", "unset", "getopts"), VARIABLE),
    **dict.fromkeys(
        ("declare", "typeset", "local", "export", "readonly"),
        re.compile(r"\w+(\[.*)?\+?=.*|-[A-Za-z]*n.*", re.DOTALL),
    ),
}
"""Words that make bash set variables, or evaluate a quoted subscript."""

RUNNING_OPTIONS = {
    "git": ("--config-env", "--exec-path", "--upload-pack", "--receive-pack"),
    "cargo": ("--config",),
    "make": ("--eval",),
    "gmake": ("--eval",),
    "npm": ("--script-shell", "--node-options", "--git", "--node-gyp"),
    **dict.fromkeys(("pip", "pip3"), ("--python",)),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "uv": ("--python",),
    "tar": (
        *("--use-compress-program", "--checkpoint-action", "--to-command", "--info-script"),
        *("--new-volume-script", "--rsh-command", "--rmt-command"),
    ),
    "zip": ("--unzip-command",),
}
"""Options that name a program to run; they may be abbreviated."""

RUNNING_WORDS = {
    "go": re.compile(r"--?(toolexec|exec|vettool|overlay|ldflags|gcflags)(=.*)?", re.DOTALL),
    **dict.fromkeys(("make", "gmake"), re.compile(r"\w+[:?+!]*=.*[\s$`].*", re.DOTALL)),
    "npm": re.compile(r"exec|x|init|create|explore"),
    **dict.fromkeys(("pnpm", "yarn"), re.compile(r"exec|dlx|create|node")),
    "nix": re.compile(r"run|shell|develop"),
    "mise": re.compile(r"exec|x"),
    "uv": re.compile(r"tool"),
    "hatch": re.compile(r"run"),
}
"""Words that name a program to run, or a package with one."""

RUNNING_LETTERS = {
    **dict.fromkeys(("make", "gmake"), re.compile(r"-[A-Za-z]*E.*", re.DOTALL)),
    "git": re.compile(r"-c .*=.*", re.DOTALL),
    "tar": re.compile(r"-[A-Za-z]*[IF].*", re.DOTALL),
    "uv": re.compile(r"-[a-z]*p.*", re.DOTALL),
    "zip": re.compile(r"-\w*TT.*", re.DOTALL),
}
"""Short options that do so, with the next word; the first word of tar needs no dash."""


TESTS = frozenset({"test", "["})
MAKES = frozenset({"make", "gmake"})
RISKY = frozenset({*TESTS, *SETTING, *RUNNING_OPTIONS, *RUNNING_WORDS, *RUNNING_LETTERS})
"""The base names of all these commands."""


def risks(words: Sequence[Word], name: str) -> Iterator[tuple[int, str]]:
    """Yields the positions of such operands in a command, and what they may do."""
    setting, running = SETTING.get(name), RUNNING_WORDS.get(name)
    options, letters = RUNNING_OPTIONS.get(name, ()), RUNNING_LETTERS.get(name)
    for at, (word, following) in enumerate(pairwise([*words[1:], Word("")]), start=1):
        text = word.text
        is_bare = name == "tar" and at == 1 and not (text or "").startswith("-")
        short = f"{'-' * is_bare}{text} {following.text}"
        if name in MAKES and text is not None and names_stdin(text):
            yield at, f"{name} runs what it reads"
        if text is None:
            yield at, f"the words of {name} cannot be determined"
        elif name in TESTS and SUBSCRIPT.fullmatch(f"{text} {following.text or '['}"):
            yield at, f"{name} runs what is in a subscript"
        elif setting is not None and setting.fullmatch(text):
            yield at, f"{name} sets a variable, or may run what is in {text!r}"
        elif (
            _names_program(text, options)
            or (letters and letters.fullmatch(short))
            or (running and running.fullmatch(text))
        ):
            yield at, f"{name} runs what {text!r} names"


def _names_program(text: str, options: Sequence[str]) -> bool:
    """Returns whether a word is one of the options, possibly abbreviated or with a value."""
    given = text.partition("=")[0]
    return len(given) > len("--") and any(option.startswith(given) for option in options)


# A file may be named `-x` or `--exec=…`, so a glob may expand to an option.
_BEGINS_OPTION = re.compile(r"[*?\[-]")
_ENDING_OPTIONS = "--"
_BY_OPTIONS = frozenset(
    {"bisect", "cherry-pick", "clone", "difftool", "fetch", "grep", "init", "pull", "push"}
    | {"rebase", "revert", "submodule"}
)
"""Git subcommands with options that run programs."""


def with_unseen_options(words: Sequence[Word], name: str) -> Sequence[Word]:
    """Hides the words that globs may expand to options or other operands that are obeyed."""
    if not any(word.is_glob for word in words):
        return words
    texts = [word.text or "" for word in words]
    if name == "git" and _BY_OPTIONS.isdisjoint(texts):
        return words
    return tuple(
        Word(None) if at and word.is_glob and _is_obeyed(texts, at, name) else word
        for at, word in enumerate(words)
    )


def _is_obeyed(texts: Sequence[str], at: int, name: str) -> bool:
    if name == "printf":  # only its format
        return at == 1 or texts[at - 1] == _ENDING_OPTIONS
    if name in {"test", "["}:
        return texts[at - 1] in {"-v", "-R"}
    if name == "tar" and at == 1:  # an option without a dash
        return True
    return _BEGINS_OPTION.match(texts[at]) is not None and _ENDING_OPTIONS not in texts[:at]
