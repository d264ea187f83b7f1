"""What people read: sentences, gate cards, conversations, Markdown and web pages."""
