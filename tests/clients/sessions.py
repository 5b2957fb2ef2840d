"""Sessions of clients, driven over stdio as editors do: prompts, questions, and interrupts."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Queue
from threading import Lock, Thread, Timer
from typing import Any

from tests.clients.programs import SECONDS, Home, end_group
from tests.clients.scripted_model import ScriptedModel

Message = dict[str, Any]


class Session:
    """One session; `action` is how its user answers questions: accept or decline."""

    words: Sequence[str] = ()

    def __init__(self, process: subprocess.Popen[str], home: Home, action: str) -> None:
        self.home = home
        self.questions: list[Message] = []
        self._process = process
        self._action = action
        self._count = 0
        self._sending = Lock()
        self._replies: Queue[Message] = Queue()
        self._turns: Queue[Message] = Queue()

    def open(self) -> None:
        """Begins the session."""
        raise NotImplementedError

    def prompt(self, text: str) -> None:
        """Sends a prompt without waiting for its answer."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Interrupts the turn."""
        raise NotImplementedError

    def receive(self, message: Message) -> None:
        """Handles a message of the client."""
        raise NotImplementedError

    def end_of_turn(self) -> Message:
        return self._turns.get(timeout=SECONDS)

    def pump(self) -> None:
        """Handles messages until the client ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self.receive(json.loads(line))

    def send(self, message: Message) -> None:
        assert self._process.stdin is not None
        with self._sending:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def answer(self, question: Message, schema: Mapping[str, Any]) -> Message:
        """Returns the user's answer: the first choice of each field, if it is accepted."""
        self.questions.append(question)
        if self._action != "accept":
            return {"action": self._action}
        content = {}
        for name, field in schema["properties"].items():
            choices = field.get("enum") or [each["const"] for each in field["oneOf"]]
            content[name] = choices[0]
        return {"action": "accept", "content": content}


class ClaudeSession(Session):
    """Claude Code's stream of JSON, which its SDK speaks."""

    words = (
        *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--allowedTools", "mcp__toolcrib"),
    )

    def open(self) -> None:
        self._request({"subtype": "initialize"})

    def prompt(self, text: str) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": text}})

    def cancel(self) -> None:
        self._request({"subtype": "interrupt"})

    def receive(self, message: Message) -> None:
        if message["type"] == "result":
            self._turns.put(message)
        elif message["type"] == "control_response":
            self._replies.put(message)
        elif message["type"] == "control_request":
            asked = message["request"]
            answer = self.answer(asked, asked.get("requested_schema", {"properties": {}}))
            response = {"subtype": "success", "request_id": message["request_id"]}
            self.send({"type": "control_response", "response": {**response, "response": answer}})

    def _request(self, request: Message) -> None:
        self._count += 1
        self.send({"type": "control_request", "request_id": str(self._count), "request": request})
        self._replies.get(timeout=SECONDS)


class RpcSession(Session):
    """A client that speaks JSON-RPC."""

    def request(self, method: str, params: Message) -> Message:
        self.post(method, params)
        reply = self._replies.get(timeout=SECONDS)
        assert "result" in reply, reply
        result: Message = reply["result"]
        return result

    def post(self, method: str, params: Message) -> None:
        self._count += 1
        self.send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})

    def notify(self, method: str, params: Message) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})


class CodexSession(RpcSession):
    """Codex's app server, which its editor extensions speak with."""

    words = ("app-server",)

    def open(self) -> None:
        client = {"name": "tests", "title": "Tests", "version": "1"}
        self.request("initialize", {"clientInfo": client})
        self.notify("initialized", {})
        place = {"cwd": str(self.home.project), "approvalPolicy": "on-request"}
        self.thread = self.request("thread/start", place)["thread"]["id"]

    def prompt(self, text: str) -> None:
        given = [{"type": "text", "text": text}]
        begun = self.request("turn/start", {"threadId": self.thread, "input": given})
        self.turn = begun["turn"]["id"]

    def cancel(self) -> None:
        self.request("turn/interrupt", {"threadId": self.thread, "turnId": self.turn})

    def receive(self, message: Message) -> None:
        if message.get("method") == "mcpServer/elicitation/request":
            asked = message["params"]
            self.send({"id": message["id"], "result": self.answer(asked, asked["requestedSchema"])})
        elif message.get("method") == "turn/completed":
            self._turns.put(message)
        elif "method" not in message:
            self._replies.put(message)


class AcpSession(RpcSession):
    """The Agent Client Protocol, which Zed and others speak."""

    def open(self) -> None:
        self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        place = {"cwd": str(self.home.project), "mcpServers": []}
        self.session = self.request("session/new", place)["sessionId"]

    def prompt(self, text: str) -> None:
        given = [{"type": "text", "text": text}]
        self.post("session/prompt", {"sessionId": self.session, "prompt": given})

    def cancel(self) -> None:
        self.notify("session/cancel", {"sessionId": self.session})

    def receive(self, message: Message) -> None:
        if message.get("method") == "session/request_permission":
            chosen = message["params"]["options"][0]["optionId"]
            outcome = {"outcome": {"outcome": "selected", "optionId": chosen}}
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": outcome})
        elif "stopReason" in message.get("result", {}):
            self._turns.put(message)
        elif "method" not in message:
            self._replies.put(message)


class GeminiSession(AcpSession):
    words = ("--acp", "--skip-trust", "--approval-mode", "yolo")


class OpencodeSession(AcpSession):
    words = ("acp",)


class CopilotSession(AcpSession):
    words = ("--acp", "--allow-all-tools", "--no-auto-update")


SESSIONS: Mapping[str, type[Session]] = {
    "claude-code": ClaudeSession,
    "codex": CodexSession,
    "gemini": GeminiSession,
    "opencode": OpencodeSession,
    "copilot": CopilotSession,
}


@contextmanager
def session(home: Home, model: ScriptedModel, action: str = "accept") -> Iterator[Session]:
    """Starts a client and begins a session; what it started is killed at the end."""
    kind = SESSIONS[home.program.name]
    with subprocess.Popen(
        home.command(model, *kind.words),
        cwd=home.project,
        env=home.environment(model),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        deadline = Timer(2 * SECONDS, end_group, [process.pid])
        deadline.start()
        opened = kind(process, home, action)
        pumping = Thread(target=opened.pump, daemon=True)
        pumping.start()
        try:
            opened.open()
            yield opened
        finally:
            deadline.cancel()
            end_group(process.pid)
            pumping.join()
