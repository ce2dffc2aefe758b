// Goes through every operation of FT::FaultNotifier and the exceptions that they raise. It is
// examples/omniorbpy-faults/driver.py in C++.
//
//   faults_driver NOTIFIER [ORB options]
//
// What it is not: a test of faults; it pushes its own. Invariant: it ends with 0 only if all was as
// it must be, and then no consumer of it is left.

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "FT.hh"

namespace {

using Clock = std::chrono::steady_clock;
using Numbers = std::vector<CORBA::ULongLong>;
using Items = std::map<std::string, CORBA::Any>;

const char* const DOMAIN_NAME = "FT_CORBA";
const char* const KIND = "ObjectCrashFault";
// How long a report may take to come, and who is cut off to be forgotten.
const std::chrono::seconds TIME_MAX(20);
const CORBA::ULongLong NOBODY = 987654321;
// Whose faults these are: no domain is called so, and no two runs have the same.
const std::string OWN = "driver-" + std::to_string(Clock::now().time_since_epoch().count());
int steps = 0;

void check(bool is_so, const std::string& what) {
  if (!is_so) {
    std::cerr << "not so: " << what << std::endl;
    std::_Exit(1);
  }
  ++steps;
  std::cout << "ok " << steps << " " << what << std::endl;
}

template <class Exception>
void raises(const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& found) {
    return check(true, what + ": " + found._name());
  } catch (const CORBA::Exception& other) {
    check(false, what + ", found " + other._rep_id());
  }
  check(false, what + ", and nothing was raised");
}

Items items(const CosNotification::StructuredEvent& event) {
  Items items;
  for (CORBA::ULong index = 0; index < event.filterable_data.length(); ++index)
    items[event.filterable_data[index].name.in()] = event.filterable_data[index].value;
  return items;
}

std::string text(const CORBA::Any& any) {
  const char* text = "";
  return (any >>= text) ? text : "";
}

// Reports in the order in which they came.
class Events {
 public:
  void put(const CosNotification::StructuredEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (text(items(event)["FTDomainId"]) == OWN) events_.push_back(event);
    changed_.notify_one();
  }

  CosNotification::StructuredEvent next() {
    std::unique_lock<std::mutex> lock(mutex_);
    check(changed_.wait_for(lock, TIME_MAX, [this] { return !events_.empty(); }),
          "a report comes");
    const CosNotification::StructuredEvent event = events_.front();
    events_.pop_front();
    return event;
  }

  // Whether the groups of the next ones are these.
  bool next_are(const Numbers& groups) {
    Numbers found;
    for (size_t count = 0; count < groups.size(); ++count) {
      CORBA::ULongLong group = 0;
      items(next())["ObjectGroupId"] >>= group;
      found.push_back(group);
    }
    return found == groups;
  }

  bool is_empty() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return events_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CosNotification::StructuredEvent> events_;
};

// A consumer that keeps what it is given, or takes nothing.
class Structured : public POA_CosNotifyComm::StructuredPushConsumer {
 public:
  explicit Structured(bool takes = true) : takes_(takes) {}
  void offer_change(const CosNotification::EventTypeSeq&,
                    const CosNotification::EventTypeSeq&) override {}
  void push_structured_event(const CosNotification::StructuredEvent& event) override {
    if (!takes_) throw CosEventComm::Disconnected();
    events.put(event);
  }
  void disconnect_structured_push_consumer() override {}

  Events events;

 private:
  const bool takes_;
};

// One that takes several at a time.
class Sequence : public POA_CosNotifyComm::SequencePushConsumer {
 public:
  void offer_change(const CosNotification::EventTypeSeq&,
                    const CosNotification::EventTypeSeq&) override {}
  void push_structured_events(const CosNotification::EventBatch& batch) override {
    for (CORBA::ULong index = 0; index < batch.length(); ++index) events.put(batch[index]);
  }
  void disconnect_sequence_push_consumer() override {}

  Events events;
};

