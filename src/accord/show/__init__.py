"""How things are put for people: words, cards, conversations, pages."""
