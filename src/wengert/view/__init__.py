"""Pictures: as text, which needs nothing, and as plots, which need matplotlib."""
