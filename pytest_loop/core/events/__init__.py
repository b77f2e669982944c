"""The events of runs and experiments: one typed payload per kind."""
