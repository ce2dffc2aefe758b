// Goes through every operation of FT::ReplicationManager and every exception that they raise, and
// compares the exceptions' fields; and has it call factories of this program.
//
// What it is not: a test of faults. Invariant: it ends with 0 only if all was as it must be.

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "FT.hh"
#include "bank.hh"
#include "factories.h"

namespace {

const char* const LEDGER = "IDL:Bank/Ledger:1.0";
int steps = 0;

void check(bool is_so, const std::string& what) {
  if (!is_so) {
    std::cerr << "not so: " << what << std::endl;
    std::exit(1);
  }
  ++steps;
  std::cout << "ok " << steps << " " << what << std::endl;
}

template <class Exception>
void raises(const std::string& what, const std::function<void()>& call,
            const std::function<bool(const Exception&)>& is_it = nullptr) {
  try {
    call();
  } catch (const Exception& found) {
    return check(!is_it || is_it(found), what + ": " + found._name());
  } catch (const CORBA::Exception& other) {
    check(false, what + ", but " + other._rep_id());
  }
  check(false, what + ", and nothing was raised");
}

FT::Name name(const std::string& id) {
  FT::Name name;
  name.length(1);
  name[0].id = id.c_str();
  name[0].kind = "";
  return name;
}

bool is(const FT::Name& found, const std::string& id) {
  return found.length() == 1 && found[0].id.in() == id && found[0].kind.in() == std::string();
}

template <class T>
FT::Property property(const char* id, T value) {
  FT::Property property;
  property.nam = name(id);
  property.val <<= value;
  return property;
}

FT::Properties properties(const std::vector<FT::Property>& list) {
  FT::Properties properties;
  properties.length(list.size());
  for (size_t index = 0; index < list.size(); ++index) properties[index] = list[index];
  return properties;
}

FT::Criteria wanted(const std::vector<FT::Property>& list) {
  FT::Property criterion;
  criterion.nam = name("org.omg.ft.FTProperties");
  criterion.val <<= properties(list);
  return properties({criterion});
}

FT::Property style(CORBA::UShort value) {
  return property<CORBA::UShort>("org.omg.ft.ReplicationStyle", value);
}

FT::Property initial(CORBA::UShort value) {
  return property<CORBA::UShort>("org.omg.ft.InitialNumberReplicas", value);
}

FT::Property minimum(CORBA::UShort value) {
  return property<CORBA::UShort>("org.omg.ft.MinimumNumberReplicas", value);
}

// Whether a property is this one, whose value is a number.
bool is(const FT::Name& name, const CORBA::Any& value, const FT::Property& expected) {
  CORBA::UShort found = 0, number = 1;
  return (value >>= found) && (expected.val >>= number) && found == number &&
         is(name, expected.nam[0].id.in());
}

// Whether the only property of a list is this one.
bool is(const FT::Properties& found, const FT::Property& expected) {
  return found.length() == 1 && is(found[0].nam, found[0].val, expected);
}

// An exception about a property, which it has with its value.
template <class Exception>
void raises_property(const std::string& what, const FT::Property& expected,
                     const std::function<void()>& call) {
  raises<Exception>(what, call, [&](const Exception& found) {
    return is(found.nam, found.val, expected);
  });
}

std::string locations(FT::ReplicationManager_ptr manager, CORBA::Object_ptr group) {
  FT::Locations_var found = manager->locations_of_members(group);
  std::string text;
  for (CORBA::ULong index = 0; index < found->length(); ++index) {
    text += (index ? " " : "") + std::string(found[index][0].id);
  }
  return text;
}

using Setter = std::function<void(const FT::Properties&)>;

const FT::Property wrong = style(77);
const FT::Property unknown = property<CORBA::UShort>("org.omg.ft.Colour", 1);

void property_manager(FT::ReplicationManager_ptr manager) {
  manager->set_default_properties(properties({initial(2), minimum(1)}));
  FT::Properties_var defaults = manager->get_default_properties();
  check(defaults->length() == 2, "defaults are what was set");
  manager->set_type_properties(LEDGER, properties({initial(3)}));
  FT::Properties_var of_type = manager->get_type_properties(LEDGER);
  check(of_type->length() == 2 && is(of_type[0].nam, of_type[0].val, initial(3)) &&
            is(of_type[1].nam, of_type[1].val, minimum(1)),
        "a type's property goes before the default");
  const std::vector<std::pair<std::string, Setter>> setters{
      {"a default", [&](const FT::Properties& all) { manager->set_default_properties(all); }},
      {"a type's",
       [&](const FT::Properties& all) { manager->set_type_properties(LEDGER, all); }},
  };
  for (const auto& setter : setters) {
    const Setter& set = setter.second;
    raises_property<FT::InvalidProperty>(setter.first + " that is wrong", wrong,
                                         [&] { set(properties({wrong})); });
    raises_property<FT::UnsupportedProperty>(setter.first + " that is unknown", unknown,
                                             [&] { set(properties({style(3), unknown})); });
  }
  const std::vector<std::pair<std::string, Setter>> removers{
      {"default", [&](const FT::Properties& all) { manager->remove_default_properties(all); }},
      {"type's",
       [&](const FT::Properties& all) { manager->remove_type_properties(LEDGER, all); }},
  };
  for (const auto& remover : removers) {
    const Setter& remove = remover.second;
    raises_property<FT::InvalidProperty>("no " + remover.first + " is removed that is not set",
                                         style(3), [&] { remove(properties({style(3)})); });
    raises_property<FT::UnsupportedProperty>("nor one that is unknown", unknown,
                                             [&] { remove(properties({unknown})); });
  }
  manager->remove_type_properties(LEDGER, properties({initial(3)}));
  manager->remove_default_properties(properties({minimum(1)}));
  defaults = manager->get_default_properties();
  check(is(defaults.in(), initial(2)), "what is removed is gone");
  manager->remove_default_properties(properties({initial(2)}));
}

void generic_factory(FT::ReplicationManager_ptr manager) {
  const auto create = [&](const char* type, const FT::Criteria& criteria) {
    CORBA::Any_var id;
    CORBA::Object_var made = manager->create_object(type, criteria, id.out());
  };
  raises<FT::NoFactory>(
      "nobody creates an unknown type", [&] { create("IDL:Nothing:1.0", FT::Criteria()); },
      [](const FT::NoFactory& found) {
        return found.the_location.length() == 0 &&
               found.type_id.in() == std::string("IDL:Nothing:1.0");
      });
  raises<FT::NoFactory>(
      "nor one on the moon",
      [&] {
        create(LEDGER, properties({property("org.omg.ft.ObjectLocation", name("moon"))}));
      },
      [](const FT::NoFactory& found) {
        return is(found.the_location, "moon") && found.type_id.in() == std::string(LEDGER);
      });
  raises_property<FT::InvalidProperty>("a wrong property at creation is invalid", wrong,
                                       [&] { create(LEDGER, wanted({wrong})); });
  raises_property<FT::InvalidProperty>("an unknown one is, too", unknown,
                                       [&] { create(LEDGER, wanted({unknown})); });
  const FT::Property none = property<CORBA::UShort>("org.omg.ft.FTProperties", 5);
  const FT::Property size = property<CORBA::UShort>("size", 5);
  raises<FT::InvalidCriteria>(
      "FTProperties that are none are invalid criteria",
      [&] { create(LEDGER, properties({size, none})); },
      [&](const FT::InvalidCriteria& found) { return is(found.invalid_criteria, none); });
  raises<FT::CannotMeetCriteria>(
      "there are not 60 nodes", [&] { create(LEDGER, wanted({initial(60)})); },
      [](const FT::CannotMeetCriteria& found) { return is(found.unmet_criteria, initial(60)); });
  raises<FT::CannotMeetCriteria>(
      "and no sizes", [&] { create(LEDGER, properties({size})); },
      [&](const FT::CannotMeetCriteria& found) { return is(found.unmet_criteria, size); });
  const FT::Property by_application =
      property<CORBA::UShort>("org.omg.ft.ConsistencyStyle", FT::CONS_APP_CTRL);
  raises_property<FT::InvalidProperty>("a passive group has states", by_application, [&] {
    create(LEDGER, wanted({style(FT::WARM_PASSIVE), by_application}));
  });
  CORBA::Any no_id;
  no_id <<= CORBA::ULongLong(987654321);
  raises<FT::ObjectNotFound>("what was not created cannot be deleted",
                             [&] { manager->delete_object(no_id); });
  CORBA::Any wrong_id;
  wrong_id <<= "nothing";
  raises<FT::ObjectNotFound>("nor what is no id", [&] { manager->delete_object(wrong_id); });
}

// Every operation of a group that is none.
void no_group(FT::ReplicationManager_ptr manager, CORBA::Object_ptr deleted,
              CORBA::Object_ptr some, const FT::Location& at) {
  using Call = std::function<void(CORBA::Object_ptr)>;
  const FT::Properties one = properties({minimum(1)});
  const std::vector<std::pair<std::string, Call>> calls{
      {"create_member",
       [&](CORBA::Object_ptr of) {
         CORBA::Object_var other = manager->create_member(of, at, LEDGER, FT::Criteria());
       }},
      {"add_member",
       [&](CORBA::Object_ptr of) { CORBA::Object_var other = manager->add_member(of, at, some); }},
      {"remove_member",
       [&](CORBA::Object_ptr of) { CORBA::Object_var other = manager->remove_member(of, at); }},
      {"set_primary_member",
       [&](CORBA::Object_ptr of) {
         CORBA::Object_var other = manager->set_primary_member(of, at);
       }},
      {"locations_of_members",
       [&](CORBA::Object_ptr of) {
         FT::Locations_var none = manager->locations_of_members(of);
       }},
      {"get_object_group_id",
       [&](CORBA::Object_ptr of) { manager->get_object_group_id(of); }},
      {"get_object_group_ref",
       [&](CORBA::Object_ptr of) {
         CORBA::Object_var other = manager->get_object_group_ref(of);
       }},
      {"get_member_ref",
       [&](CORBA::Object_ptr of) { CORBA::Object_var other = manager->get_member_ref(of, at); }},
      {"get_properties",
       [&](CORBA::Object_ptr of) { FT::Properties_var none = manager->get_properties(of); }},
      {"set_properties_dynamically",
       [&](CORBA::Object_ptr of) { manager->set_properties_dynamically(of, one); }},
  };
  for (const auto& call : calls) {
    const auto of = [&](CORBA::Object_ptr object) { return [&, object] { call.second(object); }; };
    raises<FT::ObjectGroupNotFound>(call.first + " of a deleted group", of(deleted));
    raises<FT::ObjectGroupNotFound>(call.first + " of what is none", of(some));
    raises<FT::ObjectGroupNotFound>(call.first + " of nothing", of(CORBA::Object::_nil()));
  }
}

// What a new member is refused for.
void refused_members(FT::ReplicationManager_ptr manager, CORBA::Object_ptr group,
                     const std::vector<std::string>& nodes) {
  const auto create = [&](const std::string& at, const char* type, const FT::Criteria& criteria) {
    CORBA::Object_var other = manager->create_member(group, name(at), type, criteria);
  };
  raises<FT::MemberAlreadyPresent>("a member is not created twice",
                                   [&] { create(nodes[0], LEDGER, FT::Criteria()); });
  raises<FT::NoFactory>(
      "nor where there is no factory", [&] { create("moon", LEDGER, FT::Criteria()); },
      [](const FT::NoFactory& found) {
        return is(found.the_location, "moon") && found.type_id.in() == std::string(LEDGER);
      });
  const FT::Property none = property<CORBA::UShort>("org.omg.ft.FTProperties", 5);
  raises<FT::InvalidCriteria>(
      "nor by wrong criteria", [&] { create(nodes[2], LEDGER, properties({none})); },
      [&](const FT::InvalidCriteria& found) { return is(found.invalid_criteria, none); });
  const FT::Property size = property<CORBA::UShort>("size", 5);
  raises<FT::CannotMeetCriteria>(
      "nor by unknown ones", [&] { create(nodes[2], LEDGER, properties({size})); },
      [&](const FT::CannotMeetCriteria& found) { return is(found.unmet_criteria, size); });
}

void object_groups(FT::ReplicationManager_ptr manager, const std::vector<std::string>& nodes,
                   CORBA::Object_ptr some) {
  CORBA::Any_var id;
  auto begin = std::chrono::steady_clock::now();
  CORBA::Object_var group = manager->create_object(
      LEDGER, wanted({style(FT::WARM_PASSIVE), initial(2), minimum(1)}), id.out());
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  check(locations(manager, group) == nodes[0] + " " + nodes[1],
        "a group of two was created in " + std::to_string(took.count()) + " ms");
  Bank::Ledger_var ledger = Bank::Ledger::_narrow(group);
  check(!CORBA::is_nil(ledger), "it is a ledger");
  ledger->open("a", "driver-1");
  check(ledger->deposit("a", 5, "driver-2") == 5, "it takes deposits");

  FT::ObjectGroupId number = manager->get_object_group_id(group);
  check(number > 0, "it has a number");
  refused_members(manager, group, nodes);
  CORBA::Object_var three = manager->create_member(group, name(nodes[2]), LEDGER, FT::Criteria());
  check(locations(manager, group) == nodes[0] + " " + nodes[1] + " " + nodes[2],
        "a third member was created");
  check(three->_is_equivalent(three), "its reference is the group's");
  raises<FT::ObjectNotAdded>("an object does not go with servers of nodes", [&] {
    CORBA::Object_var other = manager->add_member(group, name("moon"), ledger);
  });
  raises<FT::MemberAlreadyPresent>("nor is one added twice", [&] {
    CORBA::Object_var other = manager->add_member(group, name(nodes[0]), ledger);
  });
  raises<FT::MemberNotFound>("who is no member is not the primary", [&] {
    CORBA::Object_var other = manager->set_primary_member(group, name("moon"));
  });
  CORBA::Object_var led = manager->set_primary_member(group, name(nodes[1]));
  check(!CORBA::is_nil(led), "another member is the primary");
  Bank::Ledger_var again = Bank::Ledger::_narrow(led);
  check(again->deposit("a", 5, "driver-3") == 10, "and goes on with the state");
  CORBA::Object_var member = manager->get_member_ref(group, name(nodes[1]));
  check(!CORBA::is_nil(member), "a member has a reference");
  raises<FT::MemberNotFound>("who is no member has none", [&] {
    CORBA::Object_var other = manager->get_member_ref(group, name("moon"));
  });
  raises<FT::MemberNotFound>("who is no member is not removed", [&] {
    CORBA::Object_var other = manager->remove_member(group, name("moon"));
  });
  CORBA::Object_var two = manager->remove_member(group, name(nodes[0]));
  check(locations(manager, group) == nodes[1] + " " + nodes[2], "a member was removed");
  CORBA::Object_var latest = manager->get_object_group_ref(group);
  check(latest->_is_equivalent(two), "the latest reference is the one that was given last");
  again = Bank::Ledger::_narrow(latest);
  check(again->balance("a") == 10, "the state is there");

  manager->set_properties_dynamically(group, properties({minimum(2)}));
  raises_property<FT::InvalidProperty>("a style is not set dynamically", style(FT::ACTIVE), [&] {
    manager->set_properties_dynamically(group, properties({style(FT::ACTIVE)}));
  });
  raises_property<FT::UnsupportedProperty>("an unknown property is not, either", unknown, [&] {
    manager->set_properties_dynamically(group, properties({unknown}));
  });
  FT::Properties_var effective = manager->get_properties(group);
  check(effective->length() >= 3, "its properties can be read");

  manager->delete_object(id.in());
  raises<FT::ObjectNotFound>("what was deleted is gone", [&] { manager->delete_object(id.in()); });
  no_group(manager, group, some, name(nodes[0]));
}

void own_control(FT::ReplicationManager_ptr manager, const std::vector<std::string>& nodes,
                 CORBA::Object_ptr some, CORBA::Object_ptr other) {
  CORBA::Any_var id;
  CORBA::Object_var group = manager->create_object(
      LEDGER,
      wanted({property<CORBA::UShort>("org.omg.ft.MembershipStyle", FT::MEMB_APP_CTRL)}),
      id.out());
  check(locations(manager, group).empty(), "a group of the application begins without members");
  CORBA::Object_var one = manager->add_member(group, name(nodes[0]), some);
  check(locations(manager, group) == nodes[0], "and takes the application's objects");
  raises<FT::BadReplicationStyle>("an active group has no primary", [&] {
    CORBA::Object_var led = manager->set_primary_member(group, name(nodes[0]));
  });
  CORBA::Object_var none = manager->remove_member(group, name(nodes[0]));
  check(locations(manager, group).empty(), "and gives them back");
  manager->delete_object(id.in());
  // Nobody is there, so nobody is in.
  group = manager->create_object(
      LEDGER,
      wanted({style(FT::WARM_PASSIVE),
              property<CORBA::UShort>("org.omg.ft.MembershipStyle", FT::MEMB_APP_CTRL)}),
      id.out());
  one = manager->add_member(group, name(nodes[0]), some);
  raises<FT::ObjectNotAdded>("one server is one member", [&] {
    CORBA::Object_var again = manager->add_member(group, name(nodes[1]), some);
  });
  one = manager->add_member(group, name(nodes[1]), other);
  raises<FT::PrimaryNotSet>("who is not in does not lead", [&] {
    CORBA::Object_var led = manager->set_primary_member(group, name(nodes[1]));
  });
  manager->delete_object(id.in());
}

void notifier(FT::ReplicationManager_ptr manager, FT::FaultNotifier_ptr some) {
  FT::FaultNotifier_var own = manager->get_fault_notifier();
  check(!CORBA::is_nil(own) && !own->_is_equivalent(some), "the domain has a notifier of its own");
  manager->register_fault_notifier(some);
  FT::FaultNotifier_var found = manager->get_fault_notifier();
  check(found->_is_equivalent(some), "a notifier is what was registered");
  manager->register_fault_notifier(FT::FaultNotifier::_nil());
  FT::FaultNotifier_var again = manager->get_fault_notifier();
  check(own->_is_equivalent(again), "and it is the domain's own again");
}

}  // namespace

