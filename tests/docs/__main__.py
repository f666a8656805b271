"""`python -m tests.docs`: write the generated parts of the pages anew, and what their commands print."""

import sys

from tests.docs.generated import outdated

for path, text in list(outdated()):
    path.write_text(text)
    sys.stdout.write(f"written: {path.name}\n")
