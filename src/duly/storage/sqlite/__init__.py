"""SQLite through apsw: one writer per process, group commit, several processes by file lock."""
