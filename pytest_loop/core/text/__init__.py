"""Pure functions on text: sanitize, redact, shorten, compare."""
