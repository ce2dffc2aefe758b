// See the header. What it is not: an application. A thing does nothing but to be alive; one that
// has died is an object that its ORB does not know any more.

#include "factories.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace {

const char* const THING = "IDL:Test/Thing:1.0";

FT::Name name(const std::string& id) {
  FT::Name name;
  name.length(1);
  name[0].id = id.c_str();
  name[0].kind = "";
  return name;
}

template <class T>
FT::Property property(const std::string& id, const T& value) {
  FT::Property property;
  property.nam = name(id);
  property.val <<= value;
  return property;
}

FT::Properties list(const std::vector<FT::Property>& all) {
  FT::Properties properties;
  properties.length(all.size());
  for (size_t index = 0; index < all.size(); ++index) properties[index] = all[index];
  return properties;
}

class Thing : public POA_FT::PullMonitorable {
 public:
  CORBA::Boolean is_alive() override { return true; }
};

// The factory of one node.
class Factory : public POA_FT::GenericFactory {
 public:
  Factory(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, int port)
      : orb_(CORBA::ORB::_duplicate(orb)),
        poa_(PortableServer::POA::_duplicate(poa)),
        port_(port) {}

  CORBA::Object_ptr create_object(const char* type_id, const FT::Criteria& criteria,
                                  CORBA::Any_OUT_arg id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    type_ = type_id;
    criteria_ = criteria;
    if (refuses_) throw FT::ObjectNotCreated();
    ++last_;
    Thing* thing = new Thing;
    PortableServer::ObjectId_var key = PortableServer::string_to_ObjectId(key_of(last_).c_str());
    poa_->activate_object_with_id(key, thing);
    thing->_remove_ref();
    things_[last_] = true;
    CORBA::Any* made = new CORBA::Any;
    *made <<= last_;
    id = made;
    const std::string text =
        "corbaloc:iiop:1.2@127.0.0.1:" + std::to_string(port_) + "/" + key_of(last_);
    return orb_->string_to_object(text.c_str());
  }

  void delete_object(const CORBA::Any& id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    CORBA::ULong number = 0;
    const auto found = (id >>= number) ? things_.find(number) : things_.end();
    if (found == things_.end()) throw FT::ObjectNotFound();
    if (found->second) end(number);
    things_.erase(found);
  }

  void refuse(bool refuses) {
    std::lock_guard<std::mutex> lock(mutex_);
    refuses_ = refuses;
  }

  // What it has made dies; the factory knows it still.
  void kill() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& thing : things_) {
      if (thing.second) end(thing.first);
      thing.second = false;
    }
  }

  size_t things() {
    std::lock_guard<std::mutex> lock(mutex_);
    return things_.size();
  }

  // Whether it was told this type, place and numbers, and nothing else.
  bool was_told(const std::string& node, const std::map<std::string, CORBA::UShort>& numbers) {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t told = 0;
    for (CORBA::ULong index = 0; index < criteria_.length(); ++index) {
      const std::string id = criteria_[index].nam[0].id.in();
      const FT::Location* place = nullptr;
      CORBA::UShort number = 0;
      if (id == "org.omg.ft.ObjectLocation") {
        if (!(criteria_[index].val >>= place) || place->length() != 1) return false;
        if ((*place)[0].id.in() != node) return false;
        continue;
      }
      const auto wanted = numbers.find(id);
      if (wanted == numbers.end() || !(criteria_[index].val >>= number)) return false;
      if (number != wanted->second) return false;
      ++told;
    }
    return type_ == THING && told == numbers.size() && criteria_.length() == told + 1;
  }

 private:
  std::string key_of(CORBA::ULong number) const {
    return "thing-" + std::to_string(port_) + "-" + std::to_string(number);
  }

  void end(CORBA::ULong number) {
    PortableServer::ObjectId_var key = PortableServer::string_to_ObjectId(key_of(number).c_str());
    poa_->deactivate_object(key);
  }

  std::mutex mutex_;
  CORBA::ORB_var orb_;
  PortableServer::POA_var poa_;
  const int port_;
  std::string type_;
  FT::Criteria criteria_;
  // By number: whether it is alive.
  std::map<CORBA::ULong, bool> things_;
  CORBA::ULong last_ = 0;
  bool refuses_ = false;
};

