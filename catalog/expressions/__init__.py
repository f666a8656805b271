"""jq expressions, checked and evaluated: the only door to jq.

`problems` gives the static faults of an expression; `Program` evaluates many on a document. What could run away is
handed out as an `IsolatedRequest`, for a worker that can be stopped.
"""

from catalog.expressions.check import problems
from catalog.expressions.outcome import ExpressionError, Failure, IsolatedRequest, Outcome
from catalog.expressions.program import Program

__all__ = ["ExpressionError", "Failure", "IsolatedRequest", "Outcome", "Program", "problems"]
