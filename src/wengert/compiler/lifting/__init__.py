"""From a recorded graph of scalars to a program of arrays."""
