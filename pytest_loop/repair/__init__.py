"""Repair without a model: small edits of the project's Python code, found by search and judged by its tests."""
