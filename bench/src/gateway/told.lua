-- What wrk saw, in one line: requests, microseconds, three percentiles of the latency, errors. No function of the requests
-- themselves is here, so it costs none of them anything.
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format("told %d %d %d %d %d %d\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), latency:percentile(99.9),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
