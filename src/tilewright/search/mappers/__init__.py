"""The mappers: one module each, registered when imported, and imported when one of them is first asked for."""

MODULES = tuple(f"{__name__}.{name}" for name in (
    "auto", "bayes", "evolution", "exact", "exhaustive", "gamma", "genetic", "neighbours", "random",
    "learned.gradient", "learned.mind_mappings"))
