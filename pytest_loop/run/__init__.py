"""One run from its start to its end: the driver and the steps that it executes."""
