"""Optional libraries: which extra brings them, and what to do where one is missing."""

from importlib.util import find_spec

from tilewright.base.errors import InputError

EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    # Alone and first: other packages that ask for torch bring a build with CUDA.
    "learn": (("torch",), "pip install torch==2.13.0 && pip install 'tilewright[learn]'"),
    "huggingface": (("torch", "transformers"), "pip install torch==2.13.0 && pip install 'tilewright[huggingface]'"),
    "optimizers": (("nevergrad", "cma", "pymoo", "optuna", "sklearn", "threadpoolctl"),
                   "pip install 'tilewright[optimizers]'"),
    "cp-sat": (("ortools",), "pip install 'tilewright[cp-sat]'"),
    "rl": (("gymnasium", "stable_baselines3", "sb3_contrib"),
           "pip install torch==2.13.0 && pip install 'tilewright[rl]'"),
    "ray": (("ray",), "pip install 'tilewright[ray]'"),
    "recommend": (("polars", "xgboost"), "pip install 'tilewright[recommend]'"),
}
"""By extra: the modules that it brings, and the command that installs it."""


def has_extra(extra: str) -> bool:
    """Whether the libraries of ``extra`` are installed; none is loaded. The empty name stands for no extra."""
    return not extra or all(find_spec(module) is not None for module in EXTRAS[extra][0])


def require_extra(extra: str, field: str, given: str) -> None:
    """Raise `InputError` for ``field``, with the command that mends it, where ``extra`` is not installed."""
    if not has_extra(extra):
        raise InputError(field, f"needs the extra {extra!r}, which is not installed", given, EXTRAS[extra][1])
