// Consumers and suppliers of TAO's interfaces, with filters of any kind, for a test: it has nothing
// of Quorba in it, and nothing is called again.
//
//   filters_client consume CHANNEL [rtec|facade FILTER]...
//   filters_client supply CHANNEL rtec|facade EVENTS
//
// CHANNEL is a corbaloc that ends with the channel's name. A FILTER is the parts of a subscription,
// TYPE:SOURCE:PERIOD with commas between; EVENTS are TYPE:SOURCE:NUMBER in the same way. `consume`
// prints the place of the filter and what came together, as `3 7+9`; of a timer its type, as `t5`.
// `supply` prints each number that was taken.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "FtRtecEventChannelAdmin.hh"
#include "RtecEventChannelAdmin.hh"

namespace {

const CORBA::Long FIRST_OF_APPLICATIONS = 16;

void say(const std::string& what) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::cout << what << std::endl;
}

class Consumer : public POA_RtecEventComm::PushConsumer {
 public:
  explicit Consumer(int place) : place_(place) {}

 private:
  void push(const RtecEventComm::EventSet& events) override {
    std::string text;
    for (CORBA::ULong nth = 0; nth < events.length(); ++nth) {
      const CORBA::Long type = events[nth].header.type;
      CORBA::Long number = 0;
      if (!text.empty()) text += '+';
      if (type < FIRST_OF_APPLICATIONS) text += 't' + std::to_string(type);
      else if (events[nth].data.any_value >>= number) text += std::to_string(number);
      else text += '?';
    }
    say(std::to_string(place_) + ' ' + text);
  }
  void disconnect_push_consumer() override { say("disconnected"); }

  const int place_;
};

// Numbers with colons between them, of which each has three.
std::vector<RtecEventComm::Event> read(const std::string& text) {
  std::vector<RtecEventComm::Event> all;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    RtecEventComm::Event event;
    char colon = 0;
    long long last = 0;
    std::istringstream numbers(part);
    numbers >> event.header.type >> colon >> event.header.source >> colon >> last;
    event.header.ttl = 1;
    event.header.creation_time = static_cast<RtecEventComm::Time>(last);
    event.header.ec_recv_time = event.header.ec_send_time = 0;
    event.data.pad1 = 0;
    all.push_back(event);
  }
  return all;
}

RtecEventChannelAdmin::ConsumerQOS subscription(const std::string& text) {
  RtecEventChannelAdmin::ConsumerQOS wanted;
  wanted.is_gateway = false;
  for (const RtecEventComm::Event& event : read(text)) {
    const CORBA::ULong length = wanted.dependencies.length();
    wanted.dependencies.length(length + 1);
    wanted.dependencies[length].event = event;
    wanted.dependencies[length].rt_info = 0;
  }
  return wanted;
}

CORBA::Object_ptr object(CORBA::ORB_ptr orb, const std::string& channel, const char* behind) {
  return orb->string_to_object((channel + behind).c_str());
}

FtRtecEventChannelAdmin::EventChannelFacade_ptr facade(CORBA::ORB_ptr orb,
                                                       const std::string& channel) {
  CORBA::Object_var found = object(orb, channel, "/ft");
  return FtRtecEventChannelAdmin::EventChannelFacade::_unchecked_narrow(found);
}

RtecEventChannelAdmin::EventChannel_ptr rtec(CORBA::ORB_ptr orb, const std::string& channel) {
  CORBA::Object_var found = object(orb, channel, "/rtec");
  return RtecEventChannelAdmin::EventChannel::_unchecked_narrow(found);
}

void consume(CORBA::ORB_ptr orb, const std::string& channel, int count, char** pairs) {
  FtRtecEventChannelAdmin::EventChannelFacade_var by_facade = facade(orb, channel);
  RtecEventChannelAdmin::EventChannel_var by_rtec = rtec(orb, channel);
  RtecEventChannelAdmin::ConsumerAdmin_var admin = by_rtec->for_consumers();
  std::vector<std::unique_ptr<Consumer>> servants;
  for (int place = 0; 2 * place + 1 < count; ++place) {
    servants.emplace_back(new Consumer(place));
    RtecEventComm::PushConsumer_var consumer = servants.back()->_this();
    const RtecEventChannelAdmin::ConsumerQOS wanted = subscription(pairs[2 * place + 1]);
    if (std::string(pairs[2 * place]) == "facade") {
      FtRtecEventComm::ObjectId_var id = by_facade->connect_push_consumer(consumer, wanted);
    } else {
      RtecEventChannelAdmin::ProxyPushSupplier_var proxy = admin->obtain_push_supplier();
      proxy->connect_push_consumer(consumer, wanted);
    }
  }
  say("connected");
  orb->run();
}

void supply(CORBA::ORB_ptr orb, const std::string& channel, bool is_facade, const char* text) {
  RtecEventChannelAdmin::SupplierQOS offered;
  offered.is_gateway = false;
  FtRtecEventChannelAdmin::EventChannelFacade_var by_facade;
  FtRtecEventComm::ObjectId_var id;
  RtecEventChannelAdmin::ProxyPushConsumer_var proxy;
  if (is_facade) {
    by_facade = facade(orb, channel);
    id = by_facade->connect_push_supplier(RtecEventComm::PushSupplier::_nil(), offered);
  } else {
    RtecEventChannelAdmin::EventChannel_var by_rtec = rtec(orb, channel);
    RtecEventChannelAdmin::SupplierAdmin_var admin = by_rtec->for_suppliers();
    proxy = admin->obtain_push_consumer();
    proxy->connect_push_supplier(RtecEventComm::PushSupplier::_nil(), offered);
  }
  say("connected");
  for (RtecEventComm::Event& event : read(text)) {
    const CORBA::Long number = static_cast<CORBA::Long>(event.header.creation_time);
    event.data.any_value <<= number;
    RtecEventComm::EventSet events;
    events.length(1);
    events[0] = event;
    if (is_facade) by_facade->push(id, events);
    else proxy->push(events);
    say(std::to_string(number));
  }
  // What was sent without a reply is there when this is answered.
  if (!is_facade) proxy->disconnect_push_consumer();
}

int run(CORBA::ORB_ptr orb, int argc, char** argv) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  const std::string role = argc > 2 ? argv[1] : "";
  if (role == "consume") consume(orb, argv[2], argc - 3, argv + 3);
  else if (role == "supply" && argc > 4)
    supply(orb, argv[2], std::string(argv[3]) == "facade", argv[4]);
  else {
    std::cerr << "usage: filters_client consume|supply CHANNEL [rtec|facade TEXT]..." << std::endl;
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    const int status = run(orb, argc, argv);
    orb->destroy();
    return status;
  } catch (const CORBA::SystemException& raised) {
    std::cerr << raised._rep_id() << " minor 0x" << std::hex << raised.minor() << std::endl;
  } catch (const CORBA::Exception& raised) {
    std::cerr << raised._rep_id() << std::endl;
  }
  return 1;
}
