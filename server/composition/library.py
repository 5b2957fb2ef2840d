"""Opens the stored data, and the model that summarizes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import Thread

from server.chat import ChatSampler
from server.composition.machine import endpoint_client
from server.settings import Settings
from storage.errors import StorageUnavailableError
from storage.index.embedders.making import find_embedder, make_embedder
from storage.keeping.kept_results import KeptResults
from storage.library import Library
from storage.outbound import opt_out, remove_telemetry_files
from tools.core.calling.call import ResultLimits
from tools.core.calling.fitting import Fitting
from tools.core.client import Sampler


def open_library(settings: Settings, environ: Mapping[str, str]) -> Library:
    """Opens the stored data; creates the directories if they are missing."""
    opt_out()
    settings.create_directories()
    client = partial(endpoint_client, settings, environ)
    embedder = settings.embedder.options
    library = Library(
        settings.data_dir,
        make_embedder(embedder, client=client),
        make=partial(find_embedder, embedder, client=client),
        chroma_url=settings.chroma.url,
        client=client,
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
        consolidate=settings.memory.consolidate,
        change_mb=settings.undo.keep_mb,
        change_days=settings.undo.keep_days,
    )
    remove_telemetry_files(library.database)
    library.store_waiting = partial(_store_waiting, library)
    return library


def _store_waiting(library: Library) -> None:
    """Stores the events of clients' hooks for which the record was busy."""
    from server.hooks.events import store_waiting  # imported late: only forgetting needs it

    try:
        store_waiting(library.directory, library.database)
    except OSError as error:
        raise StorageUnavailableError(
            f"{error.filename}: {error.strerror}. Events of sessions wait there to be stored.",
            suggestions=("Give yourself write permission on the data directory.",),
        ) from error


def make_sampler(settings: Settings, environ: Mapping[str, str]) -> Sampler | None:
    """Builds the model for clients that offer none; None if the settings name none."""
    named = settings.summaries
    if not named.url:
        return None
    return ChatSampler(
        named.url,
        named.model,
        api_key=named.api_key.get_secret_value(),
        timeout=named.timeout,
        client=partial(endpoint_client, settings, environ),
    )


def result_limits(settings: Settings) -> ResultLimits:
    """Returns the limits of results, except those of profiles."""
    return ResultLimits(settings.limits.result_tokens, settings.limits.tool_result_tokens)


def make_fitting(settings: Settings) -> Fitting:
    """Creates what fits results to the limits, and deletes expired results in the background."""
    kept = KeptResults(settings.data_dir / "results")
    Thread(target=kept.sweep, daemon=True).start()
    return Fitting(result_limits(settings), kept, settings.limits.image_pixels)
