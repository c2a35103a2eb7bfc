-- Nothing here: only SQLite, where every page that a put writes is waited for, has a table of arrivals. The number is
-- taken so that both databases count their steps alike.

SELECT 1;