std::string locations(FT::ReplicationManager_ptr manager, CORBA::Object_ptr group) {
  FT::Locations_var found = manager->locations_of_members(group);
  std::string text;
  for (CORBA::ULong index = 0; index < found->length(); ++index) {
    text += (index ? " " : "") + std::string(found[index][0].id);
  }
  return text;
}

bool in_time(const std::function<bool()>& is_so) {
  for (int tries = 0; tries < 1200; ++tries) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// A group whose objects are asked every 50 ms.
FT::Criteria wanted(const FT::FactoryInfos& infos, CORBA::UShort initial) {
  FT::FaultMonitoringIntervalAndTimeoutValue times;
  times.monitoring_interval = 500000;
  times.timeout = 20000000;
  const FT::Properties own = list({
      property("org.omg.ft.Factories", infos),
      property<CORBA::UShort>("org.omg.ft.ReplicationStyle", FT::STATELESS),
      property<CORBA::UShort>("org.omg.ft.InitialNumberReplicas", initial),
      property<CORBA::UShort>("org.omg.ft.MinimumNumberReplicas", 2),
      property<CORBA::UShort>("org.omg.ft.FaultMonitoringStyle", FT::PULL),
      property("org.omg.ft.FaultMonitoringIntervalAndTimeout", times),
  });
  return list({property("org.omg.ft.FTProperties", own), property<CORBA::UShort>("size", 5)});
}

}  // namespace

std::vector<int> free_ports(size_t count) {
  std::vector<int> sockets, ports;
  for (size_t index = 0; index < count; ++index) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(sockets.back(), generic, length) || getsockname(sockets.back(), generic, &length)) {
      throw std::runtime_error("no port is free");
    }
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int one : sockets) close(one);
  return ports;
}

void factories(FT::ReplicationManager_ptr manager, const std::vector<std::string>& nodes,
               CORBA::ORB_ptr orb, const std::vector<int>& ports,
               const std::function<void(bool, const std::string&)>& check) {
  CORBA::Object_var object = orb->resolve_initial_references("omniINSPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var activator = poa->the_POAManager();
  activator->activate();
  std::vector<Factory*> made;
  FT::FactoryInfos infos;
  infos.length(3);
  for (CORBA::ULong index = 0; index < 3; ++index) {
    made.push_back(new Factory(orb, poa, ports[index]));
    const std::string key = "factory-" + std::to_string(index);
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(key.c_str());
    poa->activate_object_with_id(id, made.back());
    infos[index].the_factory = made.back()->_this();
    infos[index].the_location = name(nodes[index]);
    infos[index].the_criteria = list({property<CORBA::UShort>("colour", 7)});
  }
  const auto things = [&] {
    return std::to_string(made[0]->things()) + std::to_string(made[1]->things()) +
           std::to_string(made[2]->things());
  };

  CORBA::Any_var id;
  CORBA::Object_var group = manager->create_object(THING, wanted(infos, 2), id.out());
  check(locations(manager, group) == nodes[0] + " " + nodes[1], "factories make the members");
  check(made[0]->was_told(nodes[0], {{"colour", 7}, {"size", 5}}), "they are told the criteria");
  FT::PullMonitorable_var called = FT::PullMonitorable::_narrow(group);
  check(!CORBA::is_nil(called) && called->is_alive(), "the group is called");

  made[2]->refuse(true);
  bool is_refused = false;
  try {
    CORBA::Any_var other;
    CORBA::Object_var none = manager->create_object(THING, wanted(infos, 3), other.out());
  } catch (const FT::ObjectNotCreated&) {
    is_refused = true;
  }
  check(is_refused, "what a factory does not create is not created");
  check(things() == "110", "and what others have made for it is deleted");
  made[2]->refuse(false);

  made[0]->kill();
  const std::string after = nodes[1] + " " + nodes[2];
  check(in_time([&] { return locations(manager, group) == after; }),
        "who has died is replaced by another factory");
  check(in_time([&] { return things() == "011"; }), "and its factory is told that it goes");
  manager->delete_object(id.in());
  check(things() == "000", "all objects go with their group");
  for (CORBA::ULong index = 0; index < 3; ++index) {
    const std::string key = "factory-" + std::to_string(index);
    PortableServer::ObjectId_var gone = PortableServer::string_to_ObjectId(key.c_str());
    poa->deactivate_object(gone);
    made[index]->_remove_ref();
  }
}
