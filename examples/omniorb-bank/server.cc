// The bank's server: an ordinary omniORB program, with nothing in it but its own business.
//
// usage: bank_server [ORB options] [--delay-us N] [--crash-after N] [--crash-at REFERENCE]
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string>
#include <unistd.h>

#include "bank.hh"
#include "ledger.h"

namespace {

struct Options {
  std::uint64_t delay_us = 0;     // sleep in each call that changes something, to widen races
  std::uint64_t crash_after = 0;  // die in the middle of this changing call, counted from 1
  std::string crash_at;           // die in the middle of the changing call with this reference
};

// omniORB calls from several threads, one per connection: a lock makes each call one step.
class LedgerServant : public POA_Bank::Ledger {
 public:
  explicit LedgerServant(Options options) : options_(options) {}

  void open(const char* account, const char* reference) override {
    std::lock_guard<std::mutex> guard(lock_);
    books_.balances.emplace(account, 0);
    log({reference, "open", account, "", 0});
  }

  CORBA::LongLong deposit(const char* account, CORBA::LongLong amount,
                          const char* reference) override {
    std::lock_guard<std::mutex> guard(lock_);
    std::int64_t& balance = find(account);
    balance = sum(balance, amount);
    std::int64_t result = balance;
    log({reference, "deposit", account, "", amount});
    return result;
  }

  void transfer(const char* from, const char* to, CORBA::LongLong amount,
                const char* reference) override {
    std::lock_guard<std::mutex> guard(lock_);
    std::int64_t& source = find(from);
    std::int64_t& target = find(to);
    if (source < amount) throw Bank::InsufficientFunds(from, source);
    std::int64_t rest = difference(source, amount);
    sum(target, amount);  // before anything changes: it may refuse
    source = rest;
    target = sum(target, amount);
    log({reference, "transfer", from, to, amount});
  }

  CORBA::LongLong balance(const char* account) override {
    std::lock_guard<std::mutex> guard(lock_);
    return find(account);
  }

  Bank::Names* accounts() override {
    std::lock_guard<std::mutex> guard(lock_);
    Bank::Names_var names = new Bank::Names;
    names->length(static_cast<CORBA::ULong>(books_.balances.size()));
    CORBA::ULong at = 0;
    for (const auto& account : books_.balances) names[at++] = account.first.c_str();
    return names._retn();
  }

  CORBA::ULongLong executed() override {
    std::lock_guard<std::mutex> guard(lock_);
    return books_.history.size();
  }

  Bank::Entries* history(CORBA::ULongLong first, CORBA::ULong max) override {
    std::lock_guard<std::mutex> guard(lock_);
    Bank::Entries_var entries = new Bank::Entries;
    std::uint64_t size = books_.history.size();
    std::uint64_t left = first < size ? size - first : 0;
    CORBA::ULong count = left < max ? static_cast<CORBA::ULong>(left) : max;
    entries->length(count);
    for (CORBA::ULong at = 0; at < count; ++at) {
      const BookEntry& from = books_.history[first + at];
      Bank::Entry& to = entries[at];
      to.number = first + at;
      to.reference = from.reference.c_str();
      to.operation = from.operation.c_str();
      to.account = from.account.c_str();
      to.other = from.other.c_str();
      to.amount = from.amount;
    }
    return entries._retn();
  }

  CORBA::ULongLong increment(const char* reference) override {
    std::lock_guard<std::mutex> guard(lock_);
    CORBA::ULongLong result = ++books_.counter;
    log({reference, "increment", "", "", 0});
    return result;
  }

  CORBA::ULongLong counter() override {
    std::lock_guard<std::mutex> guard(lock_);
    return books_.counter;
  }

  void note(const char* text) override {
    std::lock_guard<std::mutex> guard(lock_);
    log({text, "note", "", "", 0});
  }

  FT::State* get_state() override {
    std::lock_guard<std::mutex> guard(lock_);
    std::string text = books_.to_text();
    FT::State_var state = new FT::State;
    state->length(static_cast<CORBA::ULong>(text.size()));
    std::memcpy(state->get_buffer(), text.data(), text.size());
    return state._retn();
  }

  void set_state(const FT::State& state) override {
    std::string text(reinterpret_cast<const char*>(state.get_buffer()), state.length());
    std::lock_guard<std::mutex> guard(lock_);
    try {
      books_ = ::Ledger::from_text(text);
    } catch (const std::invalid_argument& why) {
      std::cerr << "bank_server: state refused: " << why.what() << std::endl;
      throw FT::InvalidState();
    }
  }

 private:
  std::int64_t& find(const char* account) {
    auto found = books_.balances.find(account);
    if (found == books_.balances.end()) throw Bank::NoSuchAccount(account);
    return found->second;
  }

  // Overflow of a signed integer is undefined behaviour, so it is refused instead.
  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result;
    if (__builtin_add_overflow(a, b, &result)) throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    return result;
  }

  static std::int64_t difference(std::int64_t a, std::int64_t b) {
    std::int64_t result;
    if (__builtin_sub_overflow(a, b, &result)) throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    return result;
  }

  // The last step of every changing call.
  void log(BookEntry entry) {
    bool crashes = !options_.crash_at.empty() && entry.reference == options_.crash_at;
    books_.history.push_back(std::move(entry));
    if (options_.delay_us > 0) usleep(static_cast<useconds_t>(options_.delay_us));
    // Executed, but nobody has been told: the worst moment to die.
    if (++changes_ == options_.crash_after || crashes) kill(getpid(), SIGKILL);
  }

  const Options options_;
  std::mutex lock_;
  ::Ledger books_;
  std::uint64_t changes_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; at += 2) {
    std::string name = argv[at];
    if (at + 1 >= argc) throw std::invalid_argument(name + " needs a value");
    if (name == "--delay-us") options.delay_us = std::stoull(argv[at + 1]);
    else if (name == "--crash-after") options.crash_after = std::stoull(argv[at + 1]);
    else if (name == "--crash-at") options.crash_at = argv[at + 1];
    else throw std::invalid_argument("unknown option " + name);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // Defaults; the same options on the command line win. The state's text is UTF-8, so the
    // program's strings are; the calls of one connection run in the order in which they came; and
    // a history may be longer than omniORB's 2 MiB.
    const char* defaults[][2] = {{"nativeCharCodeSet", "UTF-8"},
                                 {"giopMaxMsgSize", "16777216"},
                                 {"maxServerThreadPerConnection", "1"},
                                 {nullptr, nullptr}};
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", defaults);
    Options options = parse(argc, argv);

    // This adapter's object keys are the plain names: corbaloc::HOST:PORT/bank.
    CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<LedgerServant> servant = new LedgerServant(options);
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("bank");
    poa->activate_object_with_id(id, servant);
    PortableServer::POAManager_var manager = poa->the_POAManager();
    manager->activate();

    std::cout << "READY" << std::endl;
    orb->run();
    return 0;
  } catch (const CORBA::SystemException& e) {
    std::cerr << "bank_server: " << e._rep_id() << " minor " << std::hex << e.minor() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "bank_server: " << e.what() << std::endl;
  }
  return 1;
}
