// Tests of quorba_ft.cc with omniORB, stubs that know nothing of it, and gateways that are not
// kind. Prints nothing if all is well.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

#include "bank.hh"
#include "fake_gateway.h"
#include "quorba_ft.h"

using fake::Deed;
using fake::Gateway;
using fake::Seen;
using quorba_ft::rules::FT_GROUP_VERSION;
using quorba_ft::rules::FT_REQUEST;
using quorba_ft::rules::FT_TRANSACTION_DEPTH;
using std::chrono::milliseconds;

namespace {

CORBA::ORB_var orb;
const char* running = "";

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "adapter_test: " << running << ": it does not hold that " << what << std::endl;
  std::_Exit(1);
}

Bank::Ledger_var bank(const std::vector<std::uint16_t>& ports, int version) {
  const std::string text = fake::reference_text(ports, version);
  CORBA::Object_var object = orb->string_to_object(text.c_str());
  return Bank::Ledger::_unchecked_narrow(object);
}

Deed answer(const Seen&) { return Deed(); }

// Does one thing the first time, and answers from then on.
Gateway::Script once(Deed deed) {
  auto is_done = std::make_shared<bool>(false);
  return [=](const Seen&) {
    const Deed now = *is_done ? Deed() : deed;
    *is_done = true;
    return now;
  };
}

Gateway::Script always(Deed deed) {
  return [=](const Seen&) { return deed; };
}

// What a call raised: `NAME completed`, or nothing.
std::string call(const Bank::Ledger_var& ledger) {
  try {
    check(ledger->increment("x") == 7, "a reply has its result");
    return "";
  } catch (const CORBA::SystemException& raised) {
    return std::string(raised._name()) + " " + std::to_string(raised.completed());
  }
}

void a_call_keeps_its_name_when_its_gateway_goes() {
  for (Deed::What what : {Deed::What::Close, Deed::What::CutReply}) {
    Gateway first(always(Deed::of(what))), second(answer);
    Bank::Ledger_var ledger = bank({first.port, second.port}, 3);
    check(call(ledger).empty() && call(ledger).empty(), "no exception comes");
    const std::vector<Seen> before = first.seen(), after = second.seen();
    check(!before.empty() && after.size() == 2, "the second gateway answers");
    for (const Seen& seen : before) check(seen.name() == after[0].name(), "the name is kept");
    check(after[1].name().client == after[0].name().client, "one process has one client id");
    check(after[1].name().retention != after[0].name().retention, "each call has its own name");
    check(after[0].version() == 3, "the version is that of the reference");
    check(!after[0].has(FT_TRANSACTION_DEPTH), "nobody asked for a depth");
  }
}

void a_reply_that_comes_in_part_is_asked_for_again() {
  Gateway only(once(Deed::of(Deed::What::CutReply)));
  Bank::Ledger_var ledger = bank({only.port}, 1);
  check(call(ledger).empty(), "no exception comes");
  const std::vector<Seen> seen = only.seen();
  check(seen.size() == 2 && seen[0].name() == seen[1].name(), "the name is kept");
  Gateway large(once(Deed::of(Deed::What::CutReply)));
  Bank::Names_var names = bank({large.port}, 1)->accounts();
  check(names->length() == Gateway::NAMES, "the whole of a large one comes");
  check(large.seen()[0].name() == large.seen()[1].name(), "the name is kept");
}

void what_the_orb_sends_again_by_itself_keeps_its_name() {
  int nth = 0;
  Gateway only([&](const Seen&) {
    return ++nth % 2 == 0 ? Deed::of(Deed::What::Orderly) : Deed();
  });
  Bank::Ledger_var ledger = bank({only.port}, 1);
  for (int turn = 0; turn < 4; ++turn) check(call(ledger).empty(), "no exception comes");
  const std::vector<Seen> seen = only.seen();
  check(seen.size() == 7, "every second request is sent again");
  std::set<Seen::Name> names;
  for (const Seen& one : seen) names.insert(one.name());
  check(names.size() == 4, "each call has one name");
}

