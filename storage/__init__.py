"""The shelves: what is kept, and how it is found again."""
