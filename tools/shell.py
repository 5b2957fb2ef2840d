"""Programs: runs shell commands, in the foreground or background, and Python code."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tools.answers.params import Passable, Whole
from tools.core.context import RequestContext
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.core.unicode_safety import visible_controls
from tools.policy.shell.repositories import repository_work
from tools.sandbox.processes.jobs import Job
from tools.sandbox.processes.models import Command, Level
from tools.sandbox.processes.output import MOST_SECONDS, State, Transcript

OUTPUT_BYTES = 20_000  # limit on a job's output in one result

SURELY_SECONDS = 600
"""Timeouts above this may be in milliseconds; no caller gives a command less than 600 ms."""

SHELL_PATH = "/bin:/usr/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"


Text = Annotated[str, Field(max_length=30_000), Passable]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
JobId = Annotated[
    str,
    Field(min_length=1, max_length=64, description="As bash answered it"),
    Alias("bash_id", "shell_id"),
]


def _line(given: object) -> object:
    """Joins a command given as a list of words."""
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        return shlex.join(given)
    return given


def _seconds(given: Mapping[str, Any]) -> float:
    """Converts a `timeout`, which some clients give in milliseconds and others in seconds."""
    timeout = float(given["timeout"])
    if SURELY_SECONDS < timeout <= MOST_SECONDS:
        raise ValueError
    return timeout if timeout <= SURELY_SECONDS else timeout / 1000


class ShellTranscript(Transcript):
    """The output and the outcome of a command.

    Attributes:
        job_id: Its ID if it runs in the background; else absent.
    """

    job_id: OmitNone[str] = None

    def to_text(self) -> str:
        """Formats the transcript, or how to follow a command in the background."""
        if self.job_id is None:
            return super().to_text()
        lines = [f"[running as job {self.job_id}; sandbox: {self.sandbox}]"]
        lines += [f"[{note}]" for note in self.notes]
        lines.append(f'[bash_output or bash_kill with job_id "{self.job_id}" for what comes of it]')
        return "\n".join(lines)


class JobOutput(ToolModel):
    """Output of a job.

    Attributes:
        job_id: The job.
        output: A part of its output and errors, interleaved.
        first: Bytes of output before this part.
        next: Bytes of output up to here: pass it as `since` for the next part.
        more: Whether there is already more.
        lost: Bytes before this part that were discarded.
        state: Whether it is running, has exited, or was killed after a day.
        exit_code: As a shell reports it; absent while it runs.
        sandbox: The sandbox level.
        notes: Further notes.
    """

    job_id: str
    output: str
    first: int
    next: int
    more: bool
    lost: int
    state: State
    exit_code: OmitNone[int]
    sandbox: Level
    notes: list[str]

    def to_text(self) -> str:
        """Formats a line with its state, then the output."""
        code = "" if self.exit_code is None else f" with exit code {self.exit_code}"
        more = "; there is more" if self.more else ""
        place = f"bytes {self.first} to {self.next}{more}"
        lines = [f"[{self.state}{code}; {place}; sandbox: {self.sandbox}]"]
        if self.lost:
            lines.append(f"[{self.lost} bytes before are no longer kept]")
        lines += [f"[{note}]" for note in self.notes]
        return "\n".join([*lines, visible_controls(self.output).removesuffix("\n")]).rstrip("\n")


class JobEnded(ToolModel):
    """A finished job.

    Attributes:
        job_id: The job.
        was_running: Whether this call ended it.
        state: How it ended.
        exit_code: As a shell reports it.
    """

    job_id: str
    was_running: bool
    state: State
    exit_code: OmitNone[int]

    def to_text(self) -> str:
        """Formats it as one line."""
        done = "Ended" if self.was_running else "It had ended before:"
        return f"{done} job {self.job_id} ({self.state}, exit code {self.exit_code})"


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.EXECUTE},
    destructive=True,
    tags=("system",),
    capabilities=("run a shell command", "run a program, a build or tests", "use git"),
    aliases=("execute_shell_command",),
    aliases_elsewhere=("shell", "shell_command", "run_shell_command"),
    ignored=("description",),
    timeout=MOST_SECONDS + 60,
    subject=Subject(SubjectKind.COMMAND, "command"),
)
async def bash(
    context: RequestContext,
    command: Annotated[
        Text, Field(min_length=1, description="For bash -c"), BeforeValidator(_line)
    ],
    cwd: Annotated[
        Text,
        Field(description="Directory inside the root"),
        Alias("workdir", "directory", "dir_path"),
    ] = ".",
    timeout_seconds: Annotated[
        float,
        Field(gt=0, le=MOST_SECONDS, description="It is ended then"),
        Alias("timeout", read=_seconds),
        Alias("timeout_ms", read=lambda given: float(given["timeout_ms"]) / 1000),
    ] = 120,
    env: Annotated[
        dict[Variable, Text] | None, Field(max_length=100, description="More variables")
    ] = None,
    run_in_background: Annotated[
        bool, Field(description="Answers at once with a job_id"), Alias("is_background")
    ] = False,
) -> ShellTranscript:
    """Runs a shell command inside the root, confined, without input or a terminal."""
    shell = shutil.which("bash", path=SHELL_PATH)
    options = ("--noprofile", "--norc") if shell else ()
    processes = context.machine.processes
    secrets = processes.secrets
    started = Command(  # its environment may affect what the line runs
        argv=(shell or "/bin/sh", *options, "-c", command),
        cwd=cwd,
        environment=env or {},
        watch=context.watch(in_background=run_in_background),
        session=_session(context),
        accepted=context.grant.accepted,
        repositories=None if env or run_in_background else repository_work(command),
        secrets=secrets.of_line(command) if secrets.for_programs and not env else (),
    )
    notes = [] if shell else ["There is no bash here; /bin/sh ran it."]
    if run_in_background:
        job = await context.machine.jobs.start(context.identity.user_id, started)
        return ShellTranscript(
            stdout="",
            stderr="",
            exit_code=None,
            state="running",
            sandbox=job.level,
            truncated=False,
            notes=[*notes, *job.notes],
            job_id=job.id,
        )
    transcript = await processes.run(
        started, seconds=timeout_seconds, report=context.report_progress
    )
    return ShellTranscript(**{**dict(transcript), "notes": [*notes, *transcript.notes]})


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.READ},
    tags=("system",),
    capabilities=("read the output of a command in the background",),
)
async def bash_output(
    context: RequestContext,
    job_id: JobId,
    since: Annotated[
        int | None,
        Field(
            ge=-(2**53),
            le=2**53,
            description="Bytes before it, -N for the last N; default: what was not yet returned",
        ),
    ] = None,
) -> JobOutput:
    """Returns what a command in the background wrote, and whether it is still running."""
    job = context.machine.jobs.find(context.identity.user_id, job_id)
    is_running = job.is_running
    part = job.output.part(
        job.returned if since is None else since, OUTPUT_BYTES, is_complete=not is_running
    )
    job.returned = part.next
    return JobOutput(
        job_id=job.id,
        output=part.text,
        first=part.first,
        next=part.next,
        more=part.next < job.output.size and bool(part.text),
        lost=part.lost,
        state=_state(job),
        exit_code=job.exit_code,
        sandbox=job.level,
        notes=list(job.notes),
    )


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE},
    destructive=True,
    idempotent=True,
    tags=("system",),
    capabilities=("end a command in the background",),
    aliases_elsewhere=("kill_bash", "kill_shell"),
)
async def bash_kill(context: RequestContext, job_id: JobId) -> JobEnded:
    """Ends a command in the background, with all its child processes."""
    job = context.machine.jobs.find(context.identity.user_id, job_id)
    was_running = job.is_running
    await job.kill()
    return JobEnded(
        job_id=job.id, was_running=was_running, state=_state(job), exit_code=job.exit_code
    )


def _session(context: RequestContext) -> tuple[str, str]:
    return context.identity.user_id, context.session_id


def _state(job: Job) -> State:
    if job.is_running:
        return "running"
    return "timed_out" if job.timed_out else "exited"


BOOT = """
def run():
    import ast, builtins, linecache, sys
    source = sys.stdin.buffer.read().decode()
    sys.argv[:] = ["<code>"]
    linecache.cache["<code>"] = len(source), None, source.splitlines(True), "<code>"
    scope = vars(sys.modules["__main__"])
    del scope["run"]
    try:
        tree = ast.parse(source, "<code>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<code>", "exec", dont_inherit=True), scope)
        if last is not None:
            value = compile(ast.Expression(last.value), "<code>", "eval", dont_inherit=True)
            sys.displayhook(eval(value, scope))
    except Exception as error:
        import traceback
        inner = error.__traceback__.tb_next
        while inner and inner.tb_frame.f_code.co_filename != "<code>":
            inner = inner.tb_next
        traceback.print_exception(type(error), error, inner)
        sys.exit(1)
run()
"""
"""The interpreter's program: reads the code from standard input, leaving that empty, and prints the
value of a last expression as the interactive prompt does."""


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.EXECUTE},
    destructive=True,
    tags=("system",),
    capabilities=("run Python code", "calculate", "analyse or transform data with Python"),
    timeout=MOST_SECONDS + 60,
)
async def execute_python_code(
    context: RequestContext,
    code: Annotated[
        str,
        Field(min_length=1, max_length=1_000_000, description="A last expression is shown"),
        Whole,
    ],
    timeout_seconds: Annotated[
        float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")
    ] = 60,
) -> Transcript:
    """Runs Python code in a new process inside the root, confined; no state is kept."""
    return await context.machine.processes.run(
        Command(
            argv=(sys.executable, "-I", "-u", "-X", "utf8", "-c", BOOT),
            stdin=code.encode(),
            watch=context.watch(),
            session=_session(context),
            accepted=context.grant.accepted,
        ),
        seconds=timeout_seconds,
        report=context.report_progress,
    )
