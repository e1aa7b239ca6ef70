"""Papers run again: recipes, each a file of data that names a workload, arms to compare and the order that is claimed.

A recipe becomes ordinary traces, experiments and runs, which anybody can copy; nothing here schedules or measures.
"""
