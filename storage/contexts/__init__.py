"""Contexts (documents, knowledge, events): the repository, ingestion, filters and queues."""
