"""The tests mirror the packages; they may see everything and are seen by nobody."""
