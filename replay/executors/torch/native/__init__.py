"""The CPU path in C++: compiled at first use, where there is a compiler."""
