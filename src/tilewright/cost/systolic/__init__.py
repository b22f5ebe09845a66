"""Systolic arrays: cycles, accesses and traffic of matrix products."""
