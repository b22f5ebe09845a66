"""Which mappings may be used: map spaces, and what can be done with them.

`space` is the value that all others see, of an operator, a machine, a tiling and constraints. What stands behind it:

- `rules`: what restricts steps and loop orders, and all that as arrays;
- `counting`: how many mappings there are, and all of them one after the other;
- `drawing`: uniform draws, and those that are spread over all scales;
- `repair`: mappings made to obey the rules;
- `kernels`: what all compiled code on single mappings shares;
- `files`, `schema`: spaces as files; `conflicts`: why one is empty.
"""
