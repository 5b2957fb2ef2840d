"""Reading: files and chats become text, and text becomes the pieces that are stored."""
