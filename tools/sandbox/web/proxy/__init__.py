"""An HTTP proxy that connects to judged addresses only."""
