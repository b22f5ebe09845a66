"""How many mappings a space holds, and all of them one after the other."""
