package ledger;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The bank's books: plain data and its text form. It knows nothing of CORBA.
 *
 * <p>Invariants: entries are numbered from 0 without gaps; the same calls in the same order give
 * the same bytes in {@link #toText}, in this and in every other implementation of the bank.
 */
final class Books {
  /** One changing call: {@code other} is the account that a transfer goes to, else empty. */
  record Entry(String reference, String operation, String account, String other, long amount) {}

  /** By the bytes of UTF-8, which is not the order of Java's own strings. */
  private static final Comparator<String> BY_BYTES =
      Comparator.comparing(Books::utf8, Arrays::compareUnsigned);

  long counter;
  final SortedMap<String, Long> balances = new TreeMap<>(BY_BYTES);
  final List<Entry> history = new ArrayList<>();

  /** "bank 1", the counter, the accounts by name, the history in order, "end". */
  byte[] toText() {
    StringBuilder out = new StringBuilder("bank 1\ncounter ").append(Long.toUnsignedString(counter))
        .append('\n');
    for (Map.Entry<String, Long> account : balances.entrySet()) {
      out.append("account ").append(escaped(account.getKey())).append(' ');
      out.append(account.getValue()).append('\n');
    }
    for (int number = 0; number < history.size(); number++) {
      Entry entry = history.get(number);
      out.append("entry ").append(number).append(' ').append(escaped(entry.operation));
      out.append(' ').append(escaped(entry.reference)).append(' ').append(escaped(entry.account));
      out.append(' ').append(escaped(entry.other)).append(' ').append(entry.amount).append('\n');
    }
    return utf8(out.append("end\n").toString());
  }

  /**
   * The opposite of {@link #toText}.
   *
   * @throws IllegalArgumentException if the text is anything else than what toText writes
   */
  static Books fromText(byte[] text) {
    String[] lines = decoded(text).split("\n", -1);
    int count = lines.length;
    // The last line end leaves an empty piece behind it.
    if (count < 4 || !lines[0].equals("bank 1") || !lines[count - 2].equals("end")) {
      throw new IllegalArgumentException("not a whole ledger");
    }
    Books books = new Books();
    String[] fields = lines[1].split(" ", -1);
    if (fields.length != 2 || !fields[0].equals("counter")) {
      throw new IllegalArgumentException("no counter");
    }
    books.counter = Long.parseUnsignedLong(fields[1]);
    for (int at = 2; at < count - 2; at++) {
      books.readLine(lines[at].split(" ", -1));
    }
    // Whatever is not in the one canonical form would come out different from what came in.
    if (!Arrays.equals(books.toText(), text)) {
      throw new IllegalArgumentException("not in canonical form");
    }
    return books;
  }

  private void readLine(String[] fields) {
    if (fields[0].equals("account") && fields.length == 3) {
      balances.put(unescaped(fields[1]), Long.parseLong(fields[2]));
    } else if (fields[0].equals("entry") && fields.length == 7) {
      history.add(
          new Entry(unescaped(fields[3]), unescaped(fields[2]), unescaped(fields[4]),
              unescaped(fields[5]), Long.parseLong(fields[6])));
    } else {
      throw new IllegalArgumentException("an unknown line");
    }
  }

  /** One field of a line: never empty, never with a blank or a line end in it. */
  private static String escaped(String field) {
    if (field.isEmpty()) {
      return "-";
    }
    if (field.equals("-")) {
      return "%2D";
    }
    return field.replace("%", "%25").replace(" ", "%20").replace("\n", "%0A");
  }

  /** Escapes that {@link #escaped} does not write stay as they are, and fail the final check. */
  private static String unescaped(String field) {
    if (field.equals("-")) {
      return "";
    }
    if (field.equals("%2D")) {
      return "-";
    }
    return field.replace("%0A", "\n").replace("%20", " ").replace("%25", "%");
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String decoded(byte[] text) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(text)).toString();
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("not UTF-8");
    }
  }
}
