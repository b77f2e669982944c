"""Values for reports, made from the state and events of a run."""
