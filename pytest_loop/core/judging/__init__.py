"""Pure functions that turn reports into verdicts, scores, critiques and findings."""