CosNotification::StructuredEvent fault(const char* location, CORBA::ULongLong group,
                                       const char* kind = KIND) {
  CosNotification::StructuredEvent event;
  event.header.fixed_header.event_type.domain_name = DOMAIN_NAME;
  event.header.fixed_header.event_type.type_name = kind;
  CosNaming::Name name;
  name.length(1);
  name[0].id = location;
  event.filterable_data.length(4);
  const char* const names[] = {"FTDomainId", "Location", "TypeId", "ObjectGroupId"};
  for (CORBA::ULong index = 0; index < 4; ++index)
    event.filterable_data[index].name = names[index];
  event.filterable_data[0].value <<= OWN.c_str();
  event.filterable_data[1].value <<= name;
  event.filterable_data[2].value <<= "IDL:Bank/Ledger:1.0";
  event.filterable_data[3].value <<= group;
  return event;
}

CosNotification::EventTypeSeq types(const char* kind, const char* domain = DOMAIN_NAME) {
  CosNotification::EventTypeSeq types;
  types.length(1);
  types[0].domain_name = domain;
  types[0].type_name = kind;
  return types;
}

void push(FT::FaultNotifier_ptr notifier,
          const std::vector<CosNotification::StructuredEvent>& events) {
  CosNotification::EventBatch batch;
  batch.length(events.size());
  for (size_t index = 0; index < events.size(); ++index) batch[index] = events[index];
  notifier->push_sequence_fault(batch);
}

// What is pushed comes to both kinds of consumers.
void reports(FT::FaultNotifier_ptr notifier, Events& one, Events& many) {
  notifier->push_structured_fault(fault("n1", 1));
  const CosNotification::StructuredEvent event = one.next();
  const CosNotification::EventType& kind = event.header.fixed_header.event_type;
  check(kind.domain_name.in() == std::string(DOMAIN_NAME) &&
            kind.type_name.in() == std::string(KIND),
        "a report comes with its type");
  Items found = items(event);
  const CosNaming::Name* name = nullptr;
  check((found["Location"] >>= name) && name->length() == 1 &&
            (*name)[0].id.in() == std::string("n1") && (*name)[0].kind.in() == std::string(),
        "its location");
  check(text(found["TypeId"]) == "IDL:Bank/Ledger:1.0", "its object's type");
  CORBA::ULongLong group = 0;
  check((found["ObjectGroupId"] >>= group) && group == 1, "and its group");
  check(many.next_are({1}), "to who takes several at a time, too");
  push(notifier, {fault("n1", 2), fault("n2", 3)});
  check(one.next_are({2, 3}), "reports come one by one, in their order");
  check(many.next_are({2, 3}), "or together");
  push(notifier, {});
  CosNotification::StructuredEvent too_large = fault("n1", 4);
  too_large.remainder_of_body <<= std::string(20000, 'x').c_str();
  raises<CORBA::IMP_LIMIT>("a report of 20,000 octets",
                           [&] { notifier->push_structured_fault(too_large); });
  raises<CORBA::IMP_LIMIT>("or one in a sequence", [&] { push(notifier, {too_large}); });
}

void constraints(FT::FaultNotifier_ptr notifier, CORBA::ULongLong first, Events& one,
                 Events& many) {
  notifier->replace_constraint(first, types(KIND),
                               "$ObjectGroupId == 5 and $Location[0].id == 'n2'");
  notifier->push_structured_fault(fault("n1", 5));
  notifier->push_structured_fault(fault("n2", 4));
  notifier->push_structured_fault(fault("n2", 5));
  check(one.next_are({5}), "a constraint lets pass what it says");
  check(one.is_empty(), "and nothing else");
  check(many.next_are({5, 4, 5}), "others get everything");
  for (const char* wrong : {"$a ==", "$a = 1", "(", "'"})
    raises<CORBA::BAD_PARAM>(std::string("a constraint that is none: ") + wrong, [&] {
      notifier->replace_constraint(first, types(KIND), wrong);
    });
  raises<CORBA::BAD_PARAM>("and one for nobody", [&] {
    notifier->replace_constraint(NOBODY, types(KIND), "TRUE");
  });
  push(notifier, {fault("n1", 6), fault("n2", 5)});
  check(one.next_are({5}), "what was refused has changed nothing");
  notifier->replace_constraint(first, types("Other"), "TRUE");
  push(notifier, {fault("n1", 7), fault("n1", 8, "Other")});
  check(one.next_are({8}), "a constraint is about types of events");
  notifier->replace_constraint(first, types("*", "%ALL"), "$ObjectGroupId == 9");
  push(notifier, {fault("n1", 10), fault("n1", 9, "Other")});
  check(one.next_are({9}), "or about all of them");
  notifier->replace_constraint(first, CosNotification::EventTypeSeq(), "TRUE");
  notifier->push_structured_fault(fault("n1", 11));
  check(one.next_are({11}), "and is replaced by the next one");
  check(many.next_are({6, 5, 7, 8, 10, 9, 11}), "nobody else minds");
}

