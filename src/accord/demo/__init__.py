"""A scripted demonstration: a person, an agent, a gate, a crash, and the proof in git."""
