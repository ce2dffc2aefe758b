// The bank's books: plain data and its text form. It knows nothing of CORBA.
//
// Invariants: entries are numbered from 0 without gaps; the same calls in the same order give the
// same bytes in `to_text`, in this and in every other implementation of the bank.
#ifndef BANK_LEDGER_H
#define BANK_LEDGER_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct BookEntry {
  std::string reference;
  std::string operation;
  std::string account;
  std::string other;
  std::int64_t amount = 0;
};

struct Ledger {
  std::uint64_t counter = 0;
  std::map<std::string, std::int64_t> balances;  // sorted by name
  std::vector<BookEntry> history;                // index = entry number

  // "bank 1", the counter, the accounts by name, the history in order, "end".
  std::string to_text() const;

  // The opposite of to_text. Throws std::invalid_argument if the text is anything else than what
  // to_text writes.
  static Ledger from_text(const std::string& text);
};

#endif
