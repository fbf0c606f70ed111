"""How row functions become loops on threads or on a CUDA grid; scan, sort and group; vectors."""