void an_object_is_located_again() {
  quorba_ft::unnamed scope;
  Gateway only(answer);
  only.closes_at_locate = 2;
  check(call(bank({only.port}, 1)).empty(), "to locate changes nothing");
}

void what_was_not_executed_is_made_anew_elsewhere_under_another_name() {
  Gateway first(always(Deed::raise("TRANSIENT", 1))), second(answer);
  Bank::Ledger_var ledger = bank({first.port, second.port}, 1);
  check(call(ledger).empty(), "no exception comes");
  check(first.seen().size() == 1 && second.seen().size() == 1, "it goes elsewhere at once");
  const Seen::Name before = first.seen()[0].name(), after = second.seen()[0].name();
  check(before.retention != after.retention, "servers remember what they answered to a name");
  check(after.client == before.client && after.expiration == before.expiration,
        "its time goes on");
}

void what_may_have_been_executed_is_repeated_under_its_name() {
  for (const char* exception : {"TRANSIENT", "COMM_FAILURE", "NO_RESPONSE", "OBJ_ADAPTER"}) {
    Gateway first(always(Deed::raise(exception, 2))), second(answer);
    Bank::Ledger_var ledger = bank({first.port, second.port}, 1);
    check(call(ledger).empty(), "no exception comes");
    check(first.seen().size() == 1 && second.seen().size() == 1, "it goes elsewhere at once");
    check(first.seen()[0].name() == second.seen()[0].name(), "the name is kept");
  }
}

void other_exceptions_are_the_applications() {
  for (const char* exception : {"BAD_PARAM", "NO_RESOURCES", "BAD_CONTEXT", "TIMEOUT"}) {
    Gateway first(once(Deed::raise(exception, 1))), second(answer);
    Bank::Ledger_var ledger = bank({first.port, second.port}, 1);
    check(call(ledger) == std::string(exception) + " 1", "it is raised");
    check(first.seen().size() + second.seen().size() == 1, "it is not called again");
  }
  Gateway only(once(Deed::raise("COMM_FAILURE", 0)));
  check(call(bank({only.port}, 1)) == "COMM_FAILURE 0", "COMPLETED_YES is raised");
}

void objects_that_are_no_groups_are_left_alone() {
  for (bool is_unnamed : {false, true}) {
    Gateway only(once(Deed::of(Deed::What::Close)));
    std::unique_ptr<quorba_ft::unnamed> scope;
    if (is_unnamed) scope.reset(new quorba_ft::unnamed);
    Bank::Ledger_var ledger = bank({only.port}, is_unnamed ? 1 : -1);
    check(call(ledger) == "COMM_FAILURE 2", "what may have been executed is raised");
    check(call(ledger).empty(), "the next call is answered");
    for (const Seen& seen : only.seen()) {
      check(!seen.has(FT_REQUEST), "it has no name");
      check(seen.has(FT_GROUP_VERSION) == is_unnamed, "only groups have versions");
    }
  }
  Gateway refuses(once(Deed::raise("TRANSIENT", 1)));
  check(call(bank({refuses.port}, -1)) == "TRANSIENT 1", "TRANSIENT of a plain server is raised");
}

void who_is_protected_is_called_under_names() {
  Gateway only(once(Deed::of(Deed::What::Close)));
  Bank::Ledger_var ledger = bank({only.port}, -1);
  quorba_ft::protect(ledger);
  check(call(ledger).empty(), "no exception comes");
  const std::vector<Seen> seen = only.seen();
  check(seen.size() == 2 && seen[0].name() == seen[1].name(), "it is repeated under its name");
}

