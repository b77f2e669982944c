"""The templates that come with the package, and the functions that judge what no other check can."""
