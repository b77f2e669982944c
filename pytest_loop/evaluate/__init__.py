"""From reports to verdicts."""
