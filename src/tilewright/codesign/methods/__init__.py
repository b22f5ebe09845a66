"""Design methods, one module each (members of `DESIGNERS`), imported when one of them is first asked for."""

MODULES = tuple(f"{__name__}.{name}" for name in ("boxes", "digamma", "gradient", "grid", "two_loop"))
