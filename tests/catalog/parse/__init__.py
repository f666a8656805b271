"""Tests of the language: its table of fields, what is read, and what is refused."""
