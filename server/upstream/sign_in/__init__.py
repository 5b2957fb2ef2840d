"""Signs in to other servers (OAuth 2.1), and keeps and refreshes their tokens."""
