"""``python -m wengert`` is the command ``wengert``."""

import sys

from wengert.apps import main

if __name__ == "__main__":
    sys.exit(main())
