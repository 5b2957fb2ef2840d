"""A call that waits for its turn is judged by the policy that holds when it runs."""

from contextlib import closing
from pathlib import Path

import anyio
import pytest

from server.mcp.approvals import StoredApprovals
from storage.approvals import ApprovalStore
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import Origin, RequestContext
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, tool
from tools.policy.policy import Policy
from tools.sandbox.files.sandbox import Sandbox


@pytest.mark.parametrize(
    ("rules", "said"),
    [({"deny": ("dig",)}, "permission_denied"), ({"ask": ("dig",)}, "approval_required")],
)
async def test_an_edit_binds_the_calls_that_wait_for_their_turn(
    rules: dict[str, tuple[str, ...]], said: str, tmp_path: Path
) -> None:
    policy, dug = Policy(), list[str]()
    begun, ended = anyio.Event(), anyio.Event()
    results: list[ToolResult] = []

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE})
    async def dig(bed: str) -> None:
        """Digs a bed."""
        dug.append(bed)
        begun.set()
        await ended.wait()

    async def call(bed: str) -> None:
        context = RequestContext(Origin(Identity("ann")))
        results.append(await manager.execute("dig", {"bed": bed}, context))

    with closing(Library(tmp_path / "data", MiniLMEmbedder())) as library:
        approvals = StoredApprovals(
            ApprovalStore(library.database),
            root=str(tmp_path),
            command="toolcrib approvals",
            wait=0,
            expire=60,
            grant=60,
        )
        registry = ToolRegistry()
        registry.add(FunctionToMCP.convert(dig))
        manager = SandboxToolManager(
            registry,
            sandbox=Sandbox(tmp_path),
            library=library,
            permissions=Permissions(lambda: policy, lambda: approvals),
        )
        async with anyio.create_task_group() as group:
            group.start_soon(call, "B1")
            await begun.wait()
            group.start_soon(call, "B2")
            await anyio.wait_all_tasks_blocked()
            policy = Policy(deny=rules.get("deny", ()), ask=rules.get("ask", ()))
            ended.set()
    assert dug == ["B1"]
    assert [each.is_error for each in results] == [False, True]
    assert results[1].text.startswith(said)
