"""The program of arrays: its steps, its reverse, its expressions."""
