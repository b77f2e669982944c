"""Values that the whole package shares: rules, criteria, evaluations, session orders."""
