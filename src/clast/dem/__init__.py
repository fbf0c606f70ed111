"""Smooth contacts: from contact points to forces to motion."""
