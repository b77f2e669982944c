"""Workloads: prompts and pipelines under tuning, their cases, and experiments on them."""
