// The bank's load client: several threads that open accounts, move money between them, and write
// down what became of each call.
//
// usage: bank_client --ref IOR-or-corbaloc [--clients N] [--seconds S] [--rate CALLS_PER_S]
//   [--accounts N] [--seed N] [--name PREFIX] [--record FILE] [--oneway-share PERCENT]
//   [ORB options]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bank.hh"
#include "record.h"

namespace {

const std::int64_t FIRST_DEPOSIT = 1000;  // so that most transfers find the money they want
const auto PAUSE_AFTER_FAILURE = std::chrono::milliseconds(10);

struct Options {
  std::string ref;
  std::string name = "c";
  std::string record;
  unsigned clients = 1;
  double seconds = 5;
  double rate = 0;  // calls per second of all threads together; 0 = as fast as they go
  unsigned accounts = 10;
  std::uint64_t seed = 1;
  unsigned oneway_percent = 0;
};

Completed completed(const CORBA::SystemException& e) {
  switch (e.completed()) {
    case CORBA::COMPLETED_NO: return Completed::No;
    case CORBA::COMPLETED_MAYBE: return Completed::Maybe;
    default: return Completed::Yes;
  }
}

// Makes one call under a fresh reference and records its outcome. True if it was answered.
class Caller {
 public:
  Caller(Record& record, std::string prefix) : record_(record), prefix_(std::move(prefix)) {}

  template <typename Call>
  bool operator()(const char* operation, Call call) {
    std::string reference = prefix_ + "-" + std::to_string(calls_++);
    Outcome outcome;
    std::int64_t start_us = now_us();
    try {
      call(reference.c_str());
    } catch (const CORBA::UserException& e) {
      outcome.exception = e._rep_id();
    } catch (const CORBA::SystemException& e) {
      outcome = {false, e._rep_id(), completed(e), e.minor()};
    }
    record_.add(reference, operation, start_us, now_us(), outcome);
    if (!outcome.answered) std::this_thread::sleep_for(PAUSE_AFTER_FAILURE);
    return outcome.answered;
  }

 private:
  Record& record_;
  const std::string prefix_;
  std::uint64_t calls_ = 0;
};

std::string account(std::uint64_t index) { return "acct-" + std::to_string(index); }

// Opens every account and gives it money; each step until it succeeds or time is up.
bool prepare(Bank::Ledger_ptr bank, Record& record, const Options& options,
             std::int64_t deadline_us) {
  Caller call(record, options.name + "-setup");
  for (unsigned index = 0; index < options.accounts; ++index) {
    std::string name = account(index);
    while (!call("open", [&](const char* ref) { bank->open(name.c_str(), ref); }))
      if (now_us() > deadline_us) return false;
    while (!call("deposit",
                 [&](const char* ref) { bank->deposit(name.c_str(), FIRST_DEPOSIT, ref); }))
      if (now_us() > deadline_us) return false;
  }
  return true;
}

void call_one(Bank::Ledger_ptr bank, Caller& call, const Options& options,
              std::mt19937_64& random) {
  std::string from = account(random() % options.accounts);
  std::string to = account(random() % options.accounts);
  std::int64_t amount = static_cast<std::int64_t>(random() % 100 + 1);
  std::uint64_t dice = random() % 100;
  if (random() % 100 < options.oneway_percent)
    call("note", [&](const char* ref) { bank->note(ref); });
  else if (dice < 50)
    call("transfer",
         [&](const char* ref) { bank->transfer(from.c_str(), to.c_str(), amount, ref); });
  else if (dice < 70)
    call("deposit", [&](const char* ref) { bank->deposit(from.c_str(), amount, ref); });
  else if (dice < 90)
    call("increment", [&](const char* ref) { bank->increment(ref); });
  else
    call("balance", [&](const char*) { bank->balance(from.c_str()); });
}

void run_client(Bank::Ledger_ptr bank, Record& record, const Options& options, unsigned index,
                std::int64_t deadline_us) {
  std::mt19937_64 random(options.seed * 1000 + index);
  Caller call(record, options.name + "-" + std::to_string(index));
  const double period_us = options.rate > 0 ? 1e6 * options.clients / options.rate : 0;
  // Spread over the period, so that the threads do not call in step.
  double next_us = static_cast<double>(now_us()) + period_us * index / options.clients;
  for (;;) {
    std::int64_t now = now_us();
    if (static_cast<double>(now) < next_us) {
      auto wait_us = std::min(next_us, static_cast<double>(deadline_us)) - now;
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<std::int64_t>(wait_us)));
    }
    if (now_us() >= deadline_us) return;
    call_one(bank, call, options, random);
    // After an outage the missed calls are not made up for: that would be another load.
    next_us = std::max(next_us + period_us, static_cast<double>(now_us()) - period_us);
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; at += 2) {
    std::string name = argv[at];
    if (at + 1 >= argc) throw std::invalid_argument(name + " needs a value");
    std::string value = argv[at + 1];
    if (name == "--ref") options.ref = value;
    else if (name == "--name") options.name = value;
    else if (name == "--record") options.record = value;
    else if (name == "--clients") options.clients = std::stoul(value);
    else if (name == "--seconds") options.seconds = std::stod(value);
    else if (name == "--rate") options.rate = std::stod(value);
    else if (name == "--accounts") options.accounts = std::stoul(value);
    else if (name == "--seed") options.seed = std::stoull(value);
    else if (name == "--oneway-share") options.oneway_percent = std::stoul(value);
    else throw std::invalid_argument("unknown option " + name);
  }
  if (options.ref.empty()) throw std::invalid_argument("--ref is missing");
  if (options.clients == 0 || options.accounts == 0)
    throw std::invalid_argument("--clients and --accounts must be at least 1");
  return options;
}

int run(int argc, char** argv) {
  // Defaults; the same options on the command line win. Each thread gets a connection of its own
  // (omniORB's limit is 5), no call waits for ever, and a dead address is left at the first error.
  const char* defaults[][2] = {{"maxGIOPConnectionPerServer", "1000"},
                               {"clientCallTimeOutPeriod", "60000"},
                               {"immediateAddressSwitch", "1"},
                               {nullptr, nullptr}};
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", defaults);
  Options options = parse(argc, argv);
  CORBA::Object_var object = orb->string_to_object(options.ref.c_str());
  // Unchecked: asking the server for its type would fail here if it is just being restarted.
  Bank::Ledger_var bank = Bank::Ledger::_unchecked_narrow(object);
  if (CORBA::is_nil(bank)) throw std::invalid_argument("--ref is a nil reference");

  Record record(options.record);
  std::int64_t deadline_us = now_us() + static_cast<std::int64_t>(options.seconds * 1e6);
  if (!prepare(bank, record, options, deadline_us))
    std::cerr << "bank_client: the accounts could not be opened in time" << std::endl;
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < options.clients; ++index)
    threads.emplace_back([&, index] { run_client(bank, record, options, index, deadline_us); });
  for (std::thread& thread : threads) thread.join();
  std::cout << record.figures() << std::endl;
  orb->destroy();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const CORBA::SystemException& e) {
    std::cerr << "bank_client: " << e._rep_id() << " minor " << std::hex << e.minor() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "bank_client: " << e.what() << std::endl;
  }
  return 1;
}
