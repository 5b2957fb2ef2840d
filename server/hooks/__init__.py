"""Memory without the model's help: clients run `toolcrib hook` at the events of a session."""
