"""What both methods share: the state of a running simulation, kicks and drift."""
