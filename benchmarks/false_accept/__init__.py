"""Measures what test gates let through: honest and dishonest work on small programs, judged by several gates."""
