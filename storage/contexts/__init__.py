"""Contexts (documents, knowledge, events): the repository, intake, filters and queues."""
