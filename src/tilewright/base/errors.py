"""Errors that a person can act on: which field, which rule, what was given, how to mend it."""


class InputError(ValueError):
    """Something that the user gave is wrong.

    The command line prints the message alone and exits with code 2; Python users catch it as a ``ValueError``.

    Parameters
    ----------
    field
        Path of the offending value, for example ``arch.levels[1].capacity_bytes`` (with ``file:line`` where known).
    rule
        What must hold.
    given
        What was found instead.
    mend
        The smallest change that would make it right.
    """

    def __init__(self, field: str, rule: str, given: object = None, mend: str = "") -> None:
        self.field = field
        self.rule = rule
        self.given = given
        self.mend = mend
        parts = [f"{field}: {rule}"]
        if given is not None:
            parts.append(f"Got {given!r}" if isinstance(given, str) else f"Got {given}")
        if mend:
            parts.append(mend)
        super().__init__("; ".join(parts) + ("" if parts[-1].endswith((".", "?", "!")) else "."))

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, object, str]]:
        return type(self), (self.field, self.rule, self.given, self.mend)
