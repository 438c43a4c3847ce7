"""Fetch the real models that tests and docs read; `make models` runs this.

python scripts/models.py [minilm] [smollm2] [e5-small]
"""

import sys

from headcount.models.find import main

sys.exit(main(sys.argv[1:]))
