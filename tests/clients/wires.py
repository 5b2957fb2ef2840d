"""The four APIs that clients speak with a model: reads their requests, and writes replies."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MODEL = "scripted"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls, by Toolcrib's name for it."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request shows the model."""

    system: str  # the instructions
    tools: Mapping[str, Mapping[str, Any]]  # the definitions, by the names that the client gives
    texts: Sequence[str]  # what the user and the client wrote
    results: Sequence[str]  # of the tools that the model called, in order


Event = tuple[str, dict[str, Any]]


class Wire:
    """One API: `endings` are those of the paths that ask its model."""

    endings: tuple[str, ...] = ()

    def read(self, body: dict[str, Any]) -> Conversation:
        """Reads a request."""
        raise NotImplementedError

    def events(self, reply: str | Call, name: str, number: int) -> Iterator[Event]:
        """Yields the events of a streamed reply: a text, or a call of the tool named."""
        raise NotImplementedError

    def whole(self, text: str) -> dict[str, Any]:
        """Returns a text as a reply that is not streamed."""
        raise NotImplementedError


class Anthropic(Wire):
    """Messages (Claude Code)."""

    endings = ("/v1/messages",)

    def read(self, body: dict[str, Any]) -> Conversation:
        texts, results = [], []
        for message in body["messages"]:
            for block in _blocks(message["content"]):
                if block["type"] == "tool_result":
                    results.append(_joined(block.get("content", "")))
                elif block["type"] == "text" and message["role"] != "assistant":
                    texts.append(block["text"])
        tools = {tool["name"]: tool for tool in body.get("tools", [])}
        return Conversation(_joined(body.get("system", "")), tools, texts, results)

    def events(self, reply: str | Call, name: str, number: int) -> Iterator[Event]:
        start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL}
        usage = {"input_tokens": 1, "output_tokens": 1}
        yield "message_start", {"message": {**start, "content": [], "usage": usage}}
        if isinstance(reply, Call):
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": reply}
        yield "content_block_start", {"index": 0, "content_block": block}
        yield "content_block_delta", {"index": 0, "delta": delta}
        yield "content_block_stop", {"index": 0}
        reason = "tool_use" if isinstance(reply, Call) else "end_turn"
        yield "message_delta", {"delta": {"stop_reason": reason}, "usage": usage}
        yield "message_stop", {}

    def whole(self, text: str) -> dict[str, Any]:
        return {
            "id": "msg_0",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


class Responses(Wire):
    """OpenAI's responses (Codex)."""

    endings = ("/v1/responses",)

    def read(self, body: dict[str, Any]) -> Conversation:
        texts, results = [], []
        for item in body["input"]:
            if item["type"] == "message" and item["role"] != "assistant":
                texts.append(_joined(item["content"]))
            elif item["type"].endswith("_call_output"):
                results.append(_joined(item["output"]))
        tools = {}
        for tool in body.get("tools", []):
            for each in tool.get("tools", [tool]):  # of a namespace, or the tool itself
                space = tool["name"] if "tools" in tool else ""
                tools[f"{space}/{each.get('name', each['type'])}".lstrip("/")] = each
        return Conversation(body.get("instructions", ""), tools, texts, results)

    def events(self, reply: str | Call, name: str, number: int) -> Iterator[Event]:
        yield "response.created", {"response": {"id": f"resp_{number}"}}
        if isinstance(reply, Call):
            space, _, bare = name.rpartition("/")
            item: dict[str, Any] = {
                "type": "function_call",
                "call_id": f"call_{number}",
                "name": bare,
                "arguments": json.dumps(reply.arguments),
                **({"namespace": space} if space else {}),
            }
        else:
            content = [{"type": "output_text", "text": reply}]
            item = {"type": "message", "role": "assistant", "content": content}
        yield "response.output_item.done", {"item": {**item, "id": f"item_{number}"}}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield "response.completed", {"response": {"id": f"resp_{number}", "usage": usage}}

    def whole(self, text: str) -> dict[str, Any]:
        raise NotImplementedError(text)


class Gemini(Wire):
    """Generated content (Gemini CLI)."""

    endings = (":streamGenerateContent", ":generateContent")

    def read(self, body: dict[str, Any]) -> Conversation:
        texts, results = [], []
        for content in body["contents"]:
            for part in content["parts"]:
                if "functionResponse" in part:
                    results.append(json.dumps(part["functionResponse"]["response"]))
                elif "text" in part and content["role"] == "user":
                    texts.append(part["text"])
        declared = (tool.get("functionDeclarations", []) for tool in body.get("tools", []))
        tools = {each["name"]: each for group in declared for each in group}
        instructions = body.get("systemInstruction", {}).get("parts", [])
        system = "".join(part["text"] for part in instructions)
        return Conversation(system, tools, texts, results)

    def events(self, reply: str | Call, name: str, number: int) -> Iterator[Event]:
        del number
        part: dict[str, Any] = {"text": reply}
        if isinstance(reply, Call):
            part = {"functionCall": {"name": name, "args": reply.arguments}}
        yield "", _candidate(part)

    def whole(self, text: str) -> dict[str, Any]:
        return _candidate({"text": text})


class Completions(Wire):
    """OpenAI's chat completions (opencode, Copilot CLI)."""

    endings = ("/chat/completions",)

    def read(self, body: dict[str, Any]) -> Conversation:
        texts: dict[str, list[str]] = {"system": [], "user": [], "tool": [], "assistant": []}
        for message in body["messages"]:
            role = message["role"].replace("developer", "system")
            texts[role].append(_joined(message.get("content") or ""))
        tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools", [])}
        return Conversation("\n".join(texts["system"]), tools, texts["user"], texts["tool"])

    def events(self, reply: str | Call, name: str, number: int) -> Iterator[Event]:
        delta: dict[str, Any] = {"role": "assistant"}
        if isinstance(reply, Call):
            function = {"name": name, "arguments": json.dumps(reply.arguments)}
            call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            delta["tool_calls"] = [call]
        else:
            delta["content"] = reply
        reason = "tool_calls" if isinstance(reply, Call) else "stop"
        yield "", _chunk("chat.completion.chunk", {"delta": delta, "finish_reason": None})
        yield "", _chunk("chat.completion.chunk", {"delta": {}, "finish_reason": reason})

    def whole(self, text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return _chunk("chat.completion", {"message": message, "finish_reason": "stop"})


WIRES = (Anthropic(), Responses(), Gemini(), Completions())


def _candidate(part: Mapping[str, Any]) -> dict[str, Any]:
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage}


def _chunk(kind: str, choice: Mapping[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": 0, **choice}]
    start = {"id": "c", "object": kind, "created": 1, "model": MODEL}
    return {**start, "choices": choices, "usage": usage}


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _joined(content: str | list[dict[str, Any]]) -> str:
    return "\n".join(block.get("text", "") for block in _blocks(content))
