"""Two parsers of command lines, whose results must agree: our own grammar, and tree-sitter."""
