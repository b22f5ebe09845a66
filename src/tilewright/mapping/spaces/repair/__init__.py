"""Mappings made to obey the rules of a space."""
