"""The pages under docs/: what is generated in them is current, and what they tell people to do works."""
