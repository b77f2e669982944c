"""Helpers for subprocesses: commands with deadlines, marked processes, pipes and interrupts."""
