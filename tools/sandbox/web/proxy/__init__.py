"""An HTTP proxy that connects only to checked addresses."""