void a_call_ends_when_its_time_is_over() {
  quorba_ft::within scope(milliseconds(300));
  Gateway refuses(always(Deed::raise("TRANSIENT", 1)));
  const auto began = std::chrono::steady_clock::now();
  check(call(bank({refuses.port}, 1)) == "TRANSIENT 1", "the last exception is raised");
  const auto took = std::chrono::steady_clock::now() - began;
  check(took >= milliseconds(300) && took < milliseconds(30000), "it takes the time it was given");
  check(refuses.seen().size() > 1, "it was called again and again");
  int nth = 0;
  Gateway unsure([&](const Seen&) {
    return nth++ == 0 ? Deed::of(Deed::What::Close) : Deed::raise("TRANSIENT", 1);
  });
  check(call(bank({unsure.port}, 1)) == "TRANSIENT 2",
        "after an attempt of unknown outcome nothing says COMPLETED_NO");
  for (const Seen& seen : unsure.seen()) {
    check(seen.name() == unsure.seen()[0].name(), "then the name is kept");
  }
}

void nobody_listens_and_then_somebody_does() {
  std::uint16_t port = 0;
  { port = Gateway(answer).port; }
  quorba_ft::within scope(milliseconds(300));
  check(call(bank({port}, 1)) == "TRANSIENT 1", "nothing was executed");
}

void a_silent_address_is_left() {
  quorba_ft::within scope(milliseconds(8000));
  Gateway silent(always(Deed::of(Deed::What::Silence))), second(answer);
  Bank::Ledger_var ledger = bank({silent.port, second.port}, 1);
  // If all of its time were spent on the first one, TIMEOUT would be raised.
  check(call(ledger).empty(), "no exception comes");
  check(silent.seen()[0].name() == second.seen()[0].name(), "the name is kept");
}

void a_newer_reference_of_the_same_group_is_taken() {
  Gateway old(answer), fresh(answer);
  Deed tells;
  tells.forward = fake::reference({fresh.port}, 4);
  Gateway first(always(tells));
  Bank::Ledger_var ledger = bank({first.port}, 3);
  check(call(ledger).empty() && call(ledger).empty(), "no exception comes");
  check(first.seen().size() == 1 && fresh.seen().size() == 1, "the next call goes there");
  check(fresh.seen()[0].version() == 4, "with the new version");
  for (int version : {3, 2, -1}) {
    Deed repeats;
    repeats.forward = fake::reference({old.port}, version);
    Gateway stays(always(repeats));
    Bank::Ledger_var other = bank({stays.port}, 3);
    check(call(other).empty() && call(other).empty(), "no exception comes");
    check(stays.seen().size() == 2, "what is no newer one is left alone");
  }
}

void odd_references_do_no_harm() {
  Gateway fresh(answer);
  const fake::Octets whole = fake::reference({fresh.port}, 4);
  std::vector<fake::Octets> odd;
  for (std::size_t size = 1; size < whole.size(); ++size) {
    odd.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bits : {0x01, 0x80, 0xff}) {
      odd.push_back(whole);
      odd.back()[at] = static_cast<std::uint8_t>(odd.back()[at] ^ bits);
    }
  }
  std::size_t nth = 0;
  Gateway first([&](const Seen&) {
    Deed deed;
    deed.forward = odd[nth];
    return deed;
  });
  for (; nth < odd.size(); ++nth) {
    check(call(bank({first.port}, 3)).empty(), "the call is answered");
  }
}

void names_are_of_one_call_each_in_all_threads() {
  const int threads = 8, calls = 60;
  std::mutex mutex;
  std::set<Seen::Name> executed;
  int turn = 0;
  auto script = [&](const Seen& seen) {
    std::lock_guard<std::mutex> lock(mutex);
    const bool is_new = executed.insert(seen.name()).second;
    // Executed, and nobody is told.
    return is_new && ++turn % 3 == 0 ? Deed::of(Deed::What::Close) : Deed();
  };
  Gateway first(script), second(script);
  Bank::Ledger_var ledger = bank({first.port, second.port}, 1);
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&] {
      for (int nth = 0; nth < calls; ++nth) check(call(ledger).empty(), "no exception comes");
    });
  }
  for (std::thread& thread : all) thread.join();
  check(executed.size() == static_cast<std::size_t>(threads * calls), "each call has one name");
}

