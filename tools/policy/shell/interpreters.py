"""Shells, interpreters and sed: finds the code they get through options or standard input."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from tools.policy.shell.words import Inner, Word, names_stdin

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "rzsh", "ksh93", "rksh"}
    | {"csh", "tcsh", "yash", "posh", "lksh", "bash-static", "zsh-static", "mksh-static", "zsh5"}
)
INTERPRETERS = re.compile(
    r"(?:\w+-(?:\w+-)?linux-\w+-)?"
    r"(?P<name>python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|wish|osascript|rscript"
    r"|julia|ghci|irb|ipython|bpython|raku|tsx|ts-node|r|guile|racket|octave|erl|elixir|iex|ocaml"
    r"|sbcl|clisp|groovy|scala|pwsh|nu|xonsh|gnuplot|jshell|qjs|janet|swipl|jrunscript)"
    r"(?:[0-9.]+[dmtuw]*|w)?(?:-(?:dbg|debug|static|cgi|dev|(?:\w+-)?(?:linux|darwin)[\w-]*))?"
)
"""Names of interpreters, optionally with a version, platform or build."""
CODE = re.compile(
    r"-[A-Za-z0-9]*[cCeEpPrR].*|--(eval|print|run|execute|command)(=.*)?|eval|exec|-", re.DOTALL
)
"""Options that take a program as text."""

CODE_OF = {
    **dict.fromkeys(("python", "pypy", "ipython"), re.compile(r"-[bBdEIOqsSuvPx]*i.*")),
    "perl": re.compile(r"-\w*d.*|-\w*[mM](?![\w:]+(=[\w:,]+)?$).*|-[^IiMmxCD]*F.*", re.DOTALL),
}
"""Further such options of single interpreters."""

MODULE = re.compile(r"-[bBdEiIOqsSuvPx]*m(.*)", re.DOTALL)
CODE_MODULES = re.compile(
    r"timeit|code|pdb|asyncio|idlelib.*|ipython|ipykernel.*|[bp]t?python|xonsh.*|_?pyrepl.*"
)
"""Python modules that run their arguments or their input."""

NO_VALUE = re.compile(
    r"-[bBdEOqsSuvPwTtnlaU]+|--(watch|test|check|hot|smol|bun|quiet|verbose|interactive"
    r"|(no|allow|enable|preserve|pending|abort|use|inspect|trace|unstable"
    r"|experimental(?!-(loader|default|config)))(-[a-z-]+)?)(=.*)?"
)
"""Options followed by the file to run."""

PRINTS = re.compile(
    r"(?!tclsh|wish|erl)\S+ --(version|help)|(perl|deno|gnuplot) -V"
    r"|(python|pypy) (-V|-h(elp)?)"
    r"|(perl|node|nodejs|php|ruby|lua|luajit|bun|irb|julia|guile) -[vh]"
)
"""Interpreters that print something and exit, with their only option."""

LONG_OPTION = re.compile(
    r"--?(debug(ger)?|dump-(po-)?strings|help|interactive|login|no(-config|editing|profile|rc)"
    r"|posix|pretty-print|private|protected|restricted|verbose|version|wordexp)"
)
"""Long options of shells; bash accepts them after one dash too."""

LONG_WITH_VALUE = re.compile(r"--?(emulate|features|init-file|profile|rcfile)")
SCRIPT_OPTION = re.compile(r"--(init-)?command(=(.*))?", re.DOTALL)
USERS = frozenset({"su", "runuser"})
ATTACHING = frozenset({"zsh", "ksh", "mksh"})
"""Shells that accept the value of `-o` in the same word."""


def inner_of_shell(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields the script of `-c`; otherwise the shell runs a file or its standard input."""
    at, letters, script = _options(words, name)
    given, rest = words[1:at], words[at:]
    texts = [word.text or "" for word in given]
    if any(word.text is None or word.is_glob for word in (*given, *rest[:1])):
        yield Inner(min(at, len(words) - 1), unseen=f"what {name} runs cannot be determined")
    elif script or ("c" in letters and rest):
        yield Inner(at if not script else at - 1, script=script or rest[0].text or "$x")
    elif not rest and texts in (["--version"], ["--help"]):
        return
    elif not rest or "s" in letters or _names_open_file(rest[0].text or ""):
        yield Inner(len(words), unseen=f"{name} runs what it reads")
    elif rest[1:] and name in SHELLS:
        yield Inner(at, words=tuple(rest), is_certain=False)
    if any(names_stdin(text) for text in texts if text != "-"):
        yield Inner(at, unseen=f"{name} runs what it reads")


def _options(words: Sequence[Word], name: str) -> tuple[int, str, str]:
    """Returns the start of the operands, the option letters, and the script of a long option.

    The value of an option follows its cluster (`-euo pipefail`).
    """
    at, letters, script = 1, "", ""
    while at < len(words):
        text = words[at].text
        if text is None or text[:1] not in {"-", "+"}:
            break
        at += 1
        if text in {"-", "--"}:
            break
        if found := SCRIPT_OPTION.fullmatch(text):
            following = words[at].text if words[at:] else ""
            at += not found[2]
            script = found[3] or following or "$x"
        elif LONG_WITH_VALUE.fullmatch(text):
            at += 1
        elif not LONG_OPTION.fullmatch(text) and not text.startswith("--"):
            letters += text[1:]
            is_attached = name in ATTACHING and text[-1] not in "oO"
            at += 0 if is_attached else text.count("o") + text.count("O")
    return at, letters, script


