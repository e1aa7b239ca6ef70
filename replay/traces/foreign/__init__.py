"""What readers and writers of foreign formats share: tables and JSON as they stand, times, lengths, names of columns.

Nothing here knows a format. The modules are imported one by one, so that naming this package loads nothing.

A table of a foreign file is a `Raw`: rows under the names of the file. A `Field` says how a canonical column comes of
one of those, and `Raw.source` makes the `Source` of them, which is all that `canonical` asks for. Of nested JSON each
object is an `Entry`, which is asked for its fields; rows that are made of entries become a `Source` by `streamed`.
"""
