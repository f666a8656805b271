"""jq expressions, checked and evaluated: the only door to jq."""

from catalog.expressions.program import ExpressionError, Failure, IsolatedRequest, Outcome, Program, problems

__all__ = ["ExpressionError", "Failure", "IsolatedRequest", "Outcome", "Program", "problems"]
