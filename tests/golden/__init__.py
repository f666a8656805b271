"""Golden cases: an object goes in, stamps come out. Every YAML file here is one case; `cases.py` says how it reads."""
