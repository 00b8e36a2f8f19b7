//! Envoy's rate limit service.

mod protos;
