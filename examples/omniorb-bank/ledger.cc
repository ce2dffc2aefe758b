#include "ledger.h"

#include <charconv>
#include <stdexcept>

namespace {

const char HEX[] = "0123456789ABCDEF";

// One field of a line: never empty, never with a blank or a line end in it.
std::string escaped(const std::string& field) {
  if (field.empty()) return "-";
  if (field == "-") return "%2D";
  std::string out;
  for (unsigned char c : field) {
    if (c == ' ' || c == '%' || c == '\n') {
      out += '%';
      out += HEX[c >> 4];
      out += HEX[c & 15];
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  throw std::invalid_argument("an escape with a character that is no hex digit");
}

std::string unescaped(const std::string& field) {
  if (field.empty()) throw std::invalid_argument("an empty field");
  if (field == "-") return "";
  std::string out;
  for (std::size_t at = 0; at < field.size(); ++at) {
    if (field[at] != '%') {
      out += field[at];
      continue;
    }
    if (at + 2 >= field.size()) throw std::invalid_argument("an escape cut short");
    out += static_cast<char>(hex_digit(field[at + 1]) * 16 + hex_digit(field[at + 2]));
    at += 2;
  }
  return out;
}

template <typename Number>
Number number(const std::string& field) {
  Number value = 0;
  const char* end = field.data() + field.size();
  auto result = std::from_chars(field.data(), end, value);
  if (field.empty() || result.ec != std::errc() || result.ptr != end)
    throw std::invalid_argument("not a number: " + field);
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (;;) {
    std::size_t end = text.find(separator, start);
    parts.push_back(text.substr(start, end - start));
    if (end == std::string::npos) return parts;
    start = end + 1;
  }
}

void read_line(Ledger& ledger, const std::vector<std::string>& fields) {
  if (fields[0] == "account" && fields.size() == 3 && ledger.history.empty()) {
    auto added = ledger.balances.emplace(unescaped(fields[1]), number<std::int64_t>(fields[2]));
    if (!added.second) throw std::invalid_argument("an account that stands twice");
  } else if (fields[0] == "entry" && fields.size() == 7) {
    if (number<std::uint64_t>(fields[1]) != ledger.history.size())
      throw std::invalid_argument("an entry out of turn");
    ledger.history.push_back({unescaped(fields[3]), unescaped(fields[2]), unescaped(fields[4]),
                              unescaped(fields[5]), number<std::int64_t>(fields[6])});
  } else {
    throw std::invalid_argument("an unknown line");
  }
}

}  // namespace

std::string Ledger::to_text() const {
  std::string out = "bank 1\ncounter " + std::to_string(counter) + "\n";
  for (const auto& [name, balance] : balances)
    out += "account " + escaped(name) + " " + std::to_string(balance) + "\n";
  std::uint64_t entry_number = 0;
  for (const BookEntry& entry : history) {
    out += "entry " + std::to_string(entry_number++) + " " + escaped(entry.operation) + " " +
           escaped(entry.reference) + " " + escaped(entry.account) + " " +
           escaped(entry.other) + " " + std::to_string(entry.amount) + "\n";
  }
  return out + "end\n";
}

Ledger Ledger::from_text(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::size_t count = lines.size();
  // The last line end leaves an empty piece behind it.
  if (count < 4 || lines[0] != "bank 1" || lines[count - 2] != "end" || !lines[count - 1].empty())
    throw std::invalid_argument("not a whole ledger");
  Ledger ledger;
  std::vector<std::string> fields = split(lines[1], ' ');
  if (fields.size() != 2 || fields[0] != "counter")
    throw std::invalid_argument("no counter");
  ledger.counter = number<std::uint64_t>(fields[1]);
  for (std::size_t at = 2; at < count - 2; ++at) read_line(ledger, split(lines[at], ' '));
  // Whatever is not in the one canonical form would come out different from what came in.
  if (ledger.to_text() != text) throw std::invalid_argument("not in canonical form");
  return ledger;
}
