"""What the pipeline of lag has to hold: each module with ``measure() -> list[Bar]`` is a part of ``bench-pipeline``."""
