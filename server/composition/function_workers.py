"""What workers of function files are given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from server.composition.safety import protected, read_only
from server.settings import Settings
from storage.outbound import OPT_OUT
from tools.sandbox.files.openat import HeldRoot

if TYPE_CHECKING:
    from tools.functions.file import WorkerOptions
    from tools.functions.workers.store import StoreOptions


def make_worker_options(
    settings: Settings, environ: Mapping[str, str], held: HeldRoot | None = None
) -> WorkerOptions:
    """Makes it, when the first worker is started.

    Args:
        settings: What can be set.
        environ: The environment, of which workers see all but what are settings.
        held: Keeps the root the directory that it was; None takes what is there now.
    """
    from tools.functions.environment import Environments
    from tools.functions.file import WorkerOptions

    settings.create_directories()
    may_store = [path.resolve() for path in settings.functions.context]
    seen = {name: value for name, value in environ.items() if not name.startswith("TOOLCRIB")}
    seen |= OPT_OUT
    return WorkerOptions(
        environments=Environments(settings.data_dir / "environments", environ=seen),
        variables=seen,
        held=held or HeldRoot(str(settings.root)),
        protected=protected(settings),
        read_only=read_only(settings),
        memory_bytes=settings.functions.memory_mb * 1_000_000,
        starts=anyio.CapacityLimiter(os.cpu_count() or 1),
        stores=dict.fromkeys(may_store, _store_options(settings)) if may_store else {},
    )


def _store_options(settings: Settings) -> StoreOptions:
    from tools.functions.workers.store import StoreOptions

    return StoreOptions(
        directory=settings.data_dir,
        embedder=settings.embedder.options,
        chroma_url=settings.chroma.url,
        private=settings.requests.private,
        proxy=settings.requests.proxy,
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
    )
