"""Runs calls of a server's own tools without policy, grants or recording."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tools.core.audit.redact import SecretArguments
from tools.core.calling.call import check_depth, in_time
from tools.core.context import Grant, RequestContext
from tools.core.errors import as_tool_error
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec


class DirectCalls:
    """Executes calls: validates each, runs it until its deadline, and always returns a result."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def execute(
        self, name: str, arguments: Mapping[str, Any], context: RequestContext
    ) -> ToolResult:
        """Runs one call; every failure becomes a result, and only cancellation propagates."""
        try:
            check_depth(name, context)
            spec = self._registry.find(name)
            given = spec.canonical(arguments)
            run = partial(self._run, spec, spec.validate(given))
            if context.link.carrier is None or not spec.resumable:
                return await run(context)
            return await context.link.carrier.carry(context, spec.name, given, run)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the caller gets any failure of a tool as a result
            find = self._registry.get
            secrets = SecretArguments(find(name), arguments, find)
            return secrets.mask_failure(
                ToolResult.failure(as_tool_error(error, name, secrets.text))
            )

    async def _run(
        self, spec: ToolSpec, arguments: dict[str, Any], context: RequestContext
    ) -> ToolResult:
        async def invoke(running: RequestContext) -> ToolResult:
            return await spec.invoke(arguments, running.granted(Grant(call=self._nested)))

        return await in_time(spec.name, spec.timeout, context, invoke)

    async def _nested(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any]
    ) -> ToolResult:
        return await self.execute(name, arguments, context)
