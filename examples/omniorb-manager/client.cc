// A client of the naming service and of the replication manager that does what it is told, one
// operation for each line that it reads, and prints one line for each: what came of it.
//
// What it is not: somebody who repeats anything; who tells it what to do decides that.
//
//   services_client NAMING MANAGER [ORB options]
//
// Words of a line are parted by tabulators:
//   bind NAME OBJECT, rebind NAME OBJECT, unbind NAME, mkctx NAME, resolve NAME,
//   create TYPE STYLE MEMBERSHIP INITIAL MINIMUM, create_member GROUP NODE TYPE,
//   add_member GROUP NODE OBJECT, remove_member GROUP NODE, locations GROUP, delete ID,
//   state OBJECT
// Its answer is `ok` and what was returned, or `user ID`, or `system ID COMPLETED MINOR`.
// Invariant: a line that is read is answered by one line.

#include <cstdio>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "FT.hh"
#include "ft-checkpointable.hh"

namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text, char at) {
  Words words;
  std::istringstream from(text);
  for (std::string word; std::getline(from, word, at);) words.push_back(word);
  return words;
}

CosNaming::Name name(const std::string& path) {
  Words parts = split(path, '/');
  CosNaming::Name name;
  name.length(parts.size());
  for (CORBA::ULong index = 0; index < name.length(); ++index) {
    name[index].id = parts[index].c_str();
    name[index].kind = "";
  }
  return name;
}

FT::Property property(const char* id, const std::string& value) {
  FT::Property property;
  property.nam = name(id);
  property.val <<= static_cast<CORBA::UShort>(std::stoul(value));
  return property;
}

class Client {
 public:
  Client(CORBA::ORB_ptr orb, const char* naming, const char* manager)
      : orb_(CORBA::ORB::_duplicate(orb)),
        naming_(CosNaming::NamingContextExt::_unchecked_narrow(object(naming))),
        manager_(FT::ReplicationManager::_unchecked_narrow(object(manager))) {}

  std::string operator()(const Words& words) {
    try {
      std::string found = perform(words);
      return found.empty() ? "ok" : "ok\t" + found;
    } catch (const CORBA::SystemException& raised) {
      const char* const completed[] = {"yes", "no", "maybe"};
      return "system\t" + std::string(raised._rep_id()) + "\t" + completed[raised.completed()] +
             "\t" + std::to_string(raised.minor());
    } catch (const CORBA::Exception& raised) {
      return "user\t" + std::string(raised._rep_id());
    }
  }

 private:
  CORBA::Object_ptr object(const std::string& text) {
    kept_.push_back(orb_->string_to_object(text.c_str()));
    return kept_.back();
  }

  std::string text(CORBA::Object_ptr object) {
    CORBA::Object_var owned(object);
    CORBA::String_var text = orb_->object_to_string(object);
    return text.in();
  }

  std::string perform(const Words& words) {
    const std::string& what = words.at(0);
    if (what == "bind") return naming_->bind(name(words.at(1)), object(words.at(2))), "";
    if (what == "rebind") return naming_->rebind(name(words.at(1)), object(words.at(2))), "";
    if (what == "unbind") return naming_->unbind(name(words.at(1))), "";
    if (what == "mkctx") return text(naming_->bind_new_context(name(words.at(1))));
    if (what == "resolve") return text(naming_->resolve(name(words.at(1))));
    if (what == "create") return create(words);
    if (what == "create_member")
      return text(manager_->create_member(object(words.at(1)), name(words.at(2)),
                                          words.at(3).c_str(), FT::Criteria()));
    if (what == "add_member")
      return text(
          manager_->add_member(object(words.at(1)), name(words.at(2)), object(words.at(3))));
    if (what == "remove_member")
      return text(manager_->remove_member(object(words.at(1)), name(words.at(2))));
    if (what == "locations") return locations(words);
    if (what == "delete") {
      CORBA::Any id;
      id <<= static_cast<CORBA::ULongLong>(std::stoull(words.at(1)));
      return manager_->delete_object(id), "";
    }
    if (what == "state") return state(words);
    throw std::invalid_argument("no such operation: " + what);
  }

  std::string create(const Words& words) {
    const char* const ids[] = {"org.omg.ft.ReplicationStyle", "org.omg.ft.MembershipStyle",
                               "org.omg.ft.InitialNumberReplicas",
                               "org.omg.ft.MinimumNumberReplicas"};
    FT::Properties properties;
    properties.length(4);
    for (CORBA::ULong index = 0; index < 4; ++index)
      properties[index] = property(ids[index], words.at(2 + index));
    FT::Criteria criteria;
    criteria.length(1);
    criteria[0].nam = name("org.omg.ft.FTProperties");
    criteria[0].val <<= properties;
    CORBA::Any_var id;
    std::string group = text(manager_->create_object(words.at(1).c_str(), criteria, id.out()));
    CORBA::ULongLong number = 0;
    if (!(id.in() >>= number)) throw std::runtime_error("the creation id is no number");
    return group + "\t" + std::to_string(number);
  }

  std::string locations(const Words& words) {
    FT::Locations_var found = manager_->locations_of_members(object(words.at(1)));
    std::string text;
    for (CORBA::ULong index = 0; index < found->length(); ++index)
      text += (index ? " " : "") + std::string(found[index][0].id);
    return text;
  }

  std::string state(const Words& words) {
    FT::Checkpointable_var from = FT::Checkpointable::_unchecked_narrow(object(words.at(1)));
    FT::State_var state = from->get_state();
    std::string text;
    char digits[3];
    for (CORBA::ULong index = 0; index < state->length(); ++index) {
      std::snprintf(digits, sizeof digits, "%02x", state[index]);
      text += digits;
    }
    return text;
  }

  CORBA::ORB_var orb_;
  std::vector<CORBA::Object_var> kept_;
  CosNaming::NamingContextExt_var naming_;
  FT::ReplicationManager_var manager_;
};

}  // namespace

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc != 3) {
    std::cerr << "services_client NAMING MANAGER" << std::endl;
    return 2;
  }
  try {
    Client client(orb, argv[1], argv[2]);
    for (std::string line; std::getline(std::cin, line);)
      std::cout << client(split(line, '\t')) << std::endl;
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << std::endl;
    return 1;
  }
  return 0;
}
