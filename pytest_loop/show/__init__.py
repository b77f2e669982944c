"""Render results as text."""
