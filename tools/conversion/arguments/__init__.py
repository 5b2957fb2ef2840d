"""Arguments: their schema, validation and validation errors."""