void a_depth_is_sent_while_somebody_asks_for_it() {
  Gateway only(answer);
  Bank::Ledger_var ledger = bank({only.port}, 1);
  {
    quorba_ft::depth outer(2);
    {
      quorba_ft::depth inner(3);
      call(ledger);
    }
    call(ledger);
  }
  call(ledger);
  const std::vector<Seen> seen = only.seen();
  check(seen.size() == 3, "all come");
  check(seen[0].context(FT_TRANSACTION_DEPTH).u32() == 3, "the inner one counts");
  check(seen[1].context(FT_TRANSACTION_DEPTH).u32() == 2, "then the outer one");
  check(!seen[2].has(FT_TRANSACTION_DEPTH), "then none");
}

void a_depth_that_cannot_be_met_is_not_called_again() {
  Deed too_high = Deed::of(Deed::What::RaiseUser);
  too_high.exception = "IDL:FTRT/TransactionDepthTooHigh:1.0";
  Gateway only(always(too_high));
  quorba_ft::depth scope(9);
  const std::string raised = call(bank({only.port}, 1));
  check(raised.compare(0, 8, "UNKNOWN ") == 0, "stubs do not know this exception: " + raised);
  check(only.seen().size() == 1, "it is raised");
}

void another_orb_has_it_too() {
  orb->destroy();
  int none = 0;
  orb = CORBA::ORB_init(none, nullptr);
  quorba_ft::install();
  quorba_ft::install();
  Gateway only(once(Deed::of(Deed::What::Close)));
  check(call(bank({only.port}, 1)).empty(), "no exception comes");
  check(only.seen()[0].name() == only.seen()[1].name(), "the name is kept");
}

void oneways_have_names_of_their_own() {
  Gateway only(answer);
  Bank::Ledger_var ledger = bank({only.port}, 1);
  for (int nth = 0; nth < 3; ++nth) ledger->note("x");
  call(ledger);
  std::set<Seen::Name> names;
  for (const Seen& seen : only.seen()) names.insert(seen.name());
  check(names.size() == 4, "each has one");
}

}  // namespace

#define RUN(test) \
  running = #test; \
  test()

int main(int argc, char** argv) {
  const char* options[][2] = {{"immediateAddressSwitch", "1"},
                              {"traceLevel", "0"},
                              {nullptr, nullptr}};
  orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  quorba_ft::install();
  RUN(a_call_keeps_its_name_when_its_gateway_goes);
  RUN(a_reply_that_comes_in_part_is_asked_for_again);
  RUN(what_the_orb_sends_again_by_itself_keeps_its_name);
  RUN(an_object_is_located_again);
  RUN(what_was_not_executed_is_made_anew_elsewhere_under_another_name);
  RUN(what_may_have_been_executed_is_repeated_under_its_name);
  RUN(other_exceptions_are_the_applications);
  RUN(objects_that_are_no_groups_are_left_alone);
  RUN(who_is_protected_is_called_under_names);
  RUN(a_call_ends_when_its_time_is_over);
  RUN(nobody_listens_and_then_somebody_does);
  RUN(a_silent_address_is_left);
  RUN(a_newer_reference_of_the_same_group_is_taken);
  RUN(odd_references_do_no_harm);
  RUN(names_are_of_one_call_each_in_all_threads);
  RUN(a_depth_is_sent_while_somebody_asks_for_it);
  RUN(oneways_have_names_of_their_own);
  RUN(a_depth_that_cannot_be_met_is_not_called_again);
  RUN(another_orb_has_it_too);
  orb->destroy();
  return 0;
}
