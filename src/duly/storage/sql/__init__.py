"""Stores over named statements, shared by both databases: rows to domain objects and back, and the lane law."""
