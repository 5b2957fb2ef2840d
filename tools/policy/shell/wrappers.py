"""Commands that run other commands: finds these in the arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tools.policy.shell.git import inner_of_git, takes_data
from tools.policy.shell.interpreters import (
    INTERPRETERS,
    SHELLS,
    USERS,
    inner_of_interpreter,
    inner_of_sed,
    inner_of_shell,
)
from tools.policy.shell.operands import (
    DATA,
    READ_WHOLE,
    RISKY,
    RUNNERS,
    WRAPPERS,
    Wrapper,
    risks,
    with_unseen_options,
)
from tools.policy.shell.words import QUOTES, Inner, Word, base_name, is_expanded

DYNAMIC_LINKER = re.compile(r"ld-(linux|musl).*\.so.*|ld64?\.so\.\d+")

AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
AWK_RUNS = re.compile(r"system|getline|\||@|close|print.*>", re.DOTALL)
AWK_SETS = re.compile(r"-[Fv].*|--", re.DOTALL)
AWK_OPTION = re.compile(r"-(?![Fv]|-$).+", re.DOTALL)
"""Options of awk except separators and variables; some load program files."""

_INVISIBLE = """
    parallel ssh docker podman kubectl nsenter crontab capsh sg nvim lldb at batch screen tmux
    expect gdb vim vi ex emacs ed sqlite3 psql mysql npx pnpx uvx bunx pipx script systemd-run
    firejail bwrap alias compgen complete fc jobs let mapfile readarray enable hash shopt bind
    coproc rsync scp socat nc ncat entr watchexec rr hyperfine proxychains torsocks
    start-stop-daemon rvim rview view vimdiff vim.basic vim.tiny vim.nox vim.gtk3 gvim gview evim
    editor emacs-nox emacs-gtk emacs-lucid m4 dc erb bmake troff groff
"""
INVISIBLE = frozenset(_INVISIBLE.split())
"""Commands that can run others in ways this module does not analyze."""

ACTIVATE = re.compile(r"(.*/)?bin/activate", re.DOTALL)
"""Scripts whose names promise that they only set variables."""

SCRIPTED = frozenset({"env", "eval", "flock", "watch"})
_PASSED_ON = r"((exec|env|command|builtin|nohup|time|sudo)\s+)*[\w./-]*?"
_SHELL = r"(?<![\w.-])(ba|da|z|k|mk|a|c|tc|fi|ya|po|lk|rba)?sh"
RUNS_SHELL = re.compile(
    rf"(^|[;&|(]\s*){_PASSED_ON}{_SHELL}(\s|,-)|[;&|(]\s*\S*sh$|\beval\s"
    rf"|[;&]\s*{_PASSED_ON}{_SHELL}\s*[;&|]"
    rf"|\|\s*([\w.=/-]+\s+)*[\w./-]*?({_SHELL}|(?<![\w.-])(python|perl|ruby|node|php)[\d.]*)(?![\w.-])"
)
"""Texts that run a shell."""

SHELL_ALONE = frozenset(
    {"chroot", "fakeroot", "runuser", "setarch", "unshare"}
    | {"i386", "i486", "i586", "i686", "linux32", "linux64", "uname26", "x86_64"}
)
"""Wrappers that start a shell if they are given no command."""

SHELL_BY_OPTION = frozenset({"doas", "sudo"})
SHELL_OPTION = re.compile(r"-[A-Za-z]*[si]|--(s(h|$)|l(o|$))")
VALUE_OF = re.compile(r"^(-\w|--[\w-]+=)")
PIPED = re.compile(r"[^|!]*[|!](.+)", re.DOTALL)

PLACEHOLDER = re.compile(
    r"(-[^-adEeiILlnPs]*(i|(?P<takes>I))|--r[eplac]*(=|$))(?P<text>.*)", re.DOTALL
)
TERMINATORS = frozenset({";", "+"})
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
FD_RUNS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


def inner_commands(words: Sequence[Word]) -> list[Inner]:
    """Returns what a command runs, as far as its words tell."""
    name = base_name(words[0].text or "")
    if DYNAMIC_LINKER.fullmatch(name):
        name = "ld.so"
    if name.startswith("git-"):  # as in git's own directory of programs
        names = (Word("git"), Word(name.removeprefix("git-")))
        return [Inner(0, words=(*names, *words[1:]))]
    look = LOOKS.get(name) or (inner_of_interpreter if INTERPRETERS.fullmatch(name) else None)
    if look is None:
        return [] if name in DATA else list(_of_unknown(words, name))
    known = words if name in WRAPPERS or name in AWKS else with_unseen_options(words, name)
    return list(look(known, name))


def is_opaque(words: Sequence[Word]) -> bool:
    """Returns whether an unknown command may run any of its arguments."""
    name = base_name(words[0].text or "")
    if name == "git":
        return not takes_data(words)
    if name in READ_WHOLE:  # which may make a copy of a program
        return any("bin/" in (word.text or "") for word in words[1:])
    return not (name in DATA or name in WRAPPERS or name in SHELLS)


def _of_unknown(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields what an unknown program may run: commands among its arguments, and inside them."""
    for at, word in enumerate(words[1:], start=1):
        text, rest = word.text or "", words[at:]
        if is_expanded(text) or RUNS_SHELL.search(text):
            yield Inner(at, unseen=f"{name} may run what is in {text!r}", is_certain=False)
        elif rest[1:]:
            yield from _nested(rest, at)


