"""What the readers and writers of foreign formats share: tables and JSON as they stand, times, lengths, names of columns.

Nothing here knows a format. The modules are imported one by one, so that naming this package loads nothing.
"""
