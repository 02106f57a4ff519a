"""LME-V2: a memory over web-agent trajectories, and questions about the environments that they explored.

The core (`trajectory`, `dataset`, `memory`, `reader`) imports numpy at most; everything heavier loads when it is used.
"""
