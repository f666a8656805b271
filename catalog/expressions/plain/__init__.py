"""Evaluates expressions in Python, on the document itself: nothing is copied, parsed or changed.

Knows a part of the language, and gives what jq gives or says that it does not. The caller's meter bounds the work
whatever the document.
"""

from catalog.expressions.plain.compiler import MAX_STEPS, NotPlain, Plain, compile_plain, new_meter
from catalog.expressions.plain.values import Beyond, Exhausted, Fault, Meter

__all__ = ["MAX_STEPS", "Beyond", "Exhausted", "Fault", "Meter", "NotPlain", "Plain", "compile_plain", "new_meter"]
