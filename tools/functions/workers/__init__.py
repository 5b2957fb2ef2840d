"""Runs functions and programs in processes, and defines their messages to the server."""
