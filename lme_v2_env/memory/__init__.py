"""A memory over trajectories: entries, an index over them, a store on disk, and the API that the benchmark calls."""
