"""What no mapping can beat."""