def inner_of_interpreter(words: Sequence[Word], name: str) -> Iterator[Inner]:
    """Yields programs given as text or read from standard input."""
    found = INTERPRETERS.fullmatch(name)
    known = found["name"] if found else name
    more = CODE_OF.get(known)
    is_python = known.startswith(("py", "ipy"))
    if len(words[1:]) == 1 and PRINTS.fullmatch(f"{known} {words[1].text}"):
        return
    may_be_value = False
    for at, word in enumerate(words[1:], start=1):
        text = word.text
        if is_python and (module := MODULE.fullmatch(text or "")):
            texts = [(each.text or "").casefold() for each in (Word(module[1]), *words[at + 1 :])]
            if any(CODE_MODULES.fullmatch(each) for each in texts) or any(
                "/" in each and names_stdin(each) for each in texts
            ):
                yield Inner(at, unseen=f"what {name} runs cannot be determined")
            return  # any other module is like any program
        if (
            text is None
            or CODE.fullmatch(text)
            or (more is not None and more.fullmatch(text))
            or _names_open_file(text)
            or "data:" in text.casefold()
        ):
            yield Inner(at, unseen=f"what {name} runs cannot be determined")
            return
        if not (text.startswith("-") or may_be_value or (at == 1 and name in {"deno", "bun"})):
            return  # a file, like any other program
        may_be_value = text.startswith("-") and "=" not in text and not NO_VALUE.fullmatch(text)
    yield Inner(len(words), unseen=f"{name} runs what it reads")


def _names_open_file(text: str) -> bool:
    """Returns whether the program file is an open descriptor, even relative to `/dev/fd`."""
    return names_stdin(text) or posixpath.normpath(text).isdecimal()


# `e` and the flag `e` of `s` run a shell command (sed(1), "Commands specific to GNU sed").
def _command(inside: str) -> re.Pattern[str]:
    """Builds the pattern of a command that runs nothing and uses no other file."""
    # `inside` matches what brackets may hold; DELIMITER stands for the end of the regex.
    items = rf"(?:\[:[a-z]+:\]|\[(?![:.=])|\\[^\]\n]|{inside})*"
    regex = rf"(?:\\[^c]|\[\^?+\]?+{items}\]|(?!DELIMITER)[^\[\\\n])*DELIMITER"
    line = rf"(?:\d+(?:~\d+)?|\$|/{regex.replace('DELIMITER', '/')}[IM]*)"
    address = rf"(?:{line}(?:\s*,\s*(?:{line}|[+~]\d+))?\s*!?\s*)?"
    s_regex = regex.replace("DELIMITER", "(?P=s)")
    s = rf"s(?P<s>[^][\\\n;\s]){s_regex}(?:\\.|(?!(?P=s))[^\\\n])*(?P=s)[gpIiMm\d]*"
    y = r"y(?P<y>[^][\\\n;\s])" + (r"(?:\\.|(?!(?P=y))[^\[\\\n])*(?P=y)" * 2)
    return re.compile(
        rf"[\s;{{}}]*{address}(?:\{{|(?:{s}|{y}|[=dDgGhHnNpPxz]|[qQ]\d*|l\d*"
        r"|[:bt]\s*\w*|[aic](?:\\\n|[^\S\n]*)[^\\\n]*(?=\n|$))?\s*(?=[;}\n]|$))",
        re.DOTALL,
    )


# Implementations may disagree on whether a delimiter in brackets ends the regex. If there is
# one, the script must not contain letters that run a command or access a file.
_CERTAIN = _command(r"(?!DELIMITER)[^\]\[\\\n]")
_EITHER = _command(r"[^\]\[\\\n]")
_ACTS = re.compile(r"[eErRwW]")

_FLAGS = re.compile(
    r"-[nErsuz]+|-i.*|--(quiet|silent|regexp-extended|separate|unbuffered|null-data|in-place.*"
    r"|posix|debug|sandbox|line-length=\d+|help|version)"
)
_SCRIPT = re.compile(r"-[nErsuz]*e|--expression")


def inner_of_sed(words: Sequence[Word]) -> Iterator[Inner]:
    """Yields the positions where sed may run something."""
    scripts: list[int] = []
    operands: list[int] = []
    for at, word in enumerate(words[1:], start=1):
        before = words[at - 1].text or ""
        if word.text is None:
            yield Inner(at, unseen="the words of sed cannot be determined")
        elif at > 1 and _SCRIPT.fullmatch(before):
            scripts.append(at)
        elif not word.text.startswith("-") or word.text == "-":
            operands.append(at)
        elif word.text.startswith("--expression="):
            scripts.append(at)
        elif not (_FLAGS.fullmatch(word.text) or _SCRIPT.fullmatch(word.text)):
            yield Inner(at, unseen=f"what sed {word.text} runs cannot be determined")
    for at in scripts or operands[:1]:
        script = words[at].text
        if script is None or not _is_inert(script.removeprefix("--expression=")):
            yield Inner(at, unseen="sed may run what its script names")


def _is_inert(script: str) -> bool:
    return _consists_of(_CERTAIN, script) or (
        _ACTS.search(script) is None and _consists_of(_EITHER, script)
    )


def _consists_of(command: re.Pattern[str], script: str) -> bool:
    at = 0
    while at < len(script):
        found = command.match(script, at)
        if found is None or (found.end() == at and script[at] not in ";}\n"):
            return False
        at = max(found.end(), at + 1)
    return True
