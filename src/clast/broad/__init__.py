"""Who is near whom: broad phases, and the neighbour list that a simulation keeps."""