def _nested(words: Sequence[Word], at: int) -> Iterator[Inner]:
    """Yields the scripts of a word as a command; its own words are analyzed anyway."""
    name = base_name(words[0].text or "")
    if name in SCRIPTED or name in SHELLS or INTERPRETERS.fullmatch(name):
        for inner in inner_commands(words):
            if not inner.words:
                yield replace(inner, at=at, is_certain=False)


def runs_nothing(words: Sequence[Word], is_git: bool) -> bool:
    """Returns whether a command runs no file that was written before it, except through git."""
    name = base_name(words[0].text or "")
    return name in DATA or name in {"chmod", "cp", "ln", "mv"} or (name == "git" and not is_git)


def is_activation(words: Sequence[Word]) -> bool:
    """Returns whether a command sources the script that activates a virtual environment."""
    name, *rest = (word.text or "" for word in words)
    reads_script = name in {"source", "."} and len(rest) == 1 and not words[-1].is_glob
    return reads_script and ACTIVATE.fullmatch(rest[0]) is not None


def _of_source(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields an unseen script, except for one that activates a virtual environment."""
    if not is_activation(words):
        yield from _of_any(words, name)


def _of_user(words: Sequence[Word], name: str) -> Iterator[Inner]:
    yield from inner_of_shell(words, name)
    yield from _of_any(words, name)


def _of_eval(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields the script of eval from all its words, and of trap from the first."""
    start = 2 if len(words) > 1 and words[1].text == "--" else 1
    texts = [word.text for word in (words[start:] if name == "eval" else words[start : start + 1])]
    if any(text is None for text in texts) or any(word.is_glob for word in words):
        yield Inner(0, unseen=f"what {name} runs cannot be determined")
    elif texts:
        yield Inner(start + len(texts) - 1, script=" ".join(text or "" for text in texts))


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
            yield Inner(at + 1, words=(*_fill(run, found), *more))


def _of_env(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Like any wrapper, except that `-S` has the command in one text."""
    texts = [word.text or "" for word in words]
    for at, text in enumerate(texts[1:], start=1):
        if re.match(r"-\w*S|--s", text):
            script = text.partition("=")[2] or text.partition("S")[2]
            yield Inner(at, unseen="what env -S runs is split by env")
            yield Inner(at, script=script or " ".join(texts[at + 1 :]))
            return
        if not text.startswith("-"):
            break
    yield from _of_wrapper(words, name)


def _of_flock(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Handles a wrapper whose `-c` takes a script."""
    for at, word in enumerate(words[:-1]):
        if word.text in {"-c", "--command"}:
            yield Inner(at + 1, script=words[at + 1].text or "$x")
    yield from _of_wrapper(words, name)


def _of_watch(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Handles a wrapper that joins its words and passes them to a shell."""
    for inner in _of_wrapper(words, name):
        yield inner
        if inner.words and inner.is_certain:
            script = " ".join(word.text or "$x" for word in inner.words)
            yield Inner(len(words) - 1, script=script)


def _of_xargs(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Handles a wrapper that adds its input to the words of the command."""
    for inner in _of_wrapper(words, name):
        if inner.unseen:
            yield inner
        else:
            run = _fill(inner.words, *_placeholders(words[1 : inner.at]))
            yield Inner(inner.at, words=(*run, Word(None)), is_certain=inner.is_certain)


def _of_wrapper(words: Sequence[Word], name: str) -> Iterator[Inner]:
    yield from _behind(words, name, WRAPPERS[name], 1)


def _of_subcommand(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Handles a wrapper after a subcommand; possible option values count as subcommands."""
    for at, word in enumerate(words[1:], start=1):
        wrapper = RUNNERS[name].get(word.text or "")
        if wrapper is not None:
            yield from _behind(words, f"{name} {word.text}", wrapper, at + 1)
            return
    yield from _of_operands(words, name)


def _behind(words: Sequence[Word], name: str, wrapper: Wrapper, start: int) -> Iterator[Inner]:
    """Yields what follows the options, assignments and other words of a wrapper."""
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
        elif text == "!" and name == "time":  # the shell's own, which negates what follows
            at += 1
        elif wrapper.assigns and "=" in text:  # any name, even of an exported function
            yield Inner(at, unseen=f"{name} sets {text.partition('=')[0]} for what it runs")
            at += 1
        elif skipped or text == "-":
            skipped -= text != "-"
            yield from _unskipped(words[at:], at)
            at += 1
        else:
            break
    if any(word.is_glob for word in words[start:at]):
        yield Inner(at, unseen=f"what {name} runs cannot be determined")
    if at < len(words):
        yield Inner(at, words=tuple(words[at:]))
    yield from _of_options(words, start, at, name)
    yield from _suffixes(words, start)


def _unskipped(words: Sequence[Word], at: int) -> Iterator[Inner]:
    """Yields the command that would run if the word to skip is missing."""
    name = base_name(words[0].text or "")
    if name in SHELLS:
        yield from _nested(words, at)
    elif name in WRAPPERS:
        yield Inner(at, words=tuple(words))


def _of_options(words: Sequence[Word], start: int, end: int, name: str) -> Iterator[Inner]:
    """Yields commands in option values (`strace -o '|x'`), and a shell without a command."""
    for at, word in enumerate(words[start:end], start=start):
        text = VALUE_OF.sub("", word.text or "")
        if found := PIPED.fullmatch(text):
            yield Inner(at, script=found[1], is_certain=False)
        pieces = [Word(piece) for piece in QUOTES.sub("", text).split()]
        for place in range(len(pieces) if pieces[1:] else 0):
            yield Inner(at, words=tuple(pieces[place:]), is_certain=False)
    options = any(SHELL_OPTION.match(word.text or "-s") for word in words[1:])
    if end >= len(words) and (name in SHELL_ALONE or (name in SHELL_BY_OPTION and options)):
        yield Inner(len(words) - 1, unseen=f"{name} runs what it reads")


def _placeholders(options: Sequence[Word]) -> Iterator[str]:
    yield "{}"
    for text, following in pairwise([*(word.text or "" for word in options), ""]):
        if found := PLACEHOLDER.fullmatch(text):
            yield found["text"] or (following if found["takes"] else "") or "{}"


def _fill(words: Sequence[Word], *placeholders: str) -> tuple[Word, ...]:
    """Replaces words that contain placeholders by unseen ones."""
    return tuple(
        Word(None) if any(each in (word.text or "") for each in placeholders) else word
        for word in words
    )


def _takes_value(option: str, wrapper: Wrapper) -> bool:
    if option.startswith("--"):
        return option in wrapper.names
    takers = (*wrapper.letters, *wrapper.joined)
    first = next((place for place, one in enumerate(option[1:]) if one in takers), None)
    is_last = first is not None and first == len(option) - 2
    return is_last and option[-1] not in wrapper.joined


def _is_flag(option: str, wrapper: Wrapper) -> bool:
    """Returns whether it is certainly an option without a value in the next word."""
    given = option.partition("=")[0]
    is_named = given.startswith("--") and given != "--"
    if is_named and any(name != given and name.startswith(given) for name in wrapper.names):
        return False  # short for one that takes a value
    if wrapper.flags is None or option in wrapper.flags:
        return True
    return "=" in option if option.startswith("--") else option[1:2] in wrapper.letters


def _of_any(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields an unseen command for programs that may run anything."""
    yield Inner(0, unseen=f"what {name} runs cannot be determined")
    yield from _suffixes(words, 1)


def _of_operands(words: Sequence[Word], name: str) -> Iterator[Inner]:
    for at, reason in risks(words, name):
        yield Inner(at, unseen=reason)


def _of_git(words: Sequence[Word], name: str) -> Iterator[Inner]:
    yield from _of_operands(words, name)
    if not takes_data(words):
        yield from _of_unknown(words, name)
    yield from inner_of_git(words)


def _of_awk(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields awk programs that may run others, or that are not in the arguments."""
    program = 1
    while program < len(words) and AWK_SETS.fullmatch(words[program].text or ""):
        program += 2 if words[program].text in {"-F", "-v"} else 1
    for at, word in enumerate(words[1:], start=1):
        text = "@" if word.text is None or (word.is_glob and at <= program) else word.text
        if AWK_RUNS.search(text) or AWK_OPTION.fullmatch(text):
            yield Inner(at, unseen=f"what {name} runs cannot be determined")


def _suffixes(words: Sequence[Word], start: int) -> Iterator[Inner]:
    """Yields every command that the words may end in, to allow for unknown options."""
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
    **dict.fromkeys(("sed", "gsed"), lambda words, _name: inner_of_sed(words)),
    "git": _of_git,
    "newgrp": _of_any,
    "env": _of_env,
    "flock": _of_flock,
    "watch": _of_watch,
    "xargs": _of_xargs,
    **dict.fromkeys(("find", "gfind", "fd", "fdfind"), _of_find),
    **dict.fromkeys(("eval", "trap"), _of_eval),
    **dict.fromkeys(("source", "."), _of_source),
    **dict.fromkeys(SHELLS, inner_of_shell),
    **dict.fromkeys(USERS, _of_user),
}
"""For each command, how to analyze its words."""
