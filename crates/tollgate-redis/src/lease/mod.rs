//! Units taken ahead from Redis, so that most decisions need no round trip.
