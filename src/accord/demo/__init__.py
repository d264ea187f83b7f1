"""The whole story by itself: a person, an agent, a gate, a crash, and the proof."""
