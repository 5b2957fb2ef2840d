"""Changes that agents made to files: what each replaced, and the last known state of each root."""
