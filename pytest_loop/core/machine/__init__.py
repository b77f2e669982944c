"""The state machine of a run: what must happen next, what an event changes, and why a run ends."""
