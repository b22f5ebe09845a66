"""Values that people type as words."""


def value_of(text: str) -> str | int | float | bool:
    """Return the integer, number, true or false that a word looks like, else the word."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
