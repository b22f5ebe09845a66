"""The dense model: every word of a static schedule, by closed forms and by a compiled engine."""
