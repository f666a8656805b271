"""Tests of the catalogue: definitions, expressions, resources, and what they say about objects and pods."""
