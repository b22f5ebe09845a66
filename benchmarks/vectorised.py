"""Does LLVM still vectorise every instruction of the dense model's kernel? One slip costs a factor of ten in silence.

Compiles the kernel afresh and looks for packed arithmetic in the machine code of each instruction's loop. Ends with 1
and names the instructions that run one mapping at a time.
"""

import os
import re
import sys
import tempfile

SCALAR = {"_carried", "_carried_lane", "_further_lanes", "_lane_at", "_set_parameters"}
"""What is not vectorised on purpose: seldom run, or bound by memory."""

PACKED = re.compile(r"^\s*v\w+(?:p[sd]|dq\w*|d|q)\s.*%[yz]mm", re.MULTILINE)


def main() -> int:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        from tilewright import base

        # Instructions are compiled each for itself here, so that they can be told apart.
        base.part_options = lambda: {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        from tilewright.cost import DenseModel
        from tilewright.cost.dense import kernel
        from yardstick import benchmark_layer, benchmark_machine, random_mappings

        operator, accelerator = benchmark_layer(), benchmark_machine()
        DenseModel(operator, accelerator).score(random_mappings(operator, accelerator, 256))
        compiled = {name: function for name, function in vars(kernel).items() if hasattr(function, "inspect_asm")}
        found = {name: min(len(PACKED.findall(function.inspect_asm(one))) for one in function.signatures)
                 for name, function in compiled.items() if function.signatures}
    if not any(found.values()):
        print("No wide vector instructions at all: this processor has none (or none that this script knows).")
        return 0
    slips = sorted(name for name, packed in found.items() if not packed and name not in SCALAR)
    for name, packed in sorted(found.items(), key=lambda item: item[1]):
        print(f"{name:<20}{packed:>6} packed instructions{'   NOT VECTORISED' if name in slips else ''}")
    print(f"{len(found) - len(slips)} of {len(found)} functions as they should be.")
    return 1 if slips else 0


if __name__ == "__main__":
    sys.exit(main())
