"""Execute what each --loop-* flag asks for."""
