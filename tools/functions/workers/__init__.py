"""The processes that functions and programs run in, and what they and the server say."""
