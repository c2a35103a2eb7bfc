"""The two databases behind one contract."""
