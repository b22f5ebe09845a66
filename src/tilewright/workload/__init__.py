"""What is computed: operators, graphs, the zoo."""

from tilewright.workload.operator import ROLES, Axis, Operator, Role, Tensor

__all__ = ["ROLES", "Axis", "Operator", "Role", "Tensor"]
