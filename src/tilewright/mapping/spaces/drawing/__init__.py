"""Random mappings of a space: all alike, or spread over all scales."""
