// Goes through every operation of a naming service and every exception that they raise, and
// compares the exceptions' fields. It is examples/omniorbpy-names/driver.py in C++.
//
//   names_driver NAMING OTHER WORD [ORB options]
//
// What it is not: a test of faults. Invariant: it ends with 0 only if all was as it must be, and
// then nothing is left of what it has bound.

#include <omniORB4/CORBA.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using CosNaming::NamingContext;
using CosNaming::NamingContextExt;
using Call = std::function<void()>;
using Operation = std::function<void(const CosNaming::Name&)>;
// A part is an id, or an id, a bar and a kind.
using Parts = std::vector<std::string>;

const CORBA::ULong MANY = 300;  // so many names are bound for the iterators,
const CORBA::ULong PART = 120;  // and so many are asked for at a time
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
void raises(const std::string& what, const Call& call,
            const std::function<bool(const Exception&)>& is_it = nullptr) {
  try {
    call();
  } catch (const Exception& found) {
    return check(!is_it || is_it(found), what + ": " + found._name());
  } catch (const CORBA::Exception& other) {
    check(false, what + ", found " + other._rep_id());
  }
  check(false, what + ", and nothing was raised");
}

CosNaming::Name name(const Parts& parts) {
  CosNaming::Name name;
  name.length(parts.size());
  for (CORBA::ULong index = 0; index < name.length(); ++index) {
    const std::string& part = parts[index];
    const size_t at = part.find('|');
    name[index].id = part.substr(0, at).c_str();
    name[index].kind = at == std::string::npos ? "" : part.substr(at + 1).c_str();
  }
  return name;
}

Parts parts(const CosNaming::Name& name) {
  Parts parts;
  for (CORBA::ULong index = 0; index < name.length(); ++index) {
    const std::string id(name[index].id), kind(name[index].kind);
    parts.push_back(kind.empty() ? id : id + "|" + kind);
  }
  return parts;
}

void not_found(const std::string& what, NamingContext::NotFoundReason why, const Parts& rest,
               const Call& call) {
  raises<NamingContext::NotFound>(what, call, [&](const NamingContext::NotFound& found) {
    return found.why == why && parts(found.rest_of_name) == parts(name(rest));
  });
}

Parts listed(const CosNaming::BindingList& list) {
  Parts all;
  for (CORBA::ULong index = 0; index < list.length(); ++index)
    for (const std::string& part : parts(list[index].binding_name)) all.push_back(part);
  return all;
}

