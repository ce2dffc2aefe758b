// Goes through every operation of FT::ReplicationManager and every exception that they raise.
//
// What it is not: a test of faults. Invariant: it ends with 0 only if all was as it must be.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "FT.hh"
#include "bank.hh"

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

template <class Exception, class Call>
void raises(const std::string& what, Call call) {
  try {
    call();
  } catch (const Exception&) {
    check(true, what);
    return;
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

std::string locations(FT::ReplicationManager_ptr manager, CORBA::Object_ptr group) {
  FT::Locations_var found = manager->locations_of_members(group);
  std::string text;
  for (CORBA::ULong index = 0; index < found->length(); ++index) {
    text += (index ? " " : "") + std::string(found[index][0].id);
  }
  return text;
}

void property_manager(FT::ReplicationManager_ptr manager) {
  manager->set_default_properties(properties({initial(2), minimum(1)}));
  FT::Properties_var defaults = manager->get_default_properties();
  check(defaults->length() == 2, "defaults are what was set");
  manager->set_type_properties(LEDGER, properties({initial(3)}));
  FT::Properties_var of_type = manager->get_type_properties(LEDGER);
  bool is_three = false;
  for (CORBA::ULong index = 0; index < of_type->length(); ++index) {
    CORBA::UShort number = 0;
    if (std::string(of_type[index].nam[0].id) == "org.omg.ft.InitialNumberReplicas") {
      is_three = (of_type[index].val >>= number) && number == 3;
    }
  }
  check(is_three, "a type's property goes before the default");
  raises<FT::InvalidProperty>("a style that there is not is invalid", [&] {
    manager->set_default_properties(properties({style(77)}));
  });
  raises<FT::UnsupportedProperty>("an unknown property is unsupported", [&] {
    manager->set_default_properties(
        properties({property<CORBA::UShort>("org.omg.ft.Colour", 1)}));
  });
  raises<FT::InvalidProperty>("a type's style that there is not is invalid", [&] {
    manager->set_type_properties(LEDGER, properties({style(77)}));
  });
  raises<FT::UnsupportedProperty>("an unknown property of a type is unsupported", [&] {
    manager->set_type_properties(
        LEDGER, properties({property<CORBA::UShort>("org.omg.ft.Colour", 1)}));
  });
  raises<FT::InvalidProperty>("a default that is not set cannot be removed", [&] {
    manager->remove_default_properties(properties({style(3)}));
  });
  raises<FT::UnsupportedProperty>("nor one that is unknown", [&] {
    manager->remove_default_properties(
        properties({property<CORBA::UShort>("org.omg.ft.Colour", 1)}));
  });
  raises<FT::InvalidProperty>("a type's property that is not set cannot be removed", [&] {
    manager->remove_type_properties(LEDGER, properties({style(3)}));
  });
  manager->remove_type_properties(LEDGER, properties({initial(3)}));
  manager->remove_default_properties(properties({minimum(1)}));
  defaults = manager->get_default_properties();
  check(defaults->length() == 1, "what is removed is gone");
}

void generic_factory(FT::ReplicationManager_ptr manager) {
  CORBA::Any_var id;
  raises<FT::NoFactory>("nobody creates an unknown type", [&] {
    CORBA::Object_var made = manager->create_object("IDL:Nothing:1.0", FT::Criteria(), id.out());
  });
  raises<FT::InvalidProperty>("an unknown property at creation is invalid", [&] {
    CORBA::Object_var made = manager->create_object(
        LEDGER, wanted({property<CORBA::UShort>("org.omg.ft.Colour", 1)}), id.out());
  });
  raises<FT::InvalidCriteria>("FTProperties that are none are invalid criteria", [&] {
    CORBA::Object_var made = manager->create_object(
        LEDGER, properties({property<CORBA::UShort>("org.omg.ft.FTProperties", 5)}), id.out());
  });
  raises<FT::CannotMeetCriteria>("there are not 60 nodes", [&] {
    CORBA::Object_var made = manager->create_object(LEDGER, wanted({initial(60)}), id.out());
  });
  CORBA::Any no_id;
  no_id <<= CORBA::ULongLong(987654321);
  raises<FT::ObjectNotFound>("what was not created cannot be deleted",
                             [&] { manager->delete_object(no_id); });
  CORBA::Any wrong_id;
  wrong_id <<= "nothing";
  raises<FT::ObjectNotFound>("nor what is no id", [&] { manager->delete_object(wrong_id); });
}

void object_groups(FT::ReplicationManager_ptr manager, const std::vector<std::string>& nodes) {
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
  raises<FT::MemberAlreadyPresent>("a member is not created twice", [&] {
    CORBA::Object_var other =
        manager->create_member(group, name(nodes[0]), LEDGER, FT::Criteria());
  });
  raises<FT::NoFactory>("nor where there is no factory", [&] {
    CORBA::Object_var other = manager->create_member(group, name("moon"), LEDGER, FT::Criteria());
  });
  raises<FT::InvalidCriteria>("nor by wrong criteria", [&] {
    CORBA::Object_var other = manager->create_member(
        group, name(nodes[2]), LEDGER,
        properties({property<CORBA::UShort>("org.omg.ft.FTProperties", 5)}));
  });
  raises<FT::CannotMeetCriteria>("nor by unknown ones", [&] {
    CORBA::Object_var other = manager->create_member(
        group, name(nodes[2]), LEDGER, properties({property<CORBA::UShort>("colour", 5)}));
  });
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
  raises<FT::InvalidProperty>("a style is not set dynamically", [&] {
    manager->set_properties_dynamically(group, properties({style(FT::ACTIVE)}));
  });
  raises<FT::UnsupportedProperty>("an unknown property is not, either", [&] {
    manager->set_properties_dynamically(
        group, properties({property<CORBA::UShort>("org.omg.ft.Colour", 1)}));
  });
  FT::Properties_var effective = manager->get_properties(group);
  check(effective->length() >= 3, "its properties can be read");

  manager->delete_object(id.in());
  raises<FT::ObjectNotFound>("what was deleted is gone", [&] { manager->delete_object(id.in()); });
  raises<FT::ObjectGroupNotFound>("and has no members",
                                  [&] {
                                    FT::Locations_var none = manager->locations_of_members(group);
                                  });
  raises<FT::ObjectGroupNotFound>("and no number", [&] { manager->get_object_group_id(group); });
  raises<FT::ObjectGroupNotFound>("and no properties",
                                  [&] {
                                    FT::Properties_var none = manager->get_properties(group);
                                  });
  raises<FT::ObjectGroupNotFound>("and takes no member", [&] {
    CORBA::Object_var other =
        manager->create_member(group, name(nodes[0]), LEDGER, FT::Criteria());
  });
}

void own_control(FT::ReplicationManager_ptr manager, const std::vector<std::string>& nodes,
                 CORBA::Object_ptr some) {
  CORBA::Any_var id;
  CORBA::Object_var group = manager->create_object(
      LEDGER,
      wanted({property<CORBA::UShort>("org.omg.ft.MembershipStyle", FT::MEMB_APP_CTRL)}),
      id.out());
  check(locations(manager, group).empty(), "a group of the application begins without members");
  CORBA::Object_var one = manager->add_member(group, name(nodes[0]), some);
  check(locations(manager, group) == nodes[0], "and takes the application's objects");
  raises<FT::BadReplicationStyle>("an active group has no primary", [&] {
    CORBA::Object_var other = manager->set_primary_member(group, name(nodes[0]));
  });
  CORBA::Object_var none = manager->remove_member(group, name(nodes[0]));
  check(locations(manager, group).empty(), "and gives them back");
  manager->delete_object(id.in());
}

void notifier(FT::ReplicationManager_ptr manager, FT::FaultNotifier_ptr some) {
  raises<FT::InterfaceNotFound>("nobody has registered a notifier", [&] {
    FT::FaultNotifier_var none = manager->get_fault_notifier();
  });
  manager->register_fault_notifier(some);
  FT::FaultNotifier_var found = manager->get_fault_notifier();
  check(found->_is_equivalent(some), "a notifier is what was registered");
  manager->register_fault_notifier(FT::FaultNotifier::_nil());
}

}  // namespace

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
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
    CORBA::Object_var other = orb->string_to_object("corbaloc::127.0.0.1:9/FaultNotifier");
    property_manager(manager);
    generic_factory(manager);
    object_groups(manager, nodes);
    own_control(manager, nodes, some);
    notifier(manager, FT::FaultNotifier::_unchecked_narrow(other));
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
