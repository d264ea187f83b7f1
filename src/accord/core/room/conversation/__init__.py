"""Prompts, streamed responses, thinking, interrupts."""
