"""From a JSON document to a `Definition`, or to every problem that it has, each with its place.

Knows the language (`fields` is its reference), and neither files nor the objects that definitions describe.
"""

from catalog.parse.document import parse
from catalog.parse.fields import DEFINITION, KINDS
from catalog.parse.problem import DefinitionError, Problem

__all__ = ["DEFINITION", "KINDS", "DefinitionError", "Problem", "parse"]
