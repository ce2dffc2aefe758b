// Suppliers and consumers of an event channel (CosEvent), for numbers in order.
//
//   events_client consume CHANNEL        is pushed to, and prints each number
//   events_client supply CHANNEL COUNT   pushes 1 to COUNT, and prints each number that was taken
//   events_client pull CHANNEL           pulls, which waits for an event, and prints each number
//   events_client source CHANNEL COUNT   is pulled for 1 to COUNT, and prints each number
//
// CHANNEL is a reference, such as corbaloc::n1:2812,:n2:2812,:n3:2812/Events/alarms. A call whose
// outcome is not known is repeated, as its user would do.

#include <chrono>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include "CosEventChannelAdmin.hh"

namespace {

using Clock = std::chrono::steady_clock;

// How long somebody goes on who is not answered.
constexpr std::chrono::seconds PATIENCE{60};
constexpr std::chrono::milliseconds PAUSE{20};

void say(CORBA::Long number) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::cout << number << std::endl;
}

void say(const char* word) { std::cout << word << std::endl; }

CORBA::Long number_of(const CORBA::Any& data) {
  CORBA::Long number = 0;
  if (!(data >>= number)) std::cerr << "an event that is no long" << std::endl;
  return number;
}

// Calls until it is answered: a member may end, or another one begin to lead.
template <class Call>
auto again(Call call) -> decltype(call()) {
  const auto end = Clock::now() + PATIENCE;
  for (;;) {
    try {
      return call();
    } catch (const CORBA::TRANSIENT&) {
      if (Clock::now() > end) throw;
    } catch (const CORBA::COMM_FAILURE&) {
      if (Clock::now() > end) throw;
    } catch (const CORBA::TIMEOUT&) {
      if (Clock::now() > end) throw;
    }
    std::this_thread::sleep_for(PAUSE);
  }
}

class Consumer : public POA_CosEventComm::PushConsumer {
  void push(const CORBA::Any& data) override { say(number_of(data)); }
  void disconnect_push_consumer() override { say("disconnected"); }
};

class Source : public POA_CosEventComm::PullSupplier {
 public:
  explicit Source(CORBA::Long count) : count_(count) {}

 private:
  CORBA::Any* try_pull(CORBA::Boolean& has_event) override {
    CORBA::Any_var data(new CORBA::Any());
    std::lock_guard<std::mutex> lock(mutex_);
    has_event = given_ < count_;
    if (has_event) {
      say(++given_);
    }
    data.inout() <<= given_;
    return data._retn();
  }
  CORBA::Any* pull() override { throw CORBA::NO_IMPLEMENT(); }
  void disconnect_pull_supplier() override { say("disconnected"); }

  std::mutex mutex_;
  const CORBA::Long count_;
  CORBA::Long given_ = 0;
};

using Channel = CosEventChannelAdmin::EventChannel_ptr;

[[noreturn]] void wait_for_ever(CORBA::ORB_ptr orb) {
  orb->run();
  throw CORBA::BAD_INV_ORDER();
}

void consume(CORBA::ORB_ptr orb, Channel channel) {
  CosEventChannelAdmin::ConsumerAdmin_var admin = again([&] { return channel->for_consumers(); });
  CosEventChannelAdmin::ProxyPushSupplier_var proxy =
      again([&] { return admin->obtain_push_supplier(); });
  Consumer servant;
  CosEventComm::PushConsumer_var consumer = servant._this();
  again([&] { proxy->connect_push_consumer(consumer); });
  say("connected");
  wait_for_ever(orb);
}

void supply(Channel channel, CORBA::Long count) {
  CosEventChannelAdmin::SupplierAdmin_var admin = again([&] { return channel->for_suppliers(); });
  CosEventChannelAdmin::ProxyPushConsumer_var proxy =
      again([&] { return admin->obtain_push_consumer(); });
  again([&] { proxy->connect_push_supplier(CosEventComm::PushSupplier::_nil()); });
  say("connected");
  for (CORBA::Long number = 1; number <= count; ++number) {
    CORBA::Any data;
    data <<= number;
    again([&] { proxy->push(data); });
    say(number);
  }
}

void pull(Channel channel) {
  CosEventChannelAdmin::ConsumerAdmin_var admin = again([&] { return channel->for_consumers(); });
  CosEventChannelAdmin::ProxyPullSupplier_var proxy =
      again([&] { return admin->obtain_pull_supplier(); });
  again([&] { proxy->connect_pull_consumer(CosEventComm::PullConsumer::_nil()); });
  say("connected");
  for (;;) {
    CORBA::Any_var data = again([&] { return proxy->pull(); });
    say(number_of(data.in()));
  }
}

void source(CORBA::ORB_ptr orb, Channel channel, CORBA::Long count) {
  CosEventChannelAdmin::SupplierAdmin_var admin = again([&] { return channel->for_suppliers(); });
  CosEventChannelAdmin::ProxyPullConsumer_var proxy =
      again([&] { return admin->obtain_pull_consumer(); });
  Source servant(count);
  CosEventComm::PullSupplier_var supplier = servant._this();
  again([&] { proxy->connect_pull_supplier(supplier); });
  say("connected");
  wait_for_ever(orb);
}

int run(CORBA::ORB_ptr orb, int argc, char** argv) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  const std::string role = argc > 2 ? argv[1] : "";
  const CORBA::Long count = argc > 3 ? std::stol(argv[3]) : 0;
  CORBA::Object_var object = orb->string_to_object(argc > 2 ? argv[2] : "");
  CosEventChannelAdmin::EventChannel_var channel =
      again([&] { return CosEventChannelAdmin::EventChannel::_narrow(object); });
  if (CORBA::is_nil(channel)) {
    std::cerr << "usage: events_client consume|supply|pull|source CHANNEL [COUNT]" << std::endl;
    return 2;
  }
  if (role == "consume") consume(orb, channel);
  else if (role == "supply") supply(channel, count);
  else if (role == "pull") pull(channel);
  else if (role == "source") source(orb, channel, count);
  else return 2;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    const int status = run(orb, argc, argv);
    orb->destroy();
    return status;
  } catch (const CORBA::Exception& raised) {
    std::cerr << raised._rep_id() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
  }
  return 1;
}