// Waits until a consumer is not connected any more; until then it may have a constraint.
void wait_forgotten(FT::FaultNotifier_ptr notifier, CORBA::ULongLong consumer) {
  const auto began = Clock::now();
  while (Clock::now() - began < TIME_MAX) {
    try {
      notifier->replace_constraint(consumer, CosNotification::EventTypeSeq(), "TRUE");
    } catch (const CORBA::BAD_PARAM&) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  check(false, "who says that it is disconnected is forgotten");
}

void gone(FT::FaultNotifier_ptr notifier, CORBA::ULongLong first, CORBA::ULongLong second,
          Events& one, Events& many) {
  Structured refusing(false);
  CosNotifyComm::StructuredPushConsumer_var reference = refusing._this();
  const CORBA::ULongLong third = notifier->connect_structured_fault_consumer(reference);
  notifier->push_structured_fault(fault("n1", 12));
  check(one.next_are({12}) && many.next_are({12}), "who refuses keeps nobody waiting");
  wait_forgotten(notifier, third);
  check(true, "who says that it is disconnected is forgotten");
  using CosEventComm::Disconnected;
  raises<Disconnected>("it is not disconnected again",
                       [&] { notifier->disconnect_consumer(third); });
  notifier->disconnect_consumer(first);
  notifier->push_structured_fault(fault("n1", 13));
  check(many.next_are({13}) && one.is_empty(), "who is disconnected gets nothing more");
  raises<Disconnected>("and is not disconnected again",
                       [&] { notifier->disconnect_consumer(first); });
  raises<CORBA::BAD_PARAM>("nor has it a constraint", [&] {
    notifier->replace_constraint(first, CosNotification::EventTypeSeq(), "TRUE");
  });
  notifier->disconnect_consumer(second);
  raises<Disconnected>("nor who took several", [&] { notifier->disconnect_consumer(second); });
  raises<Disconnected>("nor who never was", [&] { notifier->disconnect_consumer(NOBODY); });
}

void drive(FT::FaultNotifier_ptr notifier) {
  using CosNotifyComm::SequencePushConsumer;
  using CosNotifyComm::StructuredPushConsumer;
  Structured one;
  Sequence many;
  CosNotifyComm::StructuredPushConsumer_var takes_one = one._this();
  CosNotifyComm::SequencePushConsumer_var takes_many = many._this();
  const CORBA::ULongLong first = notifier->connect_structured_fault_consumer(takes_one);
  const CORBA::ULongLong second = notifier->connect_sequence_fault_consumer(takes_many);
  check(first != second, "consumers have numbers");
  raises<CORBA::BAD_PARAM>("nothing is no consumer", [&] {
    notifier->connect_structured_fault_consumer(StructuredPushConsumer::_nil());
  });
  raises<CORBA::BAD_PARAM>("nor one of sequences", [&] {
    notifier->connect_sequence_fault_consumer(SequencePushConsumer::_nil());
  });
  reports(notifier, one.events, many.events);
  constraints(notifier, first, one.events, many.events);
  gone(notifier, first, second, one.events, many.events);
  std::cout << steps << " steps" << std::endl;
  // The servants are on the stack, and the POA would look for them.
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc != 2) {
    std::cerr << "faults_driver NOTIFIER" << std::endl;
    return 2;
  }
  try {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = poa->the_POAManager();
    manager->activate();
    object = orb->string_to_object(argv[1]);
    FT::FaultNotifier_var notifier = FT::FaultNotifier::_narrow(object);
    check(!CORBA::is_nil(notifier), "it is a fault notifier");
    drive(notifier);
  } catch (const CORBA::SystemException& exception) {
    std::cerr << exception._name() << " minor " << std::hex << exception.minor() << std::endl;
  } catch (const CORBA::Exception& exception) {
    std::cerr << exception._rep_id() << std::endl;
  }
  std::_Exit(1);
}