class Driver {
 public:
  Driver(CORBA::ORB_ptr orb, CosNaming::NamingContextExt_ptr root,
         CosNaming::NamingContext_ptr other, const char* word)
      : root_(NamingContextExt::_duplicate(root)),
        other_(NamingContext::_duplicate(other)),
        word_(word),
        thing_(orb->string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/thing")),
        another_(orb->string_to_object("corbaloc:iiop:1.2@127.0.0.1:9/another")) {}

  void bindings();
  void contexts();
  void names();
  void texts();
  void iterators();
  void limits();
  void clean();

 private:
  CosNaming::Name at(const Parts& behind) const {
    Parts all{word_};
    all.insert(all.end(), behind.begin(), behind.end());
    return name(all);
  }

  bool is_at(const Parts& behind, CORBA::Object_ptr object) const {
    CORBA::Object_var found = root_->resolve(at(behind));
    return found->_is_equivalent(object);
  }

  std::vector<std::pair<std::string, Operation>> operations() const;
  void through(const std::string& what, const Operation& call) const;
  void go_through(CosNaming::BindingIterator_ptr rest, const Parts& expected) const;

  CosNaming::NamingContextExt_var root_;
  CosNaming::NamingContext_var other_;
  std::string word_;
  CORBA::Object_var thing_, another_;
  CosNaming::NamingContextExt_var here_;
};

void Driver::bindings() {
  CosNaming::NamingContext_var made = root_->bind_new_context(at({}));
  here_ = NamingContextExt::_narrow(made);
  check(!CORBA::is_nil(here_), "a new context is one with texts");
  check(is_at({}, made), "and is bound");
  raises<NamingContext::AlreadyBound>("another one", [&] {
    CosNaming::NamingContext_var again = root_->bind_new_context(at({}));
  });
  root_->bind(at({"a"}), thing_);
  check(is_at({"a"}, thing_), "an object is bound");
  CORBA::Object_var found = here_->resolve(name({"a"}));
  check(found->_is_equivalent(thing_), "in the context itself, too");
  raises<NamingContext::AlreadyBound>("bound again", [&] { root_->bind(at({"a"}), thing_); });
  root_->rebind(at({"a"}), another_);
  check(is_at({"a"}, another_), "it is another one");
  here_->rebind(name({"a|kind"}), thing_);
  check(is_at({"a|kind"}, thing_), "a kind is a name");
  check(is_at({"a"}, another_), "and its own");
  here_->bind(name({"nothing at all"}), CORBA::Object::_nil());
  found = here_->resolve(name({"nothing at all"}));
  check(CORBA::is_nil(found), "nil can be bound");
}

void Driver::contexts() {
  CosNaming::NamingContext_var first = root_->new_context(), second = here_->new_context();
  const CosNaming::NamingContext_ptr nil = NamingContext::_nil();
  check(!first->_is_equivalent(second), "contexts differ");
  root_->bind_context(at({"sub"}), first);
  check(is_at({"sub"}, first), "a context is bound");
  raises<NamingContext::AlreadyBound>("a context again",
                                      [&] { root_->bind_context(at({"sub"}), second); });
  raises<NamingContext::AlreadyBound>("an object there",
                                      [&] { root_->bind(at({"sub"}), thing_); });
  not_found("rebind replaces no context", NamingContext::not_object, {"sub"},
            [&] { root_->rebind(at({"sub"}), thing_); });
  not_found("rebind_context replaces no object", NamingContext::not_context, {"a"},
            [&] { root_->rebind_context(at({"a"}), second); });
  root_->rebind_context(at({"sub"}), second);
  check(is_at({"sub"}, second), "another context is bound");
  raises<CORBA::BAD_PARAM>("nil is no context", [&] { root_->bind_context(at({"n"}), nil); });
  raises<CORBA::BAD_PARAM>("nor later", [&] { root_->rebind_context(at({"sub"}), nil); });
  raises<NamingContext::NotEmpty>("a context with bindings", [&] { here_->destroy(); });
  first->destroy();
  raises<CORBA::OBJECT_NOT_EXIST>("what is destroyed", [&] {
    CosNaming::NamingContext_var made = first->new_context();
  });
  root_->rebind_context(at({"gone"}), second);
  second->destroy();
  CORBA::Object_var gone = root_->resolve(at({"gone"}));
  check(!CORBA::is_nil(gone), "a binding outlives its context");
}

// Every operation that is given a name.
std::vector<std::pair<std::string, Operation>> Driver::operations() const {
  using Name = CosNaming::Name;
  return {
      {"bind", [this](const Name& path) { root_->bind(path, thing_); }},
      {"rebind", [this](const Name& path) { root_->rebind(path, thing_); }},
      {"bind_context", [this](const Name& path) { root_->bind_context(path, here_); }},
      {"rebind_context", [this](const Name& path) { root_->rebind_context(path, here_); }},
      {"resolve", [this](const Name& path) { CORBA::Object_var found = root_->resolve(path); }},
      {"unbind", [this](const Name& path) { root_->unbind(path); }},
      {"bind_new_context",
       [this](const Name& path) {
         CosNaming::NamingContext_var made = root_->bind_new_context(path);
       }},
      {"resolve_str",
       [this](const Name& path) {
         CORBA::String_var text = CORBA::string_dup("");
         if (path.length() > 0) text = root_->to_string(path);
         CORBA::Object_var found = root_->resolve_str(text);
       }},
  };
}

void Driver::through(const std::string& what, const Operation& call) const {
  not_found(what + " through what is not there", NamingContext::missing_node, {"missing", "x"},
            [&] { call(at({"missing", "x"})); });
  not_found(what + " through what was destroyed", NamingContext::missing_node, {"gone", "x|k"},
            [&] { call(at({"gone", "x|k"})); });
  not_found(what + " through an object", NamingContext::not_context, {"a|kind", "x", "y"},
            [&] { call(at({"a|kind", "x", "y"})); });
  raises<NamingContext::CannotProceed>(
      what + " through another service", [&] { call(at({"far", "x|k", "y"})); },
      [&](const NamingContext::CannotProceed& found) {
        return found.cxt->_is_equivalent(other_) &&
               parts(found.rest_of_name) == Parts{"x|k", "y"};
      });
  raises<NamingContext::InvalidName>(what + " of nothing", [&] { call(CosNaming::Name()); });
  if (what == "resolve" || what == "unbind" || what == "resolve_str")
    not_found(what + " of what is not there", NamingContext::missing_node, {"missing"},
              [&] { call(at({"missing"})); });
}

void Driver::names() {
  other_->rebind(name({word_}), thing_);
  root_->bind_context(at({"far"}), other_);
  for (const auto& [what, call] : operations()) through(what, call);
  CORBA::Object_var there;
  try {
    there = root_->resolve(at({"far", word_}));
  } catch (const NamingContext::CannotProceed& found) {
    there = found.cxt->resolve(found.rest_of_name);
  }
  check(there->_is_equivalent(thing_), "one goes on where it is said");
  other_->unbind(name({word_}));
}

void Driver::texts() {
  const std::vector<std::pair<Parts, std::string>> all{
      {{"a"}, "a"},
      {{"a|b"}, "a.b"},
      {{"|b"}, ".b"},
      {{"|"}, "."},
      {{"a", "|", "c|d"}, "a/./c.d"},
      {{"a/b|c.d", "\\"}, "a\\/b.c\\.d/\\\\"},
  };
  for (const auto& [found, text] : all) {
    CORBA::String_var said = root_->to_string(name(found));
    check(said.in() == text, "to_string gives " + text);
    CosNaming::Name_var read = root_->to_name(text.c_str());
    check(parts(read) == parts(name(found)), "to_name takes " + text);
  }
  raises<NamingContext::InvalidName>("to_string of nothing", [&] {
    CORBA::String_var said = root_->to_string(CosNaming::Name());
  });
  for (const std::string text : {"", "/", "a/", "/a", "a//b", "a.", "a.b.c", "a\\b", "a\\"}) {
    raises<NamingContext::InvalidName>("to_name of " + text, [&] {
      CosNaming::Name_var read = root_->to_name(text.c_str());
    });
    raises<NamingContext::InvalidName>("resolve_str of " + text, [&] {
      CORBA::Object_var found = root_->resolve_str(text.c_str());
    });
  }
  here_->bind(name({"sl/ash|po.int"}), thing_);
  CORBA::Object_var found = root_->resolve_str((word_ + "/sl\\/ash.po\\.int").c_str());
  check(found->_is_equivalent(thing_), "resolve_str reads what is escaped");
  CORBA::String_var url = root_->to_url(":h:2809", "x/y.z");
  check(std::string(url) == "corbaname::h:2809#x/y.z", "to_url");
  url = root_->to_url("iiop:1.2@h:1,:i:2/Key", "a b\\.c");
  check(std::string(url) == "corbaname:iiop:1.2@h:1,:i:2/Key#a%20b%5c.c",
        "to_url escapes: " + std::string(url));
  for (const std::string address : {"", "http://x", ":h:99999"})
    raises<NamingContextExt::InvalidAddress>("to_url at " + address, [&] {
      CORBA::String_var none = root_->to_url(address.c_str(), "x");
    });
  raises<NamingContext::InvalidName>("to_url of no name", [&] {
    CORBA::String_var none = root_->to_url(":h", "x//y");
  });
}

void Driver::iterators() {
  CosNaming::NamingContext_var many = here_->bind_new_context(name({"many"}));
  CosNaming::BindingList_var found;
  CosNaming::BindingIterator_var rest, last;
  many->list(10, found.out(), rest.out());
  check(found->length() == 0 && CORBA::is_nil(rest), "nothing is listed of an empty context");
  Parts expected;
  for (CORBA::ULong number = 0; number < MANY; ++number) {
    char part[32];
    std::snprintf(part, sizeof part, "many-%03u|k%u", unsigned(number), unsigned(number % 2));
    expected.push_back(part);
    many->bind(name({part}), thing_);
  }
  many->list(MANY, found.out(), rest.out());
  check(CORBA::is_nil(rest), "all at once leave no iterator");
  check(listed(found) == expected, "each name is listed once, in order");
  bool are_objects = true;
  for (CORBA::ULong index = 0; index < found->length(); ++index)
    are_objects = are_objects && found[index].binding_type == CosNaming::nobject;
  check(are_objects, "as an object");
  many->list(0, found.out(), rest.out());
  check(found->length() == 0 && !CORBA::is_nil(rest), "or one by one");
  go_through(rest, expected);
  many->list(MANY - 1, found.out(), last.out());
  many->unbind(name({expected.back()}));
  CosNaming::Binding_var one;
  check(!last->next_one(one.out()), "what was unbound does not come");
  expected.pop_back();
  for (const std::string& part : expected) many->unbind(name({part}));
  many->destroy();
  raises<CORBA::OBJECT_NOT_EXIST>("an iterator of what is destroyed",
                                  [&] { last->next_one(one.out()); });
  here_->unbind(name({"many"}));
}

// Goes through an iterator that has given nothing yet.
void Driver::go_through(CosNaming::BindingIterator_ptr rest, const Parts& expected) const {
  CosNaming::Binding_var one;
  CosNaming::BindingList_var part;
  check(rest->next_one(one.out()) && parts(one->binding_name) == Parts{expected[0]}, "one");
  check(one->binding_type == CosNaming::nobject, "of an object");
  raises<CORBA::BAD_PARAM>("none at a time", [&] { rest->next_n(0, part.out()); });
  Parts found = parts(one->binding_name);
  for (bool has_more = true; has_more;) {
    has_more = rest->next_n(PART, part.out());
    check(part->length() <= PART && has_more == (part->length() > 0), "a part");
    for (const std::string& another : listed(part)) found.push_back(another);
  }
  check(found == expected, "the parts are all");
  check(!rest->next_one(one.out()) && one->binding_name.length() == 0,
        "nothing comes behind the last");
  rest->destroy();
  raises<CORBA::OBJECT_NOT_EXIST>("next_one of what is destroyed",
                                  [&] { rest->next_one(one.out()); });
  raises<CORBA::OBJECT_NOT_EXIST>("next_n of it", [&] { rest->next_n(1, part.out()); });
  raises<CORBA::OBJECT_NOT_EXIST>("destroy of it", [&] { rest->destroy(); });
}

void Driver::limits() {
  const std::string wide = "na\u00efve|\u20ac";
  here_->bind(name({wide}), thing_);
  CosNaming::BindingList_var found;
  CosNaming::BindingIterator_var rest;
  here_->list(100, found.out(), rest.out());
  bool is_there = false;
  for (const std::string& part : listed(found)) is_there = is_there || part == wide;
  check(is_there, "names may have any characters");
  here_->unbind(name({wide}));
  raises<CORBA::IMP_LIMIT>("65 components", [&] {
    CORBA::Object_var none = here_->resolve(name(Parts(65, "x")));
  });
  raises<CORBA::IMP_LIMIT>("1,100 octets",
                           [&] { here_->bind(name({std::string(1100, 'x')}), thing_); });
}

void Driver::clean() {
  CosNaming::BindingList_var found;
  CosNaming::BindingIterator_var rest;
  here_->list(100, found.out(), rest.out());
  Parts contexts;
  for (CORBA::ULong index = 0; index < found->length(); ++index)
    if (found[index].binding_type == CosNaming::ncontext)
      contexts.push_back(parts(found[index].binding_name)[0]);
  check(contexts == Parts{"far", "gone", "sub"}, "contexts are told");
  for (CORBA::ULong index = 0; index < found->length(); ++index)
    here_->unbind(found[index].binding_name);
  here_->destroy();
  root_->unbind(at({}));
  not_found("nothing is left", NamingContext::missing_node, {word_}, [&] {
    CORBA::Object_var none = root_->resolve(at({}));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc != 4) {
    std::cerr << "names_driver NAMING OTHER WORD" << std::endl;
    return 2;
  }
  try {
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    CosNaming::NamingContextExt_var root = NamingContextExt::_narrow(object);
    object = orb->string_to_object(argv[2]);
    CosNaming::NamingContext_var other = NamingContext::_narrow(object);
    check(!CORBA::is_nil(root) && !CORBA::is_nil(other), "both are naming services");
    Driver driver(orb, root, other, argv[3]);
    driver.bindings();
    driver.contexts();
    driver.names();
    driver.texts();
    driver.iterators();
    driver.limits();
    driver.clean();
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
