"""`toolcrib doctor`: checks of the installation, the data, the confinement and other servers."""
