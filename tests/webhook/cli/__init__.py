"""Tests of the command line's half that needs no cluster."""
