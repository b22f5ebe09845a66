"""Which mappings may be used: map spaces, and what can be done with them.

`space` is the value that all others see, of an operator, a machine, a tiling and `constraints`. What stands behind it:

- as arrays and compiled operators: `arrays`, `kernels`, `sampling`, `enumeration`, `signature`, `projection`, `rules`;
- counted: `chains` of one dimension, `lanes`, `orders`, `size`;
- drawn from uniformly: `uniform`, `walks`;
- as files and presets: `files`, `schema`, `presets`; and why one is empty: `conflicts`.
"""
