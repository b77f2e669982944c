"""Mutate the code under test in a separate process, to find out whether the tests notice bugs."""
