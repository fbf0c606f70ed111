"""Hard contacts: from contact points to impulses to motion."""
