"""Mappers that descend along a gradient: of a relaxed cost model, or of a network that has learnt it."""
