"""Commands that run other commands: where in their words these stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from tools.policy.shell.git import inner_of_git
from tools.policy.shell.globs import with_unseen_options
from tools.policy.shell.inner import Inner
from tools.policy.shell.operands import RISKY, risks
from tools.policy.shell.sed import inner_of_sed
from tools.policy.shell.words import Word, base_name
from tools.policy.shell.wrapper_options import RUNNERS, WRAPPERS, Wrapper

__all__ = ["SHELLS", "inner_commands", "is_activation"]

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"})
INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|wish|osascript|rscript"
    r"|julia|ghci|irb|ipython|raku)[0-9.]*"
)
CODE = re.compile(r"-[A-Za-z]*[cCeEpPrR].*|--(eval|print|run|execute|command)(=.*)?|eval|-")
"""Options behind which interpreters take a program as text."""

DYNAMIC_LINKER = re.compile(r"ld-(linux|musl).*\.so.*|ld64?\.so\.\d+")

HARMLESS = frozenset({"--version", "-V", "-v", "--help", "-h", "-help"})
AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
AWK_RUNS = re.compile(r"system|getline|\||@|close|print.*>", re.DOTALL)
AWK_SETS = re.compile(r"-[Fv].*|--", re.DOTALL)
AWK_OPTION = re.compile(r"-(?![Fv]|-$).+", re.DOTALL)
"""Options of awk other than separators and variables: files of programs among them."""

INVISIBLE = (
    *(
        "parallel",
        "ssh",
        "docker",
        "podman",
        "kubectl",
        "nsenter",
        "crontab",
        "at",
        "batch",
        "screen",
    ),
    *("tmux", "expect", "gdb", "vim", "vi", "ex", "emacs", "ed", "sqlite3", "psql", "mysql", "npx"),
    *(
        "pnpx",
        "uvx",
        "bunx",
        "pipx",
        "script",
        "systemd-run",
        "firejail",
        "bwrap",
        "alias",
        "compgen",
    ),
    *("complete", "fc", "jobs", "let", "mapfile", "readarray", "enable", "hash", "shopt", "bind"),
    *("coproc", "rsync", "scp", "socat", "nc", "ncat", "entr", "watchexec", "rr"),
    *("hyperfine", "proxychains", "torsocks", "start-stop-daemon"),
)
"""Commands that can run others in ways that are not looked into."""

ACTIVATE = re.compile(r"(.*/)?bin/activate", re.DOTALL)
"""Scripts that say of themselves to set variables alone."""

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=", re.DOTALL)
STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
PLACEHOLDER = re.compile(
    r"(-[^-adEeiILlnPs]*(i|(?P<takes>I))|--r[eplac]*(=|$))(?P<text>.*)", re.DOTALL
)
TERMINATORS = frozenset({";", "+"})
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
FD_RUNS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


def inner_commands(words: Sequence[Word]) -> list[Inner]:
    """What a command runs besides itself, as far as its words say.

    Args:
        words: The command.
    """
    name = base_name(words[0].text or "")
    if DYNAMIC_LINKER.fullmatch(name):
        name = "ld.so"
    look = LOOKS.get(name)
    if look is None and INTERPRETERS.fullmatch(name):
        look = _of_interpreter
    if look is None:
        return []
    known = words if name in WRAPPERS or name in AWKS else with_unseen_options(words, name)
    return list(look(known, name))


def is_activation(words: Sequence[Word]) -> bool:
    """Whether a command reads the script that activates a virtual environment."""
    name, *rest = (word.text or "" for word in words)
    reads_script = name in {"source", "."} and len(rest) == 1 and not words[-1].is_glob
    return reads_script and ACTIVATE.fullmatch(rest[0]) is not None


def _of_source(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Whatever the script says; one that activates an environment is as any other program is."""
    if not is_activation(words):
        yield from _of_any(words, name)


