"""Shapes of functions in CPython 3.14, built for WebAssembly and run by Node."""
