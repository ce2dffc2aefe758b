package ledger;

import Bank.Ledger;
import Bank.LedgerHelper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.ORB;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.TIMEOUT;
import org.omg.CORBA.UserException;

/**
 * The bank's load client: several threads that open accounts, move money between them, and write
 * down what became of each call.
 *
 * <p>Options: {@code --ref IOR-or-corbaloc [--clients N] [--seconds S] [--rate CALLS_PER_S]
 * [--accounts N] [--seed N] [--name PREFIX] [--record FILE] [--oneway-share PERCENT]}.
 */
public final class Client {
  private static final Set<String> OPTIONS =
      Set.of("--ref", "--clients", "--seconds", "--rate", "--accounts", "--seed", "--name",
          "--record", "--oneway-share");
  private static final long FIRST_DEPOSIT = 1000; // most transfers find the money they want
  private static final long PAUSE_AFTER_FAILURE_US = 10_000;

  private final Ledger bank;
  private final CallRecord record;
  private final String name;
  private final int clients;
  private final int accounts;
  private final double rate; // calls per second of all threads together; 0: as fast as they go
  private final long seed;
  private final long onewayPercent;
  private final long deadlineUs;

  private Client(Arguments arguments, Ledger bank, CallRecord record) {
    this.bank = bank;
    this.record = record;
    name = arguments.text("--name", "c");
    clients = (int) arguments.number("--clients", 1);
    accounts = (int) arguments.number("--accounts", 10);
    rate = arguments.fraction("--rate", 0);
    seed = arguments.number("--seed", 1);
    onewayPercent = arguments.number("--oneway-share", 0);
    deadlineUs = CallRecord.nowUs() + (long) (arguments.fraction("--seconds", 5) * 1e6);
    if (clients < 1 || accounts < 1) {
      throw new IllegalArgumentException("--clients and --accounts must be at least 1");
    }
  }

  public static void main(String[] args) throws Exception {
    try {
      run(new Arguments(args, OPTIONS));
    } catch (IllegalArgumentException why) {
      System.err.println("bank-client: " + why.getMessage());
      System.exit(1);
    }
  }

  private static void run(Arguments arguments) throws Exception {
    String reference = arguments.text("--ref", "");
    if (reference.isEmpty()) {
      throw new IllegalArgumentException("--ref is missing");
    }
    ORB orb = ORB.init(new String[0], Orbs.client());
    // Unchecked: asking the server for its type would fail if it is just being restarted.
    Ledger bank = LedgerHelper.unchecked_narrow(orb.string_to_object(reference));
    try (CallRecord record = new CallRecord(arguments.text("--record", ""))) {
      new Client(arguments, bank, record).work();
      System.out.println(record.figures());
    }
    orb.shutdown(true);
  }

  private void work() throws Exception {
    if (!prepare()) {
      System.err.println("bank-client: the accounts could not be opened in time");
    }
    List<Thread> threads = new ArrayList<>();
    for (int index = 0; index < clients; index++) {
      int own = index;
      threads.add(new Thread(() -> runClient(own)));
    }
    for (Thread thread : threads) {
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  /** Opens every account and gives it money; each step until it succeeds or time is up. */
  private boolean prepare() throws IOException {
    Caller caller = new Caller(name + "-setup");
    for (int index = 0; index < accounts; index++) {
      String account = account(index);
      while (!caller.call("open", reference -> bank.open(account, reference))) {
        if (CallRecord.nowUs() > deadlineUs) {
          return false;
        }
      }
      while (!caller.call(
          "deposit", reference -> bank.deposit(account, FIRST_DEPOSIT, reference))) {
        if (CallRecord.nowUs() > deadlineUs) {
          return false;
        }
      }
    }
    return true;
  }

  private void runClient(int index) {
    Random random = new Random(seed * 1000 + index);
    Caller caller = new Caller(name + "-" + index);
    double periodUs = rate > 0 ? 1e6 * clients / rate : 0;
    // Spread over the period, so that the threads do not call in step.
    double nextUs = CallRecord.nowUs() + periodUs * index / clients;
    try {
      while (true) {
        long waitUs = (long) Math.min(nextUs, deadlineUs) - CallRecord.nowUs();
        if (waitUs > 0) {
          LockSupport.parkNanos(waitUs * 1000);
        }
        if (CallRecord.nowUs() >= deadlineUs) {
          return;
        }
        callOne(caller, random);
        // After an outage the missed calls are not made up for: that would be another load.
        nextUs = Math.max(nextUs + periodUs, CallRecord.nowUs() - periodUs);
      }
    } catch (IOException why) {
      // A record with a hole would be worse than none.
      System.err.println("bank-client: cannot write the record: " + why);
      System.exit(1);
    }
  }

  private void callOne(Caller caller, Random random) throws IOException {
    String from = account(random.nextInt(accounts));
    String to = account(random.nextInt(accounts));
    long amount = random.nextInt(100) + 1;
    int dice = random.nextInt(100);
    if (random.nextInt(100) < onewayPercent) {
      caller.call("note", bank::note);
    } else if (dice < 50) {
      caller.call("transfer", reference -> bank.transfer(from, to, amount, reference));
    } else if (dice < 70) {
      caller.call("deposit", reference -> bank.deposit(from, amount, reference));
    } else if (dice < 90) {
      caller.call("increment", bank::increment);
    } else {
      caller.call("balance", reference -> bank.balance(from));
    }
  }

  private static String account(int index) {
    return "acct-" + index;
  }

  private interface Call {
    void make(String reference) throws UserException;
  }

  /** Makes calls, each under a fresh reference, and records their outcomes. */
  private final class Caller {
    private final String prefix;
    private long calls;

    Caller(String prefix) {
      this.prefix = prefix;
    }

    /** True if the call was answered. */
    boolean call(String operation, Call call) throws IOException {
      String reference = prefix + "-" + calls++;
      long startUs = CallRecord.nowUs();
      CallRecord.Outcome outcome;
      try {
        call.make(reference);
        outcome = new CallRecord.Outcome(true, "", CallRecord.Completed.YES, 0);
      } catch (UserException e) {
        outcome = new CallRecord.Outcome(true, repositoryId(e), CallRecord.Completed.YES, 0);
      } catch (SystemException e) {
        outcome = new CallRecord.Outcome(false, repositoryId(e), completed(e), e.minor);
      }
      record.add(reference, operation, startUs, CallRecord.nowUs(), outcome);
      if (!outcome.answered()) {
        LockSupport.parkNanos(PAUSE_AFTER_FAILURE_US * 1000);
      }
      return outcome.answered();
    }
  }

  private static CallRecord.Completed completed(SystemException e) {
    // JacORB says NO at a timeout, although the request has been sent.
    if (e instanceof TIMEOUT || e.completed.value() == CompletionStatus._COMPLETED_MAYBE) {
      return CallRecord.Completed.MAYBE;
    }
    return e.completed.value() == CompletionStatus._COMPLETED_NO
        ? CallRecord.Completed.NO
        : CallRecord.Completed.YES;
  }

  /** The mapping of IDL names to Java's makes the one follow from the other. */
  private static String repositoryId(Exception e) {
    String path = e.getClass().getName().replace('.', '/');
    String name = path.startsWith("org/omg/") ? path.replaceFirst("org/omg", "omg.org") : path;
    return "IDL:" + name + ":1.0";
  }
}