int main(int argc, char** argv) {
  // What factories make is told apart by its port.
  const std::vector<int> ports = free_ports(3);
  std::vector<std::string> places;
  for (const int port : ports) places.push_back("giop:tcp:127.0.0.1:" + std::to_string(port));
  const char* options[][2] = {
      {"endPoint", places[0].c_str()},
      {"endPoint", places[1].c_str()},
      {"endPoint", places[2].c_str()},
      {nullptr, nullptr},
  };
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv, "omniORB4", options);
  if (argc < 5) {
    std::cerr << "manager_driver REFERENCE NODE NODE NODE" << std::endl;
    return 2;
  }
  try {
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    FT::ReplicationManager_var manager = FT::ReplicationManager::_narrow(object);
    check(!CORBA::is_nil(manager), "it is a replication manager");
    std::vector<std::string> nodes(argv + 2, argv + argc);
    CORBA::Object_var some = orb->string_to_object("corbaloc::127.0.0.1:9/ledger");
    CORBA::Object_var other = orb->string_to_object("corbaloc::127.0.0.1:8/FaultNotifier");
    property_manager(manager);
    generic_factory(manager);
    object_groups(manager, nodes, some);
    own_control(manager, nodes, some, other);
    notifier(manager, FT::FaultNotifier::_unchecked_narrow(other));
    factories(manager, nodes, orb, ports, check);
  } catch (const CORBA::SystemException& exception) {
    std::cerr << exception._name() << " minor " << std::hex << exception.minor() << std::endl;
    return 1;
  } catch (const CORBA::Exception& exception) {
    std::cerr << exception._rep_id() << std::endl;
    return 1;
  }
  std::cout << steps << " steps" << std::endl;
  return 0;
}
