//! How calls reach Redis: one server, one behind sentinels, or a cluster.
