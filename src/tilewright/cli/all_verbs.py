"""The command line with all of its verbs, whose modules load with this one."""

from tilewright.cli.verbs import VERBS, app_of

app = app_of(*VERBS)
