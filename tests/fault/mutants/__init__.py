"""Fixed bugs as patches that the tests must notice."""