def _of_shell(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """The script of `-c`; without one, a file or the standard input is run."""
    at, is_script = 1, False
    while at < len(words):
        text = words[at].text
        if text is None or words[at].is_glob:
            yield Inner(at, unseen=f"what {name} runs cannot be determined")
            return
        if text[:1] not in {"-", "+"} or text in STDIN:
            break
        is_script = is_script or text == "--command" or re.fullmatch(r"-\w*c", text) is not None
        at += 2 if text in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"} else 1
    rest = words[at:]
    if is_script and rest:
        yield Inner(at, script=rest[0].text or "$x")
    elif name in {"su", "runuser"}:
        yield from _of_any(words, name)
    elif not rest and any(word.text in HARMLESS for word in words[1:]):
        return
    elif not rest or rest[0].text in STDIN or any(word.text == "-s" for word in words[1:at]):
        yield Inner(len(words), unseen=f"{name} runs what it reads")


def _of_eval(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """The words of eval as the line that it runs; of trap the first alone."""
    texts = [word.text for word in (words[1:] if name == "eval" else words[1:2])]
    if any(text is None for text in texts) or any(word.is_glob for word in words):
        yield Inner(0, unseen=f"what {name} runs cannot be determined")
    elif texts:
        yield Inner(len(texts), script=" ".join(text or "" for text in texts))


def _of_find(words: Sequence[Word], name: str) -> Iterator[Inner]:
    runs = FIND_RUNS if name.endswith("find") else FD_RUNS
    for at, word in enumerate(words):
        if at and word.text is None:
            yield Inner(at, unseen=f"what {name} runs cannot be determined")
        if word.text in runs:
            rest = words[at + 1 :]
            ends = (place for place, each in enumerate(rest) if each.text in TERMINATORS)
            run = rest[: next(ends, len(rest))]
            found = "{}" if name.endswith("find") else "{"
            more = () if found == "{}" else (Word(None),)  # fd adds what it found
            yield Inner(at + 1, words=(*_filled(run, found), *more))


def _of_env(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Like any wrapper, except that `-S` has the command in one text."""
    texts = [word.text or "" for word in words]
    for at, text in enumerate(texts[1:], start=1):
        if re.match(r"-\w*S|--split-string", text):
            script = text.partition("=")[2] or text.partition("S")[2]
            yield Inner(at, unseen="what env -S runs is split by env")
            yield Inner(at, script=script or " ".join(texts[at + 1 :]))
            return
        if not text.startswith("-"):
            break
    yield from _of_wrapper(words, name)


def _of_flock(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Like any wrapper, except that `-c` has a script behind it."""
    for at, word in enumerate(words[:-1]):
        if word.text in {"-c", "--command"}:
            yield Inner(at + 1, script=words[at + 1].text or "$x")
    yield from _of_wrapper(words, name)


def _of_watch(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Like any wrapper; it hands its words to a shell, joined."""
    for inner in _of_wrapper(words, name):
        yield inner
        if inner.words and inner.is_certain:
            script = " ".join(word.text or "$x" for word in inner.words)
            yield Inner(len(words) - 1, script=script)


def _of_xargs(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Like any wrapper, except that what it reads becomes words of the command."""
    for inner in _of_wrapper(words, name):
        if inner.unseen:
            yield inner
        else:
            run = _filled(inner.words, *_placeholders(words[1 : inner.at]))
            yield Inner(inner.at, words=(*run, Word(None)), is_certain=inner.is_certain)


def _of_wrapper(words: Sequence[Word], name: str) -> Iterator[Inner]:
    yield from _behind(words, name, WRAPPERS[name], 1)


def _of_subcommand(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Like any wrapper, behind a subcommand; what may be the value of an option counts as one."""
    for at, word in enumerate(words[1:], start=1):
        wrapper = RUNNERS[name].get(word.text or "")
        if wrapper is not None:
            yield from _behind(words, f"{name} {word.text}", wrapper, at + 1)
            return
    yield from _of_operands(words, name)


def _behind(words: Sequence[Word], name: str, wrapper: Wrapper, start: int) -> Iterator[Inner]:
    """What stands behind the options, assignments and other words of a wrapper."""
    skipped = wrapper.skipped
    at = start
    while at < len(words):
        text = words[at].text
        if text is None or words[at].is_glob:
            yield Inner(at, unseen=f"what {name} runs cannot be determined")
            break
        if text.startswith("-") and text != "-":
            takes_value = _takes_value(text, wrapper)
            if not takes_value and not _is_flag(text, wrapper):
                yield Inner(at, unseen=f"what {name} runs behind {text} cannot be determined")
            at += 1 + takes_value
        elif wrapper.assigns and ASSIGNMENT.match(text):
            yield Inner(at, unseen=f"{name} sets {text.partition('=')[0]} for what it runs")
            at += 1
        elif skipped or text == "-":
            skipped -= text != "-"
            at += 1
        else:
            break
    if any(word.is_glob for word in words[start:at]):
        yield Inner(at, unseen=f"what {name} runs cannot be determined")
    if at < len(words):
        yield Inner(at, words=tuple(words[at:]))
    yield from _suffixes(words, start)


def _placeholders(options: Sequence[Word]) -> Iterator[str]:
    """What may stand in the words of xargs for what it reads."""
    yield "{}"
    for text, following in pairwise([*(word.text or "" for word in options), ""]):
        if found := PLACEHOLDER.fullmatch(text):
            yield found["text"] or (following if found["takes"] else "") or "{}"


def _filled(words: Sequence[Word], *placeholders: str) -> tuple[Word, ...]:
    """The words of a command in which placeholders stand for something unseen."""
    return tuple(
        Word(None) if any(each in (word.text or "") for each in placeholders) else word
        for word in words
    )


def _takes_value(option: str, wrapper: Wrapper) -> bool:
    """Whether the next word is the option's value."""
    if option.startswith("--"):
        return option in wrapper.names
    takers = (*wrapper.letters, *wrapper.joined)
    first = next((place for place, one in enumerate(option[1:]) if one in takers), None)
    is_last = first is not None and first == len(option) - 2
    return is_last and option[-1] not in wrapper.joined


def _is_flag(option: str, wrapper: Wrapper) -> bool:
    """Whether it is surely an option that takes none of the words behind it."""
    if option.startswith("--") and _is_short_for(option.partition("=")[0], wrapper.names):
        return False
    if wrapper.flags is None or option in wrapper.flags:
        return True
    return "=" in option if option.startswith("--") else option[1:2] in wrapper.letters


def _is_short_for(option: str, names: Iterable[str]) -> bool:
    return option != "--" and any(name != option and name.startswith(option) for name in names)


def _of_any(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Whatever the words may say."""
    yield Inner(0, unseen=f"what {name} runs cannot be determined")
    yield from _suffixes(words, 1)


def _of_operands(words: Sequence[Word], name: str) -> Iterator[Inner]:
    for at, reason in risks(words, name):
        yield Inner(at, unseen=reason)


def _of_git(words: Sequence[Word], name: str) -> Iterator[Inner]:
    yield from _of_operands(words, name)
    yield from inner_of_git(words)


def _of_sed(words: Sequence[Word], _name: str) -> Iterator[Inner]:
    yield from inner_of_sed(words)


def _of_awk(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """A program that may run others, or that does not stand in the words."""
    program = 1
    while program < len(words) and AWK_SETS.fullmatch(words[program].text or ""):
        program += 2 if words[program].text in {"-F", "-v"} else 1
    for at, word in enumerate(words[1:], start=1):
        text = "@" if word.text is None or (word.is_glob and at <= program) else word.text
        if AWK_RUNS.search(text) or AWK_OPTION.fullmatch(text):
            yield Inner(at, unseen=f"what {name} runs cannot be determined")


def _of_interpreter(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """A program given as text, or read from the standard input."""
    for at, word in enumerate(words[1:], start=1):
        if word.text is None or CODE.fullmatch(word.text):
            yield Inner(at, unseen=f"what {name} runs cannot be determined")
            return
        if not word.text.startswith("-"):
            return  # a file, as any other program is
        if word.text in HARMLESS:
            return
    yield Inner(len(words), unseen=f"{name} runs what it reads")


def _suffixes(words: Sequence[Word], start: int) -> Iterator[Inner]:
    """Every command that the words may end in, for options that are not known here."""
    for at in range(start, len(words)):
        text = words[at].text
        if text and not text.startswith("-"):
            yield Inner(at, words=tuple(words[at:]), is_certain=False)


LOOKS: dict[str, Callable[[Sequence[Word], str], Iterator[Inner]]] = {
    **dict.fromkeys(INVISIBLE, _of_any),
    **dict.fromkeys(WRAPPERS, _of_wrapper),
    **dict.fromkeys(AWKS, _of_awk),
    **dict.fromkeys(RISKY, _of_operands),
    **dict.fromkeys(RUNNERS, _of_subcommand),
    **dict.fromkeys(("sed", "gsed"), _of_sed),
    "git": _of_git,
    "env": _of_env,
    "flock": _of_flock,
    "watch": _of_watch,
    "xargs": _of_xargs,
    **dict.fromkeys(("find", "gfind", "fd", "fdfind"), _of_find),
    **dict.fromkeys(("eval", "trap"), _of_eval),
    **dict.fromkeys(("source", "."), _of_source),
    **dict.fromkeys((*SHELLS, "su", "runuser"), _of_shell),
}
"""How the words of each are looked at."""
