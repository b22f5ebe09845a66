"""What restricts the mappings of a space: constraints, tilings, and both as arrays."""
