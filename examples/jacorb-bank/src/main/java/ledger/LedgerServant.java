package ledger;

import Bank.Entry;
import Bank.InsufficientFunds;
import Bank.LedgerPOA;
import Bank.NoSuchAccount;
import java.io.IOException;
import java.util.concurrent.locks.LockSupport;
import org.omg.CORBA.BAD_PARAM;
import org.omg.FT.InvalidState;

/** What the bank does at each call. Every method is synchronized: each call is one step. */
final class LedgerServant extends LedgerPOA {
  private final long delayUs;
  private final long crashAfter;
  private final String crashAt;
  private Books books = new Books();
  private long changes;

  /**
   * @param delayUs sleep in each call that changes something, to widen races
   * @param crashAfter die in the middle of this changing call, counted from 1; 0: never
   * @param crashAt die in the middle of the changing call with this reference; empty: never
   */
  LedgerServant(long delayUs, long crashAfter, String crashAt) {
    this.delayUs = delayUs;
    this.crashAfter = crashAfter;
    this.crashAt = crashAt;
  }

  @Override
  public synchronized void open(String account, String reference) {
    books.balances.putIfAbsent(account, 0L);
    log(new Books.Entry(reference, "open", account, "", 0));
  }

  @Override
  public synchronized long deposit(String account, long amount, String reference)
      throws NoSuchAccount {
    long balance = sum(find(account), amount);
    books.balances.put(account, balance);
    log(new Books.Entry(reference, "deposit", account, "", amount));
    return balance;
  }

  @Override
  public synchronized void transfer(String from, String to, long amount, String reference)
      throws NoSuchAccount, InsufficientFunds {
    long source = find(from);
    long target = find(to);
    if (source < amount) {
      throw new InsufficientFunds(from, source);
    }
    long rest = difference(source, amount);
    sum(target, amount); // before anything changes: it may refuse
    books.balances.put(from, rest);
    books.balances.put(to, sum(find(to), amount));
    log(new Books.Entry(reference, "transfer", from, to, amount));
  }

  @Override
  public synchronized long balance(String account) throws NoSuchAccount {
    return find(account);
  }

  @Override
  public synchronized String[] accounts() {
    return books.balances.keySet().toArray(new String[0]);
  }

  @Override
  public synchronized long executed() {
    return books.history.size();
  }

  @Override
  public synchronized Entry[] history(long first, int max) {
    int size = books.history.size();
    // IDL's unsigned numbers are Java's signed ones: a negative one is a large one.
    int start = (int) (Long.compareUnsigned(first, size) < 0 ? first : size);
    int left = size - start;
    int count = Integer.compareUnsigned(max, left) < 0 ? max : left;
    Entry[] entries = new Entry[count];
    for (int at = 0; at < count; at++) {
      Books.Entry entry = books.history.get(start + at);
      entries[at] =
          new Entry(start + at, entry.reference(), entry.operation(), entry.account(),
              entry.other(), entry.amount());
    }
    return entries;
  }

  @Override
  public synchronized long increment(String reference) {
    long result = ++books.counter;
    log(new Books.Entry(reference, "increment", "", "", 0));
    return result;
  }

  @Override
  public synchronized long counter() {
    return books.counter;
  }

  @Override
  public synchronized void note(String text) {
    log(new Books.Entry(text, "note", "", "", 0));
  }

  @Override
  public synchronized byte[] get_state() {
    return books.toText();
  }

  @Override
  public synchronized void set_state(byte[] state) throws InvalidState {
    try {
      books = Books.fromText(state);
    } catch (IllegalArgumentException why) {
      System.err.println("bank-server: state refused: " + why.getMessage());
      throw new InvalidState();
    }
  }

  private long find(String account) throws NoSuchAccount {
    Long balance = books.balances.get(account);
    if (balance == null) {
      throw new NoSuchAccount(account);
    }
    return balance;
  }

  private static long sum(long a, long b) {
    try {
      return Math.addExact(a, b);
    } catch (ArithmeticException overflow) {
      throw new BAD_PARAM();
    }
  }

  private static long difference(long a, long b) {
    try {
      return Math.subtractExact(a, b);
    } catch (ArithmeticException overflow) {
      throw new BAD_PARAM();
    }
  }

  /** The last step of every changing call. */
  private void log(Books.Entry entry) {
    books.history.add(entry);
    if (delayUs > 0) {
      LockSupport.parkNanos(delayUs * 1000);
    }
    changes++;
    if (changes == crashAfter || !crashAt.isEmpty() && crashAt.equals(entry.reference())) {
      // Executed, but nobody has been told: the worst moment to die.
      die();
    }
  }

  /** As if killed from outside: Runtime.halt would take a third of a second to get there. */
  private static void die() {
    String self = Long.toString(ProcessHandle.current().pid());
    try {
      new ProcessBuilder("kill", "-KILL", self).start().waitFor();
    } catch (IOException | InterruptedException e) {
      System.err.println("bank-server: cannot kill itself: " + e);
    }
    Runtime.getRuntime().halt(1);
  }
}
