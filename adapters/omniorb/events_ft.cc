// Suppliers and consumers of an event channel, connected by one call each, and calls that are made
// again by themselves: nothing here catches an exception to try once more.
//
//   events_ft consume CHANNEL        is pushed to, and prints each number, as often as it comes
//   events_ft once CHANNEL           prints each number once
//   events_ft supply CHANNEL COUNT   pushes 1 to COUNT, and prints each number that was taken
//
// CHANNEL is a corbaloc, such as corbaloc:iiop:1.2@n1:2812,iiop:1.2@n2:2812/Events/alarms. With
// DEPTH in the environment every call carries that transaction depth.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>

#include "quorba_events.h"
#include "quorba_ft.h"

namespace {

const CORBA::Long TYPE = 16;  // the first one that is free for applications
const CORBA::Long SOURCE = 1;

void say(const std::string& what) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::cout << what << std::endl;
}

void say_all(const RtecEventComm::EventSet& events) {
  for (CORBA::ULong nth = 0; nth < events.length(); ++nth) {
    CORBA::Long number = 0;
    if (events[nth].data.any_value >>= number) say(std::to_string(number));
    else std::cerr << "an event that is no long" << std::endl;
  }
}

class Consumer : public POA_RtecEventComm::PushConsumer {
  void push(const RtecEventComm::EventSet& events) override { say_all(events); }
  void disconnect_push_consumer() override { say("disconnected"); }
};

class OnceConsumer : public quorba_ft::Once {
  void events(const RtecEventComm::EventSet& events) override { say_all(events); }
  void disconnect_push_consumer() override { say("disconnected"); }
};

void consume(CORBA::ORB_ptr orb, const std::string& channel) {
  Consumer servant;
  RtecEventComm::PushConsumer_var consumer = servant._this();
  FtRtecEventChannelAdmin::EventChannel_var facade = quorba_ft::facade(orb, channel);
  FtRtecEventComm::ObjectId_var id = quorba_ft::subscribe(facade, consumer);
  say("connected");
  orb->run();
}

void once(CORBA::ORB_ptr orb, const std::string& channel) {
  OnceConsumer servant;
  QuorbaEvents::NumberedConsumer_var consumer = servant._this();
  FtRtecEventComm::ObjectId_var id = quorba_ft::subscribe_once(orb, channel, consumer);
  say("connected");
  orb->run();
}

void supply(CORBA::ORB_ptr orb, const std::string& channel, CORBA::Long count) {
  quorba_ft::Supplier supplier(orb, channel);
  say("connected");
  for (CORBA::Long number = 1; number <= count; ++number) {
    CORBA::Any value;
    value <<= number;
    supplier.push(value, TYPE, SOURCE);
    say(std::to_string(number));
  }
  supplier.disconnect();
  const quorba_ft::Figures figures = quorba_ft::figures();
  std::cerr << figures.named << " calls named, sent again " << figures.again << " times, "
            << figures.left << " connections left, " << figures.references << " references taken"
            << std::endl;
}

int run(CORBA::ORB_ptr orb, int argc, char** argv) {
  quorba_ft::install();
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  const std::string role = argc > 2 ? argv[1] : "";
  const char* depth = std::getenv("DEPTH");
  std::unique_ptr<quorba_ft::depth> scope;
  if (depth) scope.reset(new quorba_ft::depth(std::atoi(depth)));
  if (role == "consume") consume(orb, argv[2]);
  else if (role == "once") once(orb, argv[2]);
  else if (role == "supply" && argc > 3) supply(orb, argv[2], std::atoi(argv[3]));
  else {
    std::cerr << "usage: events_ft consume|once|supply CHANNEL [COUNT]" << std::endl;
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const char* defaults[][2] = {{"immediateAddressSwitch", "1"}, {nullptr, nullptr}};
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", defaults);
    const int status = run(orb, argc, argv);
    orb->destroy();
    return status;
  } catch (const CORBA::SystemException& raised) {
    std::cerr << raised._rep_id() << " minor 0x" << std::hex << raised.minor() << " completed "
              << std::dec << raised.completed() << std::endl;
  } catch (const CORBA::Exception& raised) {
    std::cerr << raised._rep_id() << std::endl;
  }
  return 1;
}
