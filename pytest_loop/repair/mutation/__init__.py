"""Mutation of the code under test: would the tests notice a bug? It runs as a process of its own."""
