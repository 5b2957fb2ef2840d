"""Sources of documents: a file beneath the root, or a text given directly."""

from __future__ import annotations

from functools import partial
from hashlib import sha256

import anyio.to_thread

from storage.models import NewContext
from storage.reading.parse import parse_isolated
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError

__all__ = ["read_source", "text_source"]

PARSE_SECONDS = 120.0


async def read_source(context: RequestContext, path: str, max_bytes: int) -> NewContext:
    """A file as a document, named by its path beneath the root.

    Raises:
        InvalidArgumentsError: If it is larger than `max_bytes`.
        StorageError: If it cannot be turned into text.
        ToolError: If the sandbox refuses the path.
    """
    content = await anyio.to_thread.run_sync(
        partial(context.sandbox.read, path, max_bytes=max_bytes)
    )
    if content.truncated:
        raise InvalidArgumentsError(
            f"{path!r} is too large: it has {content.size} bytes; a document may have {max_bytes}.",
            next_actions=("Split it into smaller files.",),
        )
    await context.report_progress(0, None, f"reading {path}")
    parsed = await parse_isolated(content.data, name=path, timeout=PARSE_SECONDS)
    relative = context.sandbox.relative(path)
    return NewContext(
        raw_type="file",
        raw_id=relative,
        title=parsed.title,
        text=parsed.text,
        markdown=parsed.markdown,
        media_type=parsed.media_type,
        sha256=sha256(content.data).hexdigest(),
        file_path=relative,
        event_time=content.mtime if parsed.event_time is None else parsed.event_time,
        keywords=parsed.keywords,
        entities=parsed.entities,
        metadata=parsed.metadata,
    )


async def text_source(text: str, title: str | None, max_bytes: int) -> NewContext:
    """A text as a document, named by its title, or by its digest where it has none.

    Raises:
        InvalidArgumentsError: If it is larger than `max_bytes`.
        StorageError: If there is nothing to read in it.
    """
    data = text.replace("\0", " ").encode(errors="replace")
    if len(data) > max_bytes:
        raise InvalidArgumentsError(
            f"text: has {len(data)} bytes; a document may have {max_bytes}.",
            next_actions=("Split it into smaller texts.",),
        )
    parsed = await parse_isolated(data, name=f"{title or 'text'}.md", timeout=PARSE_SECONDS)
    digest = sha256(data).hexdigest()
    return NewContext(
        raw_type="text",
        raw_id=title or digest[:16],
        title=parsed.title,
        text=parsed.text,
        markdown=parsed.markdown,
        media_type=parsed.media_type,
        sha256=digest,
        event_time=parsed.event_time,
        keywords=parsed.keywords,
        entities=parsed.entities,
        metadata=parsed.metadata,
    )
