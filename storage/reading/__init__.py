"""Converts files and chats to text, and text to the chunks that are stored."""
