"""Steps, frames, runs that can be stopped and continued."""
