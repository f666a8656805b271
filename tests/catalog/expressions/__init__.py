"""Tests of the expression language: what may be used, where it is evaluated, what comes out."""
