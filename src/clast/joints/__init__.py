"""Bilateral constraints: joints, limits, motors, springs and what they carry."""
