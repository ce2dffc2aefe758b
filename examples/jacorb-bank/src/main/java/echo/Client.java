package echo;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedWriter;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import ledger.Arguments;
import ledger.Orbs;
import org.omg.CORBA.ORB;

/**
 * Measures how long a call takes, and how many there are a second, as omniorb-echo's client in C++
 * does: threads that each make one call at a time, here over one connection, as JacORB does it.
 *
 * <p>Options: {@code --ref IOR-or-corbaloc [--calls N] [--warm-up N] [--longs N] [--clients N]
 * [--samples FILE]}. Calls are those of all clients together.
 */
public final class Client {
  private static final Set<String> OPTIONS =
      Set.of("--ref", "--calls", "--warm-up", "--longs", "--clients", "--samples");
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private final EchoService echo;
  private final int[] values;
  private final int clients;

  private Client(EchoService echo, int longs, int clients) {
    this.echo = echo;
    this.clients = clients;
    values = new int[longs];
    Arrays.setAll(values, index -> index);
  }

  public static void main(String[] args) throws Exception {
    try {
      run(new Arguments(args, OPTIONS));
    } catch (IllegalArgumentException | IllegalStateException | IOException why) {
      System.err.println("echo-client: " + why.getMessage());
      System.exit(1);
    }
    System.exit(0);
  }

  private static void run(Arguments arguments) throws Exception {
    String reference = arguments.text("--ref", "");
    if (reference.isEmpty()) {
      throw new IllegalArgumentException("--ref is missing");
    }
    int clients = (int) arguments.number("--clients", 1);
    int calls = (int) arguments.number("--calls", 20_000);
    int longs = (int) arguments.number("--longs", 256);
    if (clients < 1 || clients > 256 || calls < 1 || longs < 0) {
      throw new IllegalArgumentException("--clients must be 1 to 256, --calls at least 1");
    }
    ORB orb = ORB.init(new String[0], Orbs.client());
    EchoService echo = EchoServiceHelper.unchecked_narrow(orb.string_to_object(reference));
    Client client = new Client(echo, longs, clients);
    client.makeCalls((int) arguments.number("--warm-up", 2_000));
    long beganNs = System.nanoTime();
    long beganCpuNs = SYSTEM.getProcessCpuTime();
    long[] samplesNs = client.makeCalls(calls);
    long cpuNs = SYSTEM.getProcessCpuTime() - beganCpuNs;
    long elapsedNs = System.nanoTime() - beganNs;
    write(arguments.text("--samples", ""), samplesNs);
    print(samplesNs, elapsedNs, cpuNs);
  }

  /** Makes so many calls with all clients together; what each took, in nanoseconds. */
  private long[] makeCalls(int calls) throws InterruptedException {
    long[] samplesNs = new long[calls];
    AtomicLong begun = new AtomicLong();
    AtomicReference<RuntimeException> failure = new AtomicReference<>();
    Runnable work = () -> {
      try {
        for (long at = begun.getAndIncrement(); at < calls; at = begun.getAndIncrement()) {
          samplesNs[(int) at] = timedCall();
        }
      } catch (RuntimeException why) {
        failure.compareAndSet(null, why);
        begun.set(calls);
      }
    };
    Thread[] threads = new Thread[clients];
    for (int index = 0; index < clients; index++) {
      threads[index] = new Thread(work);
      threads[index].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure.get() != null) {
      throw new IllegalStateException(failure.get().toString(), failure.get());
    }
    return samplesNs;
  }

  /** The answer is compared: a fast wrong answer is worth nothing. */
  private long timedCall() {
    long startNs = System.nanoTime();
    int[] answer = echo.echo(values);
    long tookNs = System.nanoTime() - startNs;
    if (!Arrays.equals(answer, values)) {
      throw new IllegalStateException("the answer is not what was sent");
    }
    return tookNs;
  }

  private static void write(String path, long[] samplesNs) throws IOException {
    if (path.isEmpty()) {
      return;
    }
    try (BufferedWriter file = Files.newBufferedWriter(Path.of(path))) {
      for (long sampleNs : samplesNs) {
        file.write(Long.toString(sampleNs));
        file.newLine();
      }
    }
  }

  private static void print(long[] samplesNs, long elapsedNs, long cpuNs) {
    long[] sorted = samplesNs.clone();
    Arrays.sort(sorted);
    Object[] figures = {
      sorted.length, us(sorted, 0.5), us(sorted, 0.9), us(sorted, 0.99), us(sorted, 0.999),
      us(sorted, 0), us(sorted, 1), sorted.length * 1e9 / elapsedNs, cpuNs / 1e3 / sorted.length
    };
    System.out.printf(
        Locale.ROOT,
        "{\"calls\":%d,\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
            + "\"min_us\":%.1f,\"max_us\":%.1f,\"calls_per_s\":%.0f,\"client_cpu_us\":%.2f}%n",
        figures);
  }

  private static double us(long[] sortedNs, double share) {
    return sortedNs[(int) ((sortedNs.length - 1) * share)] / 1e3;
  }
}
