"""Coding agents as memory: plain files, a sandbox, an agent that runs commands in it, and a checked output file."""
