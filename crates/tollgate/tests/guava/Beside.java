package com.google.common.util.concurrent;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;

/**
 * Plays schedules to the real limiter, on a clock that moves when told to. It lives in this package because that is where
 * the factories that take a clock can be reached.
 *
 * <p>Reads one command a line; numbers that may have a fraction come as the bits of a double, in hexadecimal:
 *
 * <pre>
 * bursty RATE BURST_SECONDS            a new limiter, and a new clock
 * warming RATE WARMUP_MICROS COLD      the same, of the other kind
 * advance NANOS
 * acquire PERMITS                      answers the microseconds slept
 * try PERMITS TIMEOUT_NANOS            answers the microseconds slept, or no
 * set RATE
 * get                                  answers the bits of the rate
 * </pre>
 */
final class Beside {
  /** Time that passes by command, or by sleeping. */
  private static final class Clock extends RateLimiter.SleepingStopwatch {
    long nanos;
    long slept;

    @Override
    protected long readMicros() {
      return nanos / 1000;
    }

    @Override
    protected void sleepMicrosUninterruptibly(long micros) {
      nanos += micros * 1000;
      slept += micros;
    }
  }

  private Clock clock;
  private RateLimiter limiter;

  public static void main(String[] args) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    PrintStream out = new PrintStream(System.out, false);
    Beside beside = new Beside();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer = beside.obey(line.split(" "));
      if (answer != null) {
        out.println(answer);
      }
    }
    out.flush();
  }

  private String obey(String[] words) {
    switch (words[0]) {
      case "bursty":
        clock = new Clock();
        limiter = new SmoothRateLimiter.SmoothBursty(clock, fraction(words[2]));
        limiter.setRate(fraction(words[1]));
        return null;
      case "warming":
        clock = new Clock();
        limiter =
            RateLimiter.create(
                fraction(words[1]), whole(words[2]), TimeUnit.MICROSECONDS, fraction(words[3]), clock);
        return null;
      case "advance":
        clock.nanos += whole(words[1]);
        return null;
      case "acquire":
        clock.slept = 0;
        limiter.acquire((int) whole(words[1]));
        return Long.toString(clock.slept);
      case "try":
        clock.slept = 0;
        boolean passed = limiter.tryAcquire((int) whole(words[1]), whole(words[2]), TimeUnit.NANOSECONDS);
        return passed ? Long.toString(clock.slept) : "no";
      case "set":
        limiter.setRate(fraction(words[1]));
        return null;
      case "get":
        return Long.toHexString(Double.doubleToRawLongBits(limiter.getRate()));
      default:
        throw new IllegalArgumentException(String.join(" ", words));
    }
  }

  private static double fraction(String bits) {
    return Double.longBitsToDouble(Long.parseUnsignedLong(bits, 16));
  }

  private static long whole(String number) {
    return Long.parseLong(number);
  }
}
