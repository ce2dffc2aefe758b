// Factories of an application, in omniORB, as a replication manager calls them.

#ifndef FACTORIES_H
#define FACTORIES_H

#include <functional>
#include <string>
#include <vector>

#include "FT.hh"

// Ports of this host that nobody has.
std::vector<int> free_ports(size_t count);

// Has the manager create, refuse, replace and delete objects by a factory for each node, each of
// which makes its objects at a port of its own; `check` is told what is so.
void factories(FT::ReplicationManager_ptr manager, const std::vector<std::string>& nodes,
               CORBA::ORB_ptr orb, const std::vector<int>& ports,
               const std::function<void(bool, const std::string&)>& check);

#endif
