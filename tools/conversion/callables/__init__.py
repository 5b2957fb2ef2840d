"""What a Python callable says of itself: signature, annotations and docstrings."""
