package ledger;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/**
 * What became of each call: one line of JSON per call in a file, and the figures of the whole run.
 *
 * <p>Invariant: a line is in the file as soon as the outcome of its call is known.
 */
final class CallRecord implements AutoCloseable {
  /** Whether a failed call was executed, as far as the ORB knows. */
  enum Completed { NO, MAYBE, YES }

  /** An answered call, be it with a user exception, has an exception or an empty string. */
  record Outcome(boolean answered, String exception, Completed completed, int minor) {}

  private final BufferedWriter file;
  private long acknowledged;
  private long maybe;
  private long refused;
  private long lastAnswerUs = nowUs();
  private long longestGapUs; // between answers, over all threads
  private long[] latencyUs = new long[1024]; // of answered calls, `acknowledged` of them

  /** With an empty path only the figures are kept. */
  CallRecord(String path) throws IOException {
    file = path.isEmpty() ? null : Files.newBufferedWriter(Path.of(path));
  }

  /** Microseconds of a clock that only goes forward; its zero means nothing. */
  static long nowUs() {
    return System.nanoTime() / 1000;
  }

  /** The reference and the operation must need no JSON escapes. */
  synchronized void add(
      String reference, String operation, long startUs, long endUs, Outcome outcome)
      throws IOException {
    if (outcome.answered) {
      answered(endUs - startUs, endUs);
    } else if (outcome.completed == Completed.NO) {
      refused++;
    } else {
      maybe++;
    }
    if (file == null) {
      return;
    }
    StringBuilder line = new StringBuilder();
    line.append("{\"reference\":\"").append(reference);
    line.append("\",\"operation\":\"").append(operation);
    line.append("\",\"start_us\":").append(startUs).append(",\"end_us\":").append(endUs);
    line.append(",\"outcome\":\"").append(outcome.answered ? "ok" : "exception").append('"');
    if (!outcome.exception.isEmpty()) {
      line.append(",\"exception\":\"").append(outcome.exception).append('"');
    }
    if (!outcome.answered) {
      line.append(",\"completed\":\"").append(outcome.completed).append("\",\"minor\":");
      line.append(Integer.toUnsignedString(outcome.minor));
    }
    file.write(line.append("}\n").toString());
    file.flush();
  }

  private void answered(long latency, long endUs) {
    if (acknowledged == latencyUs.length) {
      latencyUs = Arrays.copyOf(latencyUs, latencyUs.length * 2);
    }
    latencyUs[(int) acknowledged] = latency;
    acknowledged++;
    longestGapUs = Math.max(longestGapUs, endUs - lastAnswerUs);
    lastAnswerUs = Math.max(lastAnswerUs, endUs);
  }

  /** One JSON object. */
  synchronized String figures() {
    longestGapUs = Math.max(longestGapUs, nowUs() - lastAnswerUs);
    long[] sorted = Arrays.copyOf(latencyUs, (int) acknowledged);
    Arrays.sort(sorted);
    return String.format(
        Locale.ROOT,
        "{\"requests\":%d,\"acknowledged\":%d,\"maybe\":%d,\"refused\":%d,"
            + "\"longest_gap_ms\":%.1f,\"p50_us\":%d,\"p99_us\":%d}",
        acknowledged + maybe + refused, acknowledged, maybe, refused, longestGapUs / 1000.0,
        percentile(sorted, 50), percentile(sorted, 99));
  }

  private static long percentile(long[] sorted, long percent) {
    return sorted.length == 0 ? 0 : sorted[(int) ((sorted.length - 1) * percent / 100)];
  }

  @Override
  public synchronized void close() throws IOException {
    if (file != null) {
      file.close();
    }
  }
}
