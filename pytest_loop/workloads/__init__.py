"""Prompts and pipelines, judged case by case."""
