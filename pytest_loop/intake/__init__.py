"""From a task in plain words to measurable criteria: what was asked, what the project says, and how clear it is."""
