"""Generates JSON Schemas (2020-12), tidies them for clients, and reads them."""
